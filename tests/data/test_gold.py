"""The gold alignments in the package: complete, in range, and as the guidelines say."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path

import pytest

import sightline
from sightline.cli import main
from sightline.data.gold import REGISTERS, gold_files, read_gold
from sightline.errors import InputError

LEFT_OUT_ON_PURPOSE = {"y"}
MARKS = set(".,?!¿¡")


def test_both_registers_have_their_pairs() -> None:
    pairs = read_gold()
    assert Counter(pair.register for pair in pairs) == {"everyday": 33, "encyclopaedic": 33}
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert read_gold("encyclopaedic") == [pair for pair in pairs if pair.register == "encyclopaedic"]
    with pytest.raises(InputError, match="no register 'everday'"):
        read_gold("everday")


@pytest.mark.parametrize("pair", read_gold(), ids=lambda pair: pair.source[:20])
def test_every_word_is_linked_or_left_out_on_purpose(pair) -> None:
    source, target = pair.source.split(), pair.target.split()
    links = pair.alignment.possible  # the sure ones included
    assert 5 <= len(source) <= 25
    assert pair.alignment.links <= links
    assert len(pair.alignment.links) >= 0.5 * min(len(source), len(target))
    for side, words in enumerate((source, target)):
        linked = {link[side] for link in links}
        assert linked <= set(range(len(words)))
        assert {word for number, word in enumerate(words) if number not in linked} <= LEFT_OUT_ON_PURPOSE
    for i, j in pair.alignment.links:  # a mark is never sure with a word
        assert (source[i] in MARKS) == (target[j] in MARKS)
        if source[i].isdigit() and target[j].isdigit():
            assert source[i] == target[j]


def test_files_are_tokenised_and_each_link_is_given_once() -> None:
    for register in REGISTERS:
        *texts, links = gold_files(register)
        for text in texts:
            for word in text.read_text(encoding="utf-8").split():
                assert word in MARKS or (not set(word) & set("?!¿¡") and not word.endswith((".", ",")))
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
