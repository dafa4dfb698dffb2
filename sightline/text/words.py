"""Which word each piece of a text belongs to.

A word is what white space delimits, or what the user split. Words are joined by one space and tokenised as text;
pieces are mapped to words by character offset. A tokenizer without offsets is run word by word and must give the
same pieces as for the whole. A tokenizer's own `word_ids()` is not used: what it calls a word varies.

A text may have two segments, as the pairs that BERT was trained on: a tuple `(first, second)`. The words of the second
are counted after those of the first. Only the tokenizer puts separators around segments, and they belong to no word.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sightline.attribution import Tokens
from sightline.errors import InputError
from sightline.limits import MOST_WORDS

Text = str | Sequence[str]
Source = Text | tuple[Text, Text]
"""A text, or a text of two segments."""
MOST_ADDED = 16
"""How many ids a tokenizer may add to those of the words, before and after them together."""


@dataclass(frozen=True)
class Part:
    """A stretch of a text: words of one side, or, without words, something around them (a prompt, a template)."""

    text: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Encoded:
    """The ids of a text, the part that each came from (None: added by the tokenizer), and their pieces and words.

    `segments` are the numbers of the ids' segments where the tokenizer tells them (`token_type_ids`).
    """

    ids: tuple[int, ...]
    parts: tuple[int | None, ...]
    pieces: tuple[str, ...]
    word_ids: tuple[int | None, ...]
    segments: tuple[int, ...] = ()

    def tokens(self, words: tuple[str, ...], start: int = 0, stop: int | None = None) -> Tokens:
        """Return the positions from `start` to `stop` as Tokens."""
        return Tokens(self.pieces[start:stop], self.word_ids[start:stop], words)


def split_words(text: Text, name: str) -> tuple[str, ...]:
    """Split a text into words, or take the words that the user split."""
    if isinstance(text, str):
        words = tuple(text.split())
    else:
        words = tuple(text)
        for word in words:
            if not word.strip() or word.split() != [word]:
                raise InputError(f"The {name} has the word {word!r}: a word may be neither empty nor hold white space.")
    if not words:
        raise InputError(f"The {name} is empty: give it at least one word.")
    if len(words) > MOST_WORDS:
        raise InputError(
            f"The {name} has {len(words):,} words, and a text may have {MOST_WORDS:,}: split it into sentences."
        )
    return words


def split_segments(source: Source, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a text into the words of its first and, if it is a tuple, of its second segment."""
    if not isinstance(source, tuple):
        return split_words(source, name), ()
    if len(source) != 2:
        raise InputError(
            f"The {name} is a tuple of {len(source)}: a tuple (first, second) is one text of two segments. "
            "Give several texts, or the words of one, as a list."
        )
    first, second = source
    return split_words(first, f"first segment of {name}"), split_words(second, f"second segment of {name}")


def word_part(words: tuple[str, ...]) -> Part:
    """Make a part of words."""
    return Part(" ".join(words), words)


def encode(
    tokenizer: Any,
    parts: Sequence[Part],
    second: Sequence[Part] = (),
    *,
    as_target: bool = False,
    special_tokens: bool = True,
) -> Encoded:
    """Tokenise the joined text of some parts, and say which part and word each piece belongs to.

    `second` are the parts of a second segment; its words are counted after those of the first.
    """
    segments = [list(parts), list(second)] if second else [list(parts)]
    joined = ["".join(part.text for part in segment) for segment in segments]
    keys = ("text_target", "text_pair_target") if as_target else ("text", "text_pair")
    arguments = dict(zip(keys, joined, strict=False)) | {"add_special_tokens": special_tokens}
    with _lock_of(tokenizer):
        if tokenizer.is_fast:
            encoding = tokenizer(**arguments, return_offsets_mapping=True, return_special_tokens_mask=True)
            owners = _owners_by_offset(encoding, segments, joined)
        else:
            encoding = tokenizer(**arguments)
            owners = _owners_word_by_word(tokenizer, keys[0], encoding["input_ids"], segments, joined)
    ids = encoding["input_ids"]
    return Encoded(
        tuple(ids),
        tuple(part for part, _ in owners),
        piece_names(tokenizer, ids),
        tuple(word for _, word in owners),
        tuple(encoding.get("token_type_ids") or ()),
    )


_Owner = tuple[int | None, int | None]
"""The part and the word that a piece belongs to; None for what the tokenizer adds."""


def _owners_by_offset(encoding: Any, segments: Sequence[list[Part]], joined: Sequence[str]) -> list[_Owner]:
    """Find the owner of each id by the characters that it covers."""
    spans = _spans_of(segments)
    owners: list[_Owner] = []
    ids = zip(encoding["offset_mapping"], encoding["special_tokens_mask"], encoding.sequence_ids(), strict=True)
    for (start, end), added, segment in ids:
        owners.append((None, None) if added else _owner(joined[segment or 0], start, end, spans[segment or 0]))
    return owners


def _spans_of(segments: Sequence[list[Part]]) -> list[_Spans]:
    """List the spans of each segment; parts and words are counted through all of them."""
    spans, parts, words = [], 0, 0
    for segment in segments:
        spans.append(_Spans.of(segment, parts, words))
        parts, words = parts + len(segment), words + sum(len(part.words) for part in segment)
    return spans


class _Spans(NamedTuple):
    """Where words start and end in the joined text, in order, and their part and word; all of a part without words."""

    starts: list[int]
    ends: list[int]
    owners: list[tuple[int, int | None]]

    @classmethod
    def of(cls, parts: Sequence[Part], first_part: int = 0, first_word: int = 0) -> _Spans:
        spans = cls([], [], [])
        offset = 0
        for number, part in enumerate(parts, first_part):
            if not part.words and part.text.strip():
                spans.add(offset, offset + len(part.text), (number, None))
            position = 0
            for word_number, word in enumerate(part.words, first_word):
                start = part.text.index(word, position)
                position = start + len(word)
                spans.add(offset + start, offset + position, (number, word_number))
            offset += len(part.text)
        return spans

    def add(self, start: int, end: int, owner: tuple[int, int | None]) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.owners.append(owner)


def _owner(text: str, start: int, end: int, spans: _Spans) -> tuple[int | None, int | None]:
    """Find the part and word of a piece that covers text[start:end]."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    first = bisect_right(spans.ends, start)
    if start == end:  # white space only: it belongs to what follows
        return spans.owners[min(first, len(spans.owners) - 1)]
    owners = spans.owners[first : bisect_left(spans.starts, end)]
    if len(owners) != 1:
        raise InputError(
            f"The tokenizer joins {text[start:end]!r} across a word boundary; "
            "split the text into words differently, or use a tokenizer that keeps words apart."
        )
    return owners[0]


def _owners_word_by_word(
    tokenizer: Any, key: str, ids: list[int], segments: Sequence[list[Part]], joined: Sequence[str]
) -> list[_Owner]:
    """Find the owner of each id without offsets: each word alone must give the same pieces as the whole."""
    owners: list[_Owner] = []
    parts = words = 0
    for segment, text in zip(segments, joined, strict=True):
        plain: list[int] = []
        plain_owners: list[_Owner] = []
        for number, part in enumerate(segment, parts):
            units = part.words or (part.text.strip(),)
            for word_number, unit in enumerate(units, words):
                pieces = _pieces_of_word(tokenizer, key, unit) if unit else ()
                plain += pieces
                plain_owners += [(number, word_number if part.words else None)] * len(pieces)
        start = _find_ids(ids, plain, len(owners))
        if start is None:
            raise _joins_words(text)
        owners += [(None, None)] * (start - len(owners)) + plain_owners
        parts, words = parts + len(segment), words + sum(len(part.words) for part in segment)
    if len(ids) - len(owners) > MOST_ADDED:
        raise _joins_words(joined[-1])
    return owners + [(None, None)] * (len(ids) - len(owners))


def _find_ids(ids: list[int], wanted: list[int], start: int) -> int | None:
    """Find where some ids stand, after no more than a tokenizer may add."""
    places = range(start, min(start + MOST_ADDED, len(ids) - len(wanted)) + 1)
    return next((place for place in places if ids[place : place + len(wanted)] == wanted), None)


def _joins_words(text: str) -> InputError:
    return InputError(
        f"The tokenizer does not keep the words of {text!r} apart: "
        "one by one it splits them differently. Normalise the text, or split it into words differently."
    )


_locks: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


def _lock_of(tokenizer: Any) -> threading.Lock:
    """Find the lock of a tokenizer: while it encodes a target, it is in another state than for sources."""
    with _locks_lock:
        return _locks.setdefault(tokenizer, threading.Lock())


# Texts repeat their words, and to tokenise one takes a tokenizer without offsets as long as a sentence.
_known_words: WeakKeyDictionary[Any, dict[tuple[str, str], tuple[int, ...]]] = WeakKeyDictionary()
MAX_KNOWN_WORDS = 100_000


def _pieces_of_word(tokenizer: Any, key: str, word: str) -> tuple[int, ...]:
    known = _known_words.setdefault(tokenizer, {})
    pieces = known.get((key, word))
    if pieces is None:
        pieces = tuple(tokenizer(**{key: word}, add_special_tokens=False)["input_ids"])
        if len(known) >= MAX_KNOWN_WORDS:
            known.clear()
        known[key, word] = pieces
    return pieces


def tokens_of_ids(tokenizer: Any, ids: Sequence[int]) -> Tokens:
    """Find the words of generated ids, whose pieces need not be the tokenizer's first choice.

    Each prefix is decoded: a piece belongs to the word that is the last one once the piece is there.
    """
    special = set(tokenizer.all_special_ids) | set(getattr(tokenizer, "lang_code_to_id", {}).values())
    pieces = piece_names(tokenizer, ids)
    plain: list[int] = []
    word_ids: list[int | None] = []
    text = ""
    for token, piece in zip(ids, pieces, strict=True):
        if token in special:
            word_ids.append(None)
            continue
        plain.append(token)
        text = decode(tokenizer, plain)
        count = len(text.split())
        starts_next = not piece.strip("▁ ") and count > 0
        word_ids.append(count if starts_next else max(count - 1, 0))
    words = tuple(text.split()) or (("",) if plain else ())
    last = len(words) - 1
    return Tokens(pieces, tuple(None if word is None else min(word, last) for word in word_ids), words)


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Turn ids into text as it stands, without special tokens."""
    with _lock_of(tokenizer):
        return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


def piece_names(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    """Name pieces for people: byte-level pieces are decoded, with `▁` for a space before the piece."""
    names = [str(name) for name in tokenizer.convert_ids_to_tokens(list(ids))]
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if type(decoder).__name__ != "ByteLevel":
        return tuple(names)
    added = tokenizer.get_added_vocab()
    return tuple(
        name if name in added else tokenizer.convert_tokens_to_string([name]).replace(" ", "▁") for name in names
    )
