"""Readers of lines and texts on 10,000 damaged cases each: read well, or refused in one sentence."""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzz.damage import damaged_bytes, damaged_texts, outcomes, replace, without_checks
from training.tiny import RECIPE

from sightline.alignment import marked_sentence, placing, restoring, scanning, word_parts
from sightline.alignment import markup as markup_module
from sightline.alignment.formats import read_alignments, read_lengths
from sightline.alignment.links import Alignment
from sightline.alignment.parallel import read_pairs
from sightline.cli.settings import read_settings
from sightline.data.labelled import read_labelled_file
from sightline.files import read_lines
from sightline.methods import METHODS
from sightline.training.recipe import read_recipe

CASES = 10_000
LINKS = {
    "pharaoh": ["0-0 1-2 2p1\n\n0-1:0.83 1-0\n", "1-1\n" * 12],
    "naacl": ["0001 1 2\n2 3 1 P\n\n2 2 2 S 0.5\n4 1 1 0.25\n"],
    "jsonl": ['{"links": [[0, 1, 0.5], [1, 1]], "possible": [[1, 0]], "source_length": 3, "target_length": 2}\n' * 2],
}
PAIRS = ["the cat ||| el gato\n||| \nsleeps ||| duerme\n", "the cat\tel gato\n\t\nsleeps\tduerme\n"]
MARKED_UP = [
    'The <b class="x > y">black</b> cat{0}, %1$s &amp; <br/> <!-- c --> <i>sleeps</i>.',
    "<p><![CDATA[ a ]]><?php x ?> {{name}} <été>un</été> ${n} %(n)s</p>",
    "<!DOCTYPE d [<!ENTITY e 'f'>]><b><i>a</b> c</i>",
]
LABELLED = {
    "a.jsonl": ['{"text": "A good film.", "label": 1}\n{"text": "Bad.", "label": "no"}\n'],
    "a.csv": ['text,label\n"A good, ""very"" good film.",1\nBad.,0\n'],
}


def reading(path: Path, read: Callable[[Path], Any]) -> Callable[[str], None]:
    """Return what writes a text to a file and reads all of it."""

    def write_and_read(text: str) -> None:
        replace(path, text.encode("utf-8", "surrogatepass"))
        read(path)

    return write_and_read


def check(texts: list[str], read: Callable[[str], Any], count: int = CASES) -> None:
    well, refused = outcomes(damaged_texts(texts, count), read)
    assert min(well, refused) > count // 100, "cases of both kinds"


@pytest.mark.parametrize("format", LINKS)
def test_alignments(format: str, tmp_path: Path) -> None:
    check(LINKS[format], reading(tmp_path / "links", lambda path: list(islice(read_alignments(path, format), 100))))


def test_alignments_with_texts(tmp_path: Path) -> None:
    lengths = [(3, 3)] * 3
    read = reading(tmp_path / "links", lambda path: list(read_alignments(path, base=0, lengths=lengths)))
    check(LINKS["pharaoh"][:1], read)


def test_pairs(tmp_path: Path) -> None:
    check(PAIRS, reading(tmp_path / "pairs", lambda path: list(read_lengths(path))))


def test_lines_that_are_bytes(tmp_path: Path) -> None:
    rng = random.Random(0)
    plain, packed = tmp_path / "text", tmp_path / "text.gz"
    content = "".join(PAIRS).encode()

    def read(case: tuple[Path, bytes]) -> None:
        replace(*case)
        list(read_lines(case[0]))

    cases = [(plain, damaged_bytes(content, rng)) for _ in range(CASES // 2)]
    cases += [(packed, damaged_bytes(gzip.compress(content), rng)) for _ in range(CASES // 2)]
    well, refused = outcomes(iter(cases), read)
    assert min(well, refused) > CASES // 100


def test_pairs_of_two_files(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("x\n" * 4)
    check(
        ["a\nb\nc\nd\n"],
        reading(tmp_path / "text", lambda path: list(read_pairs(path, other))),
    )


def test_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked = {}
    # Each imports those before it.
    for module in (scanning, word_parts, markup_module, marked_sentence, placing, restoring):
        unchecked[module] = without_checks(module)
        monkeypatch.setitem(sys.modules, module.__name__, unchecked[module])

    def read(text: str) -> None:
        markup = unchecked[markup_module].parse_markup(text)
        links = [(i, i % 3) for i in range(min(len(markup.words), 20))]
        unchecked[restoring].restore_markup(markup, ["x", "y", "z"], Alignment(links))

    assert outcomes(damaged_texts(MARKED_UP, CASES), read) == (CASES, 0)


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_text(name: str, tmp_path: Path) -> None:
    check(LABELLED[name], reading(tmp_path / name, read_labelled_file))


def test_recipes(tmp_path: Path) -> None:
    text = yaml.safe_dump(RECIPE)
    check([text], reading(tmp_path / "recipe.yaml", read_recipe))


def test_settings() -> None:
    def read(text: str) -> None:
        METHODS["attention"].settings("attention", read_settings([text]))

    check(["smoothgrad=3", "seed=5", "sigma=0.5", "layer=all", "reading=input", "relative=true"], read)
