"""Measuring a translation model: loss, accuracy, and BLEU with sacreBLEU's signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from sacrebleu.metrics import BLEU
from torch import nn

from sightline.data.corpora import TextPair
from sightline.models.directions import language_token
from sightline.models.loading import load
from sightline.training.batches import EncodedPairs, epoch_batches
from sightline.verbs.translating import translate


@dataclass(frozen=True)
class Measured:
    """What a model does on held-out pairs.

    Cross-entropy in nats and the fraction of correct labels, label by label after the true prefix; and a translation
    model's BLEU, with its signature, by direction.
    """

    loss: float
    accuracy: float
    bleu: dict[str, float] = field(default_factory=dict)
    signature: str = ""


@torch.no_grad()
def measure(
    objective: nn.Module, pairs: EncodedPairs, batch_tokens: int, accelerator: Accelerator
) -> tuple[float, float]:
    """Return cross-entropy and accuracy over all labels; the batches are shared out among processes."""
    objective.eval()
    batches = epoch_batches(pairs, batch_tokens, seed=0, epoch=0)
    counts = np.zeros(3)
    for rows in batches[accelerator.process_index :: accelerator.num_processes]:
        _, batch_counts = objective(**pairs.tensors(rows, accelerator.device))
        counts += batch_counts.double().cpu().numpy()
    everywhere = accelerator.reduce(torch.from_numpy(counts).to(accelerator.device, torch.float32), "sum")
    cross_entropy, correct, labels = everywhere.tolist()
    return cross_entropy / labels, correct / labels


def measure_bleu(
    model: Any,
    tokenizer: Any,
    pairs: Sequence[TextPair],
    languages: tuple[str, str],
    bidirectional: bool,
    generation: dict[str, Any],
    accelerator: Accelerator,
) -> tuple[dict[str, float], str]:
    """Translate the sources, both ways if the model does; give BLEU by direction, and its signature."""
    metric = BLEU(force=True)  # else it warns that text is tokenised, which here it may be
    scores: dict[str, float] = {}
    for source, target in ((0, 1), (1, 0)) if bidirectional else ((0, 1),):
        prefix = f"{language_token(languages[target])} " if bidirectional else ""
        loaded = load(model, tokenizer, prefix=prefix)
        # Each process translates every n-th sentence; gathered, they stand process by process.
        mine = [pair[source] for pair in pairs[accelerator.process_index :: accelerator.num_processes]]
        translations = [translation.text for translation in translate(loaded, mine, progress=False, **generation)]
        gathered = gather_object(translations)
        references = [
            pair[target]
            for process in range(accelerator.num_processes)
            for pair in pairs[process :: accelerator.num_processes]
        ]
        direction = f"{languages[source]}-{languages[target]}"
        scores[direction] = metric.corpus_score(gathered, [references]).score
    return scores, str(metric.get_signature())
