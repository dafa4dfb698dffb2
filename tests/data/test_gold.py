"""The gold alignments in the package: complete, in range, and as the guidelines say."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path

import pytest

import sightline
from sightline.cli import main
from sightline.data.gold import ALL_REGISTERS, LONGER_REGISTERS, REGISTERS, gold_files, read_gold
from sightline.errors import InputError

LEFT_OUT_ON_PURPOSE = {
    "everyday": {"y"},
    "encyclopaedic": set(),
    "encyclopaedic2": {",", "es"},
    "parliamentary": {","},
}
LENGTHS = dict.fromkeys(REGISTERS, (5, 25)) | dict.fromkeys(LONGER_REGISTERS, (13, 32))
MARKS = set('.,;:?!¿¡%"«»')
SAME_MARK = {'"': "«»"}
ALL_PAIRS = read_gold(*ALL_REGISTERS)


def test_the_first_registers_are_those_without_a_name() -> None:
    pairs = read_gold()
    assert Counter(pair.register for pair in pairs) == {"everyday": 33, "encyclopaedic": 33}
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert read_gold("encyclopaedic") == [pair for pair in pairs if pair.register == "encyclopaedic"]
    with pytest.raises(InputError, match="no register 'everday'"):
        read_gold("everday")


def test_the_longer_registers_have_their_pairs_and_links() -> None:
    pairs = read_gold(*LONGER_REGISTERS)
    assert Counter(pair.register for pair in pairs) == {"encyclopaedic2": 75, "parliamentary": 75}
    for side in (lambda pair: pair.source, lambda pair: pair.target):
        assert len({side(pair) for pair in ALL_PAIRS}) == len(ALL_PAIRS)
    sure, possible = Counter(), Counter()
    for pair in pairs:
        sure[pair.register] += len(pair.alignment.links)
        possible[pair.register] += len(pair.alignment.possible - pair.alignment.links)
    assert sure == {"encyclopaedic2": 1477, "parliamentary": 1398}
    assert possible == {"encyclopaedic2": 387, "parliamentary": 485}


@pytest.mark.parametrize("pair", ALL_PAIRS, ids=lambda pair: pair.source[:20])
def test_every_word_is_linked_or_left_out_on_purpose(pair) -> None:
    source, target = pair.source.split(), pair.target.split()
    links = pair.alignment.possible  # the sure ones included
    shortest, longest = LENGTHS[pair.register]
    assert shortest <= len(source) <= longest
    assert pair.alignment.links <= links
    assert len(pair.alignment.links) >= 0.5 * min(len(source), len(target))
    for side, words in enumerate((source, target)):
        linked = {link[side] for link in links}
        assert linked <= set(range(len(words)))
        left_out = {word for number, word in enumerate(words) if number not in linked}
        assert left_out <= LEFT_OUT_ON_PURPOSE[pair.register]
    for i, j in pair.alignment.links:  # a mark is never sure with a word, nor with another mark
        if source[i] in MARKS or target[j] in MARKS:
            assert target[j] in SAME_MARK.get(source[i], source[i])
        if source[i].isdigit() and target[j].isdigit():
            assert source[i] == target[j]


def test_files_are_tokenised_and_each_link_is_given_once() -> None:
    for register in ALL_REGISTERS:
        *texts, links = gold_files(register)
        for text in texts:
            for word in text.read_text(encoding="utf-8").split():
                assert word in MARKS or (not set(word) & set('?!¿¡;:%"«»') and not word.endswith((".", ",")))
        for line in links.read_text(encoding="utf-8").splitlines():
            pairs = [tuple(link.replace("p", "-").split("-")) for link in line.split()]
            assert len(pairs) == len(set(pairs))


def test_the_command_line_scores_against_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    pairs = read_gold("everyday")
    sure = tmp_path / "sure.align"
    sure.write_text("".join(" ".join(f"{i}-{j}" for i, j in pair.alignment.links) + "\n" for pair in pairs))
    english, spanish, links = gold_files("everyday")
    with pytest.raises(SystemExit):
        main(["score", str(sure), str(links), "--gold-base", "1", "--source", str(english), "--target", str(spanish)])
    assert "AER|sentences:33" in (out := capsys.readouterr().out)
    assert "= 0.00 [0.00, 0.00]" in out.splitlines()[0]
    assert sightline.score([pair.alignment for pair in pairs], [pair.alignment for pair in pairs]).recall.value == 100
