"""The encoder part of the study: what a BERT's attention does with special tokens, punctuation and frequent words.

The figures of tables 1, 2 and 4 and of figures 3 to 6 and 9 to 12, each a function of what was observed on every token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from sightline.measures import spearman
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.studies.norms.inputs import build_inputs, count_pieces, find_model, read_texts
from sightline.studies.norms.observing import CATEGORIES, Observed, observe, singular_values
from sightline.studies.norms.ranks import RankCorrelation
from sightline.studies.norms.settings import Settings
from sightline.studies.study import Work

TOP = (",", ".", "[SEP]", "[CLS]")
"""What the paper takes for the most frequent tokens, in this order (its footnote 5)."""
UNRANKED = -1


def measure_encoder(work: Work, settings: Settings, data: Path | None) -> dict[str, Any]:
    """Run the encoder over all inputs, and measure."""
    model = _without_head(load(find_model(settings.model)))
    texts = read_texts(data)
    inputs = build_inputs(model.tokenizer, texts, settings.inputs, settings.max_tokens)
    examples = [model.encode(segments, None, name=f"input {n}") for n, segments in enumerate(inputs, start=1)]
    work.say(f"{len(examples)} inputs of {np.mean([len(one.ids) for one in examples]):.0f} tokens on average")
    correlations = [RankCorrelation() for _ in CATEGORIES]
    observed = list(observe(model, examples, lambda kind, weights, norms: correlations[kind].count(weights, norms)))
    work.say("every token observed; now the correlation of weights with norms")
    scatter = _correlate(model, examples, correlations, settings)
    by_id, by_count = rank_tokens(model.tokenizer, count_pieces(model.tokenizer, texts, settings.counted))
    return {
        "inputs": len(examples),
        "tokens": sum(len(one.ids) for one in observed),
        "sets": {name: len(documents) for name, documents in texts.items()},
        "dispersion": disperse([one.lengths for one in observed]),
        "input dispersion": disperse([one.inputs[:, None] for one in observed]),
        "categories": {
            name: {"share": share_tokens(observed, kind), "by head": read_heads(observed, kind)}
            | {"pairs": correlations[kind].pairs, "rho": correlations[kind].rho}
            for kind, name in enumerate(CATEGORIES)
        },
        "shares": share_by_layer(observed),
        "scatter": scatter,
        "frequency": {
            "vocabulary id": correlate_frequency(observed, by_id, settings),
            "count": correlate_frequency(observed, by_count, settings),
        },
        "singular values": _singular_values(model, settings),
    }


def _without_head(model: LoadedModel) -> LoadedModel:
    """Take the encoder out of a model that fills gaps or classifies: it reads any text."""
    return load(model.module.base_model, model.tokenizer) if model.fills_gaps or model.classifies else model


def disperse(norms: Sequence[Float[np.ndarray, "layer head _"]]) -> dict[str, list[list[float]]]:
    """Measure how norms vary over all tokens, by layer and head (table 1): CV = deviation / mean."""
    values = np.concatenate(norms, axis=-1).astype(np.float64)
    mean, deviation = values.mean(-1), values.std(-1)
    figures = {"mean": mean, "deviation": deviation, "cv": deviation / mean, "max": values.max(-1)}
    return {name: figure.tolist() for name, figure in (figures | {"min": values.min(-1)}).items()}


def share_tokens(observed: Sequence[Observed], kind: int) -> float:
    """Return the mean over inputs of the share of a category in their tokens."""
    return float(np.mean([np.mean(one.categories == kind) for one in observed]))


def share_by_layer(observed: Sequence[Observed]) -> dict[str, dict[str, list[float]]]:
    """Sum alpha and || alpha f(x) || over the tokens of each category, by layer (figure 3).

    Means over queries, heads and inputs. The weights of a layer sum to 1 over the categories.
    """
    shares: dict[str, dict[str, list[float]]] = {"weights": {}, "norms": {}}
    for kind, name in enumerate(CATEGORIES):
        for quantity, of in (("weights", _received), ("norms", _weighted)):
            sums = [of(one)[..., one.categories == kind].sum(-1).mean(-1) for one in observed]
            shares[quantity][name] = np.mean(sums, axis=0).tolist()
    return shares


def _received(one: Observed) -> Float[np.ndarray, "layer head token"]:
    return one.received


def _weighted(one: Observed) -> Float[np.ndarray, "layer head token"]:
    return one.received * one.lengths


def read_heads(observed: Sequence[Observed], kind: int) -> dict[str, Any]:
    """Average alpha (summed over a category's tokens) and || f(x) || by layer and head (figures 4, 10 to 12).

    `rho` is their rank correlation over all heads.
    """
    weights = np.mean([one.received[..., one.categories == kind].sum(-1) for one in observed], axis=0)
    lengths = np.concatenate([one.lengths[..., one.categories == kind] for one in observed], axis=-1).mean(-1)
    rho = float(spearman(weights.ravel(), lengths.ravel()))
    return {"weights": weights.tolist(), "lengths": lengths.tolist(), "rho": rho}


def _correlate(
    model: LoadedModel, examples: Sequence[Any], correlations: Sequence[RankCorrelation], settings: Settings
) -> dict[str, list[list[float]]]:
    """Correlate all pairs of a weight and a norm (table 2), and draw some for a picture (figure 5)."""
    rng = np.random.default_rng(settings.seed)
    drawn: dict[str, list[list[float]]] = {name: [] for name in CATEGORIES}

    def take(kind: int, weights: np.ndarray, norms: np.ndarray) -> None:
        correlations[kind].correlate(weights, norms)
        count = rng.binomial(len(weights), min(1.0, settings.plotted / correlations[kind].pairs))
        chosen = rng.integers(max(len(weights), 1), size=count)
        drawn[CATEGORIES[kind]] += [[float(weights[i]), float(norms[i])] for i in chosen]

    for _ in observe(model, examples, take):
        pass
    return drawn


def rank_tokens(
    tokenizer: Any, counts: Mapping[int, int]
) -> tuple[Int[np.ndarray, " vocabulary"], Int[np.ndarray, " vocabulary"]]:
    """Rank the vocabulary by frequency, from 1: by id as the paper's text does, and as counted.

    Special tokens, single characters and BERT's unused entries have no rank, but comma, period, [SEP] and [CLS] have
    the first four. By count, tokens that occur equally often share the first of their ranks.
    """
    size = len(tokenizer)
    pieces = [str(piece) for piece in tokenizer.convert_ids_to_tokens(list(range(size)))]
    ranked = np.array([len(piece.strip("▁Ġ")) > 1 and not piece.startswith("[unused") for piece in pieces])
    ranked[list(tokenizer.all_special_ids)] = False
    top = [*tokenizer.convert_tokens_to_ids(list(TOP[:2])), tokenizer.sep_token_id, tokenizer.cls_token_id]
    by_id = np.full(size, UNRANKED)
    by_id[ranked] = len(top) + 1 + np.arange(ranked.sum())
    by_count = np.full(size, UNRANKED)
    occurrences = Counter(dict(counts))
    number = np.array([occurrences[i] for i in range(size)])
    ordered = np.sort(-number[ranked])
    by_count[ranked] = len(top) + 1 + np.searchsorted(ordered, -number[ranked])
    for ranks in (by_id, by_count):
        ranks[top] = np.arange(1, len(top) + 1)
    return by_id, by_count


def correlate_frequency(
    observed: Sequence[Observed], ranks: Int[np.ndarray, " vocabulary"], settings: Settings
) -> dict[str, Any]:
    """Correlate the rank of every token with alpha and || f(x) ||, both as means over all heads (figure 6).

    The paper leaves single layers to future work; `by layer` has them.
    """
    ids = np.concatenate([one.ids for one in observed])
    known = ranks[ids] != UNRANKED
    rank = ranks[ids][known]
    by_layer = {  # the mean over a layer's heads: (layer, token)
        name: np.concatenate([getattr(one, field).mean(1) for one in observed], axis=-1)[:, known]
        for name, field in (("weights", "received"), ("lengths", "lengths"))
    }
    weights, lengths = (values.mean(0) for values in by_layer.values())
    chosen = np.random.default_rng(settings.seed).permutation(len(rank))[: settings.plotted]
    return {
        "tokens": len(rank),
        "weights": float(spearman(rank, weights)),
        "lengths": float(spearman(rank, lengths)),
        "by layer": {name: [float(spearman(rank, layer)) for layer in values] for name, values in by_layer.items()},
        "drawn": [[int(rank[i]), float(weights[i]), float(lengths[i])] for i in chosen],
    }


def _singular_values(model: LoadedModel, settings: Settings) -> list[dict[str, Any]]:
    """Compute the singular values of every head, and keep those of one head a layer, drawn by chance (figure 9)."""
    rng = np.random.default_rng(settings.seed)
    heads = model.module.config.num_attention_heads
    kept = []
    for layer in model.layers("encoder"):
        values = singular_values(layer, heads)
        head = int(rng.integers(heads))
        ratios = values[:, 0] / values[:, -1]
        kept.append({"head": head, "values": values[head].tolist(), "ratios": ratios.tolist()})
    return kept
