"""Alignment files, streamed: Pharaoh (also Moses'), NAACL, and JSON lines.

- `pharaoh`, `moses`: one sentence a line, `i-j` sure, `ipj` possible, optionally with a confidence: `i-j:0.83`.
- `naacl`: one link a line, `sentence source target [S|P] [confidence]`, all counted from 1 (WPT 2003).
- `words`: one sentence a line, the words themselves, `cat–gato`, for people; it cannot be read back.
- `jsonl`: one sentence a line, `{"links": [[i, j, confidence], ...], "possible": [[i, j], ...]}`, and the lengths
  `source_length` and `target_length` where known.

Words are counted from 0 or from 1 (`base`), and links are source-target or target-source (`target_first`). Neither is
guessed; but a file that contradicts what was said is refused, with the likely cause.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from sightline.alignment.columns import Alignments
from sightline.alignment.links import Alignment
from sightline.alignment.parallel import read_pairs
from sightline.errors import InputError, unknown_name
from sightline.files import STANDARD_OUTPUT, FilePath, Position, read_lines, write_lines
from sightline.json_files import check_fields, parse_json
from sightline.limits import MOST_SENTENCES_SKIPPED, MOST_WORDS

Lengths = tuple[int, int]

PHARAOH_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)(?::(\S+))?")
NUMBER = re.compile(r"[0-9]+")
MOST_DIGITS = 19  # more are no number of anything that is counted here
ENOUGH_SENTENCES = 10  # this many sentences with links, none of them at the first word of either side, tell the base


class WrittenLink(NamedTuple):
    """A link as a file states it: in the file's order and counting."""

    left: int
    right: int
    confidence: float = 1.0
    sure: bool = True


class WrittenSentence(NamedTuple):
    """The links of a sentence as a file states them; lengths where it does."""

    links: list[WrittenLink]
    left_length: int | None = None
    right_length: int | None = None
    pairs: Sequence[str] = ()
    """The linked words, in the order of the links, to be looked at."""


class Format(NamedTuple):
    """How a format is read from lines, how a sentence (counted from 1) is written, and how it counts words."""

    read: Callable[[FilePath, Iterable[str]], Iterator[WrittenSentence]]
    write: Callable[[int, WrittenSentence, bool], str]
    base: int


def read_alignments(
    path: FilePath,
    format: str = "pharaoh",
    base: int | None = None,
    target_first: bool = False,
    lengths: Iterable[Lengths] | None = None,
    position: Position | None = None,
) -> Iterator[Alignment]:
    """Yield the alignments of a file (`-`: standard input); words are then counted from 0, links are (source, target).

    `base` is what the file counts from: 1 in `naacl`, otherwise 0, unless said. With the `lengths` of the sentence
    pairs (`read_lengths`) every link is checked to lie inside; without, a file in which no link ever touches a
    first word is taken to be counted from 1, and refused if 0 was said. `position` follows how far the file was read.
    """
    written_in = _format(format)
    base = _base(written_in, base)
    sentences = written_in.read(path, read_lines(path, position))
    with_links, touches_first_word = 0, False
    for number, (sentence, pair) in enumerate(_with_lengths(path, format, sentences, lengths), start=1):
        if pair is not None:
            left, right = pair[::-1] if target_first else pair
            sentence = sentence._replace(left_length=left, right_length=right)
        with_links += bool(sentence.links)
        touches_first_word |= any(0 in link[:2] for link in sentence.links)
        _refuse_outside(f"{path}, sentence {number}", sentence, base, touches_first_word)
        yield _alignment(sentence, base, target_first)
    if base == 0 and lengths is None and with_links >= ENOUGH_SENTENCES and not touches_first_word:
        raise InputError(
            f"{path}, sentences 1 to {number}: no link touches word 0 of either side, so the file looks 1-based, but "
            "it was read as 0-based. Read it with base 1; if it is right, give the texts, to check it by their lengths."
        )


def write_alignments(
    alignments: Iterable[Alignment | Alignments],
    path: FilePath = STANDARD_OUTPUT,
    format: str = "pharaoh",
    base: int | None = None,
    target_first: bool = False,
    confidences: bool = False,
) -> None:
    """Write alignments as they come (`-`: to standard output); with `confidences`, how sure each link is.

    A file appears under its name only when it is complete.
    """
    write_lines(render_alignments(alignments, format, base, target_first, confidences), path)


def render_alignments(
    alignments: Iterable[Alignment | Alignments],
    format: str = "pharaoh",
    base: int | None = None,
    target_first: bool = False,
    confidences: bool = False,
    first: int = 1,
) -> Iterator[str]:
    """Yield what a file has for each alignment, or for many that come as columns, line ends included.

    `first` is the number of the first sentence.
    """
    written_in = _format(format)
    base = _base(written_in, base)
    number = first - 1
    for some in alignments:
        if isinstance(some, Alignments) and written_in is PHARAOH:
            from sightline.alignment.rendering import render_pharaoh  # numba, which reading files does not need

            yield render_pharaoh(some.flipped() if target_first else some, base, confidences)
            number += len(some)
            continue
        for alignment in some if isinstance(some, Alignments) else (some,):
            number += 1
            shown = alignment.flipped() if target_first else alignment
            pairs = shown.pairs(shown.possible) if written_in is WORDS else ()
            yield written_in.write(number, _written(shown, base)._replace(pairs=pairs), confidences)


def _written(alignment: Alignment, base: int) -> WrittenSentence:
    links = [
        WrittenLink(
            left + base, right + base, alignment.confidences.get((left, right), 1.0), (left, right) in alignment
        )
        for left, right in sorted(alignment.possible)
    ]
    return WrittenSentence(links, alignment.source_length, alignment.target_length)


def read_lengths(source: FilePath, target: FilePath | None = None) -> Iterator[Lengths]:
    """Yield how many words each sentence of a parallel text has on either side."""
    for source_text, target_text in read_pairs(source, target):
        yield len(source_text.split()), len(target_text.split())


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise unknown_name("alignment format", name, FORMATS)
    return FORMATS[name]


def _base(format: Format, base: int | None) -> int:
    if base not in (None, 0, 1):
        raise InputError(f"Words are counted from 0 or from 1, not from {base}.")
    return format.base if base is None else base


def _alignment(sentence: WrittenSentence, base: int, target_first: bool) -> Alignment:
    alignment = Alignment(
        {(link.left - base, link.right - base): link.confidence for link in sentence.links if link.sure},
        [(link.left - base, link.right - base) for link in sentence.links if not link.sure],
        sentence.left_length,
        sentence.right_length,
    )
    return alignment.flipped() if target_first else alignment


def _with_lengths(
    path: FilePath, format: str, sentences: Iterable[WrittenSentence], lengths: Iterable[Lengths] | None
) -> Iterator[tuple[WrittenSentence, Lengths | None]]:
    if lengths is None:
        yield from ((sentence, None) for sentence in sentences)
        return
    for number, (sentence, pair) in enumerate(zip_longest(sentences, lengths)):
        if sentence is None and format == "naacl":  # the last sentences of such a file may have no links
            sentence = WrittenSentence([])
        if sentence is None:
            raise InputError(f"{path} ends after {number} sentences, but the texts go on: lines must correspond.")
        if pair is None:
            raise InputError(f"{path} goes on after {number} sentences, where the texts end: lines must correspond.")
        yield sentence, pair


def _refuse_outside(where: str, sentence: WrittenSentence, base: int, zero_seen: bool) -> None:
    """Refuse links before the first or after the last word, with the likely cause.

    A file that had the index 0 so far, `zero_seen`, does not count from 1.
    """
    links, n, m = sentence.links, sentence.left_length, sentence.right_length
    for link in links:
        if min(link.left, link.right) < base:
            raise InputError(
                f"{where}: the link {link.left}-{link.right} has word 0, but the file was read as 1-based. "
                "It looks 0-based: read it with base 0. (Links to NULL must be left out.)"
            )
    if n is None or m is None or _fit(links, base, n, m):
        return
    outside = next(link for link in links if not _fit([link], base, n, m))
    if not zero_seen and _fit(links, 1, n, m):
        cause = "It looks 1-based: read it with base 1."
    elif _fit(links, base, m, n):
        cause = "Its links look as if in the other order of source and target."
    else:
        cause = "Alignment and text do not belong together, or were tokenised differently."
    raise InputError(
        f"{where}: the link {outside.left}-{outside.right} lies outside the sentences of {n} and {m} words, "
        f"counted from {base}. {cause}"
    )


def _fit(links: Iterable[WrittenLink], base: int, n: int, m: int) -> bool:
    return all(base <= link.left < n + base and base <= link.right < m + base for link in links)


def _word(where: str, digits: str | int) -> int:
    """Read the number of a word."""
    if len(str(digits)) >= MOST_DIGITS or int(digits) > MOST_WORDS:
        raise InputError(f"{where}: a link has the word {digits}, and sentences have {MOST_WORDS:,} words at most.")
    return int(digits)


def _confidence(where: str, text: str | float | int) -> float:
    try:
        confidence = float(text)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {text!r} is not a confidence.") from None
    if not 0.0 <= confidence <= 1.0:
        raise InputError(f"{where}: the confidence {text} must lie between 0 and 1.")
    return confidence


def _read_pharaoh(path: FilePath, lines: Iterable[str]) -> Iterator[WrittenSentence]:
    for number, line in enumerate(lines, start=1):
        links = []
        for item in line.split():
            match = PHARAOH_LINK.fullmatch(item)
            if match is None:
                raise InputError(f"{path}, line {number}: {item!r} is not a link such as 0-1, 0p1 or 0-1:0.83.")
            left, kind, right, confidence = match.groups()
            certainty = 1.0 if confidence is None else _confidence(f"{path}, line {number}", confidence)
            where = f"{path}, line {number}"
            links.append(WrittenLink(_word(where, left), _word(where, right), certainty, kind == "-"))
        yield WrittenSentence(links)


def _write_pharaoh(number: int, sentence: WrittenSentence, confidences: bool) -> str:
    return " ".join(map(_pharaoh_link if confidences else _plain_link, sentence.links)) + "\n"


def _plain_link(link: WrittenLink) -> str:
    return f"{link.left}{'-' if link.sure else 'p'}{link.right}"


def _pharaoh_link(link: WrittenLink) -> str:
    return f"{_plain_link(link)}:{link.confidence:.4g}" if link.sure else _plain_link(link)


def _read_naacl(path: FilePath, lines: Iterable[str]) -> Iterator[WrittenSentence]:
    current = 1
    links: list[WrittenLink] = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            continue
        where = f"{path}, line {number}"
        if not 3 <= len(fields) <= 5 or not all(NUMBER.fullmatch(field) for field in fields[:3]):
            raise InputError(f"{where}: this is not a link such as '1 3 4', '1 3 4 S' or '1 3 4 P 0.83'.")
        sentence = int(fields[0]) if len(fields[0]) < MOST_DIGITS else current + MOST_SENTENCES_SKIPPED + 1
        left, right = _word(where, fields[1]), _word(where, fields[2])
        sure, confidence = True, 1.0
        for field in fields[3:]:
            if field in ("S", "P"):
                sure = field == "S"
            else:
                confidence = _confidence(where, field)
        if sentence < current:
            raise InputError(f"{where}: sentence {sentence} comes too late; sort the file (sentences count from 1).")
        if sentence > current + MOST_SENTENCES_SKIPPED:
            raise InputError(
                f"{where}: sentence {fields[0]} follows on sentence {current}, and at most {MOST_SENTENCES_SKIPPED:,} "
                "may have no links: is the first column the number of the sentence?"
            )
        while current < sentence:
            yield WrittenSentence(links)
            current, links = current + 1, []
        links.append(WrittenLink(left, right, confidence, sure))
    if links:
        yield WrittenSentence(links)


def _write_naacl(number: int, sentence: WrittenSentence, confidences: bool) -> str:
    return "".join(
        f"{number} {link.left} {link.right} {'S' if link.sure else 'P'}"
        + (f" {link.confidence:.4g}\n" if confidences else "\n")
        for link in sentence.links
    )


def _read_json_lines(path: FilePath, lines: Iterable[str]) -> Iterator[WrittenSentence]:
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            sentence = _parse_sentence(where, check_fields(parse_json(line), {"links": list}))
        except (ValueError, TypeError):
            raise InputError(f'{where}: this is not an alignment such as {{"links": [[0, 1, 0.83]]}}.') from None
        yield sentence


def _parse_sentence(where: str, plain: dict[str, Any]) -> WrittenSentence:
    links = [
        WrittenLink(_index(where, left), _index(where, right), _confidence(where, *confidence) if confidence else 1.0)
        for left, right, *confidence in plain["links"]
    ]
    links += [
        WrittenLink(_index(where, left), _index(where, right), sure=False)
        for left, right in plain.get("possible") or ()
    ]
    lengths = plain.get("source_length"), plain.get("target_length")
    if not all(length is None or _index(where, length) >= 0 for length in lengths):
        raise ValueError("lengths are numbers of words")
    return WrittenSentence(links, *lengths)


def _index(where: str, value: Any) -> int:
    if type(value) is not int or value < 0:  # true and false are integers to Python
        raise ValueError("words are counted from 0")
    return _word(where, value)


def _write_json_line(number: int, sentence: WrittenSentence, confidences: bool) -> str:
    sure = [link for link in sentence.links if link.sure]
    plain: dict[str, object] = {
        "links": [[link.left, link.right, link.confidence] if confidences else list(link[:2]) for link in sure]
    }
    if len(sure) < len(sentence.links):
        plain["possible"] = [list(link[:2]) for link in sentence.links if not link.sure]
    if sentence.left_length is not None:
        plain |= {"source_length": sentence.left_length, "target_length": sentence.right_length}
    return json.dumps(plain) + "\n"


def _read_words(path: FilePath, lines: Iterable[str]) -> Iterator[WrittenSentence]:
    raise InputError(f"{path} cannot be read as words, which do not say where they stand: write pharaoh or jsonl.")


def _write_words(number: int, sentence: WrittenSentence, confidences: bool) -> str:
    ends = [f":{link.confidence:.4g}" if confidences else "" for link in sentence.links]
    return " ".join(pair + end for pair, end in zip(sentence.pairs, ends, strict=True)) + "\n"


WORDS = Format(_read_words, _write_words, base=0)
PHARAOH = Format(_read_pharaoh, _write_pharaoh, base=0)
FORMATS = {
    "pharaoh": PHARAOH,
    "moses": PHARAOH,
    "naacl": Format(_read_naacl, _write_naacl, base=1),
    "words": WORDS,
    "jsonl": Format(_read_json_lines, _write_json_line, base=0),
}
