"""Is saliency a better word alignment than attention? A study of Ding et al. 2019.

Convolutional, recurrent and Transformer models are read by attention, Li's measure and word saliency, each with and
without noise; `reading` does that, `measuring` says what is measured, `steps` in which order, `published` has the
paper's figures. Here is what it claims, with its tables 1 to 3; `plots` draws its figures 1 to 3.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from sightline.studies.saliency.plots import draw_plots
from sightline.studies.saliency.published import (
    ARCHITECTURES,
    ATTENTION,
    LI_SMOOTH,
    OURS_GRAD,
    OURS_SMOOTH,
    PRINTED_METHODS,
    SMOOTHED,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    row_of,
)
from sightline.studies.saliency.reading import METHODS
from sightline.studies.saliency.results import (
    DECODINGS,
    aligner_rates,
    all_rates,
    directions,
    forced_mean,
    joined_column,
    joined_rate,
    models,
    noise_of,
    of_model,
    rate_of,
)
from sightline.studies.saliency.settings import GENERATED, PAPER, QUICK, STANDARD
from sightline.studies.saliency.steps import FORCED, FREE, build_steps
from sightline.studies.study import Claim, Figures, Finding, Results, Study, Table

MOST = 0.5
"""The fraction of systems from which on something happens most of the time."""
UNCHANGED = 1e-5
"""A difference of attention weights that rounding makes."""
CHANGED = 0.1
"""A total variation of a row from which on it is another one."""
ALIGNER_ROWS = {"diagonal": "fast_align"}
"""Which row of the paper an aligner of ours stands beside."""


# Tables


def _forced(results: Results) -> Figures:
    table = _by_method(results, FORCED)
    for architecture in ARCHITECTURES:
        for method in METHODS:
            table[row_of(architecture, method)][joined_column(results)] = joined_rate(results, architecture, method)
    for name, rates in aligner_rates(results).items():
        aligner, when = name.split()
        table[f"{ALIGNER_ROWS.get(aligner, aligner)} {when}"] = dict(rates)
    return table


def _by_method(results: Results, decoding: str) -> dict[str, dict[str, Any]]:
    return {
        row_of(architecture, method): {
            "-".join(direction): rate_of(results, decoding, architecture, direction, method)
            for direction in directions(results)
        }
        for architecture in ARCHITECTURES
        for method in METHODS
    }


def _by_noise(results: Results, figure: str) -> Figures:
    return {
        f"{name}, {decoding}": {
            column: found[figure] for column, found in noise_of(results, architecture, decoding).items()
        }
        for architecture, name in ARCHITECTURES.items()
        for decoding in DECODINGS
    }


def _polarity(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for architecture, direction in models(results):
        counts = of_model(results, architecture, direction)[FORCED]["polarity"]
        table[f"{ARCHITECTURES[architecture]}, {'-'.join(direction)}"] = {
            "links where saliency is negative": counts["negative"][0],
            "share of all": _fraction(counts["negative"][0], counts["negative"][0] + counts["positive"][0]),
            "precision there": _fraction(*counts["negative"][::-1]),
            "precision elsewhere": _fraction(*counts["positive"][::-1]),
        }
    return table


def _fraction(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _translators(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for architecture, direction in models(results):
        found = of_model(results, architecture, direction)
        table[f"{ARCHITECTURES[architecture]}, {'-'.join(direction)}"] = {
            "parameters": found["model"]["parameters"],
            "minutes of training": found["model"]["minutes"],
            "test BLEU": found["translations"]["bleu"],
            "empty translations": found["translations"]["empty"],
        }
    return table


def _exchanges(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for architecture, direction in models(results):
        found = of_model(results, architecture, direction)["exchange"]
        table[f"{ARCHITECTURES[architecture]}, {'-'.join(direction)}"] = {
            "pairs": found["pairs"],
            "attention, greatest change": None if found["attention"] is None else f"{found['attention']:.1e}",
            "saliency, total variation": found["saliency"],
            "best source piece moves": found["moved"],
        }
    return table


# Claims


def _compare(results: Results, lower: str, higher: str, *, only: tuple[str, ...] = tuple(ARCHITECTURES)) -> Finding:
    """Judge whether a method has the lower error rate in all columns of tables 1 and 2 that are measured here."""
    phrases, better, count = [], 0, 0
    for architecture in only:
        low, high = (all_rates(results, architecture, method) for method in (lower, higher))
        better += sum(one < other for one, other in zip(low, high, strict=True))
        count += len(low)
        phrases.append(f"{ARCHITECTURES[architecture]} {_average(low):.1f} against {_average(high):.1f}")
    return Finding(better == count, f"{', '.join(phrases)} on average; lower in {better} of {count} columns")


def _average(values: list[float]) -> float:
    return sum(values) / len(values)


def _judge_exchange(results: Results) -> Finding | None:
    found = [of_model(results, *model)["exchange"] for model in models(results)]
    if any(one["saliency"] is None for one in found):
        return None  # no pair had two different outputs
    attention = max(one["attention"] for one in found)
    saliency = [one["saliency"] for one in found]
    ours = f"attention by at most {attention:.0e}, saliency by {min(saliency):.2f} to {max(saliency):.2f} of its mass"
    return Finding(attention < UNCHANGED and min(saliency) > CHANGED, ours)


def _judge_gradient(results: Results) -> Finding:
    """Judge plain word saliency against attention, both directions joined."""
    gains = {
        architecture: joined_rate(results, architecture, OURS_GRAD) - joined_rate(results, architecture, ATTENTION)
        for architecture in ARCHITECTURES
    }
    ours = ", ".join(f"{ARCHITECTURES[architecture]} {gain:+.1f}" for architecture, gain in gains.items())
    return Finding(gains["conv"] < 0 < min(gains["lstm"], gains["transformer"]), f"{ours} joined")


def _judge_most(results: Results) -> Finding:
    """Judge whether SmoothGrad gains most in the Transformer."""
    gains = {
        architecture: _average(all_rates(results, architecture, OURS_GRAD))
        - _average(all_rates(results, architecture, OURS_SMOOTH))
        for architecture in ARCHITECTURES
    }
    ours = ", ".join(f"{ARCHITECTURES[architecture]} {gain:.1f}" for architecture, gain in gains.items())
    return Finding(gains["transformer"] == max(gains.values()), f"{ours} points of AER on average")


def _judge_smoothed(results: Results) -> Finding:
    pairs = [
        pair
        for architecture in ARCHITECTURES
        for pair in zip(*(all_rates(results, architecture, one) for one in (SMOOTHED, ATTENTION)), strict=True)
    ]
    worse = sum(smoothed >= plain for smoothed, plain in pairs)
    return Finding(worse > MOST * len(pairs), f"no better in {worse} of {len(pairs)} columns")


def _judge_joined(results: Results) -> Finding:
    found = {}
    for architecture, name in ARCHITECTURES.items():
        each = [rate_of(results, FORCED, architecture, direction, OURS_SMOOTH) for direction in directions(results)]
        found[name] = (joined_rate(results, architecture, OURS_SMOOTH), min(each))
    ours = ", ".join(f"{name} {joined:.1f} against {best:.1f}" for name, (joined, best) in found.items())
    return Finding(all(joined < best for joined, best in found.values()), ours)


def _judge_order(results: Results) -> Finding:
    holds, phrases = [], []
    for method in (ATTENTION, OURS_SMOOTH):
        rates = [forced_mean(results, architecture, method) for architecture in ARCHITECTURES]
        holds.append(all(low < high for low, high in pairwise(rates)))
        phrases.append(f"{method} {' / '.join(f'{one:.1f}' for one in rates)}")
    return Finding(all(holds), "; ".join(phrases))


def _judge_free(results: Results) -> Finding:
    lower, pairs = 0, []
    for architecture, direction in models(results):
        forced, free = (
            _average([rate_of(results, decoding, architecture, direction, method) for method in PRINTED_METHODS])
            for decoding in DECODINGS
        )
        lower += free < forced
        pairs.append((free, forced))
    means = [_average([pair[place] for pair in pairs]) for place in range(2)]
    ours = f"{means[0]:.1f} against {means[1]:.1f} on average, lower in {lower} of {len(pairs)} models"
    return Finding(lower > MOST * len(pairs), ours)


def _judge_polarity(results: Results) -> Finding | None:
    rows = [row for row in _polarity(results).values() if row["precision there"] is not None]
    if not rows:
        return None
    lower = sum(row["precision there"] < row["precision elsewhere"] for row in rows)  # type: ignore[operator]
    there, elsewhere = (_average([row[f"precision {where}"] for row in rows]) for where in ("there", "elsewhere"))  # type: ignore[misc]
    ours = f"precision {there:.2f} against {elsewhere:.2f} on average, lower in {lower} of {len(rows)} models"
    return Finding(lower == len(rows), ours)


def _judge_aligner(results: Results) -> Finding:
    best = joined_rate(results, "conv", OURS_SMOOTH)
    aligner = aligner_rates(results)["diagonal offline"][joined_column(results)]
    return Finding(best < aligner, f"{best:.1f} against {aligner:.1f}")


def _judge_dispersion(results: Results) -> Finding:
    rising, phrases = [], []
    for architecture, name in ARCHITECTURES.items():
        for decoding in DECODINGS:
            entropies = _entropies(results, architecture, decoding)
            rising.append(all(low < high for low, high in pairwise(entropies)))
            if decoding == FORCED:
                phrases.append(f"{name} {' / '.join(f'{one:.2f}' for one in entropies)}")
    return Finding(all(rising), f"{', '.join(phrases)} in forced decoding; rising in {sum(rising)} of {len(rising)}")


def _entropies(results: Results, architecture: str, decoding: str) -> list[float]:
    noise = noise_of(results, architecture, decoding)
    return [found["entropy"] for column, found in noise.items() if column != ATTENTION]


def _judge_free_dispersion(results: Results) -> Finding:
    pairs = [
        (noise_of(results, architecture, FREE)[column]["entropy"], found["entropy"])
        for architecture in ARCHITECTURES
        for column, found in noise_of(results, architecture, FORCED).items()
    ]
    lower = sum(free < forced for free, forced in pairs)
    means = [_average([pair[place] for pair in pairs]) for place in range(2)]
    return Finding(
        lower == len(pairs), f"{means[0]:.2f} against {means[1]:.2f} nats on average, lower in {lower} of {len(pairs)}"
    )


def _judge_concentrated(results: Results) -> Finding:
    entropies = {one: noise_of(results, one, FORCED)[ATTENTION]["entropy"] for one in ARCHITECTURES}
    rates = {one: forced_mean(results, one, ATTENTION) for one in ARCHITECTURES}
    ours = ", ".join(f"{name} {entropies[one]:.2f} nats, AER {rates[one]:.1f}" for one, name in ARCHITECTURES.items())
    lowest = entropies["transformer"] == min(entropies.values())
    return Finding(lowest and rates["transformer"] == max(rates.values()), ours)


CLAIMS = (
    Claim(
        "exchange",
        "Attention cannot know which output it is asked about, saliency does: when an output is exchanged, its row of "
        f"attention stays as it is, and saliency changes by more than {CHANGED} of its mass.",
        "by construction (section 3)",
        _judge_exchange,
    ),
    Claim(
        "saliency",
        "Word saliency with SmoothGrad has fewer errors than attention, in every model: in forced and free decoding, "
        "and both directions joined.",
        "8.5 against 22.0, 13.8 against 25.8, 15.3 against 33.8 joined (table 1)",
        partial(_compare, lower=OURS_SMOOTH, higher=ATTENTION),
    ),
    Claim(
        "gradient",
        "Without SmoothGrad, word saliency has fewer errors than attention in the convolutional model only.",
        "-10.1, +4.6, +40.7 joined (table 1)",
        _judge_gradient,
    ),
    Claim(
        "smoothgrad",
        "SmoothGrad lowers the errors of word saliency, in every model: in forced and free decoding, and both "
        "directions joined.",
        "11.9 to 8.5, 30.4 to 13.8, 74.5 to 15.3 joined (table 1)",
        partial(_compare, lower=OURS_SMOOTH, higher=OURS_GRAD),
    ),
    Claim(
        "most",
        "SmoothGrad lowers the errors of word saliency most in the Transformer.",
        "3.4, 16.6, 59.2 points joined (table 1)",
        _judge_most,
    ),
    Claim(
        "smoothing",
        "Smoothing itself is not what helps: smoothed attention is no better than attention in most columns.",
        "worse most of the times (section 5.3)",
        _judge_smoothed,
    ),
    Claim(
        "li",
        "Li's measure has more errors than word saliency in the convolutional and the recurrent model, both with "
        "SmoothGrad, in every direction, decoding and joined.",
        "21.6 against 8.5, 22.0 against 13.8 joined (table 1)",
        partial(_compare, lower=OURS_SMOOTH, higher=LI_SMOOTH, only=("conv", "lstm")),
    ),
    Claim(
        "polarity",
        "Li's measure errs where it lacks polarity: its links are wrong more often where word saliency is negative, in "
        "every model.",
        "one sentence (figure 2)",
        _judge_polarity,
    ),
    Claim(
        "joined",
        "By word saliency with SmoothGrad, both directions joined have fewer errors than either.",
        "8.5 against 18.1 (table 1)",
        _judge_joined,
    ),
    Claim(
        "order",
        "The convolutional model has fewest errors and the Transformer most, by attention and by word saliency (mean "
        "of both directions, forced).",
        "25.6 / 35.9 / 48.4 and 19.7 / 26.1 / 27.8 (table 1)",
        _judge_order,
    ),
    Claim(
        "aligner",
        "The convolutional model's word saliency has fewer errors than fast_align's model, both joined.",
        "8.5 against 10.5 (table 1)",
        _judge_aligner,
    ),
    Claim(
        "free",
        "Free decoding has fewer errors than forced decoding, on average over methods, in most models.",
        "generally; in 4 of 6 English-French models (tables 1 and 2)",
        _judge_free,
    ),
    Claim(
        "dispersion",
        "The entropy of word saliency grows with the noise, in every architecture and decoding.",
        "1.36 / 1.48 / 1.89 / 2.59 and so on (table 3)",
        _judge_dispersion,
    ),
    Claim(
        "free-dispersion",
        "Entropies are lower in free than in forced decoding, of attention and at every noise.",
        "consistently (table 3)",
        _judge_free_dispersion,
    ),
    Claim(
        "concentrated",
        "The Transformer's attention has the lowest entropy, and the most errors.",
        "2.09 / 1.75 / 1.73 nats (table 3)",
        _judge_concentrated,
    ),
)


STUDY = Study(
    name="saliency",
    title="Is saliency a better word alignment than attention?",
    paper="Ding, Xu and Koehn 2019: Saliency-driven Word Alignment Interpretation for Neural Machine Translation (WMT)",
    presets={"quick": QUICK, "standard": STANDARD, "paper": PAPER},
    steps=build_steps,
    claims=CLAIMS,
    tables=(
        Table("Alignment error rate, forced decoding", "table 1", TABLE_1, _forced),
        Table("Alignment error rate, free decoding", "table 2", TABLE_2, lambda r: _by_method(r, FREE)),
        Table("Entropy of soft alignments, in nats", "table 3", TABLE_3, lambda r: _by_noise(r, "entropy")),
        Table(
            "Alignment error rate by noise, on the same pairs", "ours, to figure 3", {}, lambda r: _by_noise(r, "rate")
        ),
        Table("Li's links by the sign of word saliency", "ours, to figure 2", {}, _polarity),
        Table("What an exchanged output changes", "ours, to section 3", {}, _exchanges),
        Table("Translation models", "ours", {}, _translators),
    ),
    plots=draw_plots,
    on_real_data=lambda settings, data: settings.corpus != GENERATED,
    deviations=(
        "Models are trained on 227,000 pairs of the Hansards that can be had freely, not on 1.1 million; in the preset "
        "`standard` they are smaller than the paper's. The preset `quick` has a generated language.",
        "Samples of SmoothGrad are clamped at zero and normalised before their mean, as in the released code; the rows "
        "`plain mean` average them as the paper prints it. Gradients are of log-probabilities, as released.",
        "Li's measure is the paper's, the mean of absolute values; the released code has the absolute value of word "
        "saliency, in the rows `as released`.",
        "The reference of free decoding comes from our model of fast_align, trained on the training pairs without the "
        "translations (online).",
        "Table 3 is of English-French models, the paper's of German-English ones; entropies are of the first pairs of "
        "the test set.",
        "fast_align is our implementation of its model, `diagonal`; its directions are joined by grow-diag-strict, "
        "those of translation models by grow-diag-final-strict, as in the paper.",
        "Translations are searched with a beam of 4 in the preset `standard`, and the released 12 in `paper`.",
    ),
)
