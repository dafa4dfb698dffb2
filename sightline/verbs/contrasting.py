"""Why this output and not another: what else the model could have written, and what speaks for the one and the other.

Two targets are compared at the first token where they differ, given all that they share before (Yin and Neubig 2022):

    log p(y_t | x, y_<t) - log p(y'_t | x, y_<t)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.methods import METHODS, find_method
from sightline.methods.settings import OutputSettings
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import tokens_of_ids
from sightline.verbs.explaining import explain

LONGEST_WORD = 8  # pieces; a longer alternative is cut


class Alternative(NamedTuple):
    """An output that the model could have given: its text, its probability, and its rank from 1."""

    text: str
    probability: float
    rank: int


def alternatives(
    model: Any, source: str, target: str | None = None, *, word: int = 0, count: int = 8
) -> list[Alternative]:
    """List what the model could have given in place of a target word, likeliest first; for a classifier, its labels.

    The probability is that of the first piece after the true words before it; the rest of a word is what the model
    would write next. Without a target the model gives its own.
    """
    loaded = load(model)
    with loaded.evaluating(), torch.no_grad():
        example = loaded.encode(source, target)
        if not example.labels:
            example = loaded.with_output(example, loaded.answer([example])[0])
        position = _first_piece(example, word)
        logits = loaded.logits(loaded.batch([example.at([position])]))[0, 0].float()
        probabilities, ids = logits.softmax(-1).topk(min(count, logits.shape[-1]))
        texts = _texts(loaded, example, position, word, ids.tolist())
    return [
        Alternative(text, float(probability), rank)
        for rank, (text, probability) in enumerate(zip(texts, probabilities.tolist(), strict=True), start=1)
    ]


def contrast(
    model: Any,
    source: str,
    target: str,
    instead: str,
    *,
    word: int = 0,
    method: str = "erasure",
    **settings: Any,
) -> Attribution:
    """Show which inputs speak for a target word rather than for another one in its place.

    The one row of the result is the first token where the target and the target with the other word differ. The
    method has to look at the outputs' probabilities; for a classifier `instead` is another label.
    """
    loaded = load(model)
    if not isinstance(find_method(method).defaults, OutputSettings):
        valid = [name for name, one in METHODS.items() if isinstance(one.defaults, OutputSettings)]
        raise InputError(f"The method {method} cannot contrast two outputs: take one of {', '.join(valid)}.")
    if loaded.classifies:
        return explain(loaded, source, target, method=method, contrast=instead, **settings)
    words = target.split()
    if not 0 <= word < len(words):
        raise InputError(f"There is no word {word}: the target has {len(words)}, numbered 0 to {len(words) - 1}.")
    other = " ".join([*words[:word], *instead.split(), *words[word + 1 :]])
    labels, foils = loaded.encode(source, target).labels, loaded.encode(source, other).labels
    position = next((i for i, (one, foil) in enumerate(zip(labels, foils, strict=False)) if one != foil), None)
    if position is None:
        raise InputError(f"{instead!r} is what the target has there already: name another word.")
    return explain(loaded, source, target, method=method, positions=[position], contrast=other, **settings)


def _first_piece(example: Example, word: int) -> int:
    positions = [i for i, number in enumerate(example.label_tokens.word_ids) if number == word]
    if not positions:
        count = len(example.label_tokens.words)
        raise InputError(f"There is no word {word}: the target has {count}, numbered 0 to {count - 1}.")
    return positions[0]


def _texts(model: LoadedModel, example: Example, position: int, word: int, ids: list[int]) -> list[str]:
    """Write each id as a word, as the model would complete it after the true words before it."""
    if model.classifies:
        return [model.labels[number] for number in ids]
    if not model.generates:
        return [model.text_of([number]).strip() or model.tokenizer.convert_ids_to_tokens(number) for number in ids]
    before = example.labels[:position]
    texts = []
    for number, completed in zip(ids, _completed(model, example, before, ids), strict=True):
        tokens = tokens_of_ids(model.tokenizer, [*before, *completed])
        words = [tokens.words[w] for w in dict.fromkeys(tokens.word_ids[position:]) if w is not None]
        texts.append(words[0] if words else model.tokenizer.convert_ids_to_tokens(number))
    return texts


def _completed(model: LoadedModel, example: Example, before: tuple[int, ...], ids: list[int]) -> list[list[int]]:
    """Let the model go on greedily after each id."""
    options = {"num_beams": 1, "do_sample": False, "max_new_tokens": LONGEST_WORD, "pad_token_id": model.pad_id}
    started = torch.tensor([[*before, number] for number in ids], device=model.device)
    if model.translates:
        start = torch.tensor(example.decoder_ids[:1], device=model.device).expand(len(ids), 1)
        source = torch.tensor([example.ids], device=model.device).expand(len(ids), -1)
        sequences = model.module.generate(source, decoder_input_ids=torch.cat([start, started], 1), **options)
        skipped = 1 + len(before)
    else:
        prompt = example.ids[: len(example.ids) - len(example.labels)]
        source = torch.tensor([prompt], device=model.device).expand(len(ids), -1)
        sequences = model.module.generate(torch.cat([source, started], 1), **options)
        skipped = len(prompt) + len(before)
    return sequences[:, skipped:].tolist()
