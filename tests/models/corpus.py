"""A few pairs of the generated language as tensors, to be learned by heart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sightline.data.language import GeneratedLanguage, LanguageSettings

PAD, END = 0, 1


@dataclass(frozen=True)
class Corpus:
    """Ids of sources and targets, padded on the right."""

    vocabulary: int
    sources: Tensor
    mask: Tensor
    labels: Tensor

    @property
    def real(self) -> Tensor:
        return self.labels != -100


def generated_corpus(count: int) -> Corpus:
    """Return the first pairs of a small generated language, a word an id."""
    pairs = GeneratedLanguage(LanguageSettings(stems=50, clauses=1)).pairs(count)
    words = sorted({word for pair in pairs for word in (*pair.source_words, *pair.target_words)})
    ids = {word: number for number, word in enumerate(words, 2)}
    sources = _padded([[*(ids[word] for word in pair.source_words), END] for pair in pairs], PAD)
    labels = _padded([[*(ids[word] for word in pair.target_words), END] for pair in pairs], -100)
    return Corpus(len(words) + 2, sources, (sources != PAD).long(), labels)


def _padded(rows: list[list[int]], value: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def learn_by_heart(model, corpus: Corpus, rate: float, steps: int) -> float:
    """Train until every label is right, at most so many steps; give the share of labels that are."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    decoder_ids = model.prepare_decoder_input_ids_from_labels(corpus.labels)
    accuracy = 0.0
    for step in range(1, steps + 1):
        model.train()
        logits = model(corpus.sources, corpus.mask, decoder_ids, use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1), corpus.labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            model.eval()
            with torch.no_grad():
                predicted = model(corpus.sources, corpus.mask, decoder_ids, use_cache=False).logits.argmax(-1)
            accuracy = (predicted == corpus.labels)[corpus.real].float().mean().item()
            if accuracy == 1:
                break
    return accuracy
