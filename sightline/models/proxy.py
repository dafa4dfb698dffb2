"""The bag-of-words proxy of Snell et al. 2021 (section 2.3): how individual words are learned before attention is.

Every output word of a pair is predicted from the mean of the source's embeddings, by one linear layer without bias:

    p_t = softmax(1/L sum_l W e_{x_l})        (eq. 5)
    beta_tl = softmax(W e_{x_l})_{y_t}        (eq. 6)

For classification the one output "word" is the label. At its start, with e_i and W_o from N(0, I/d), gradient flow on
the loss (eq. 14) moves the logits W e_i by 2 (C_io - mean over o' of C_io') as d grows, where C is the count table of
IBM Model 1 (eq. 54; eq. 15 prints the same for the probabilities, whose derivative has a further factor 1/|O|).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

Words = Sequence[int]


class BagOfWords(nn.Module):
    """The proxy model: an embedding for every source word, and W."""

    def __init__(self, sources: int, outputs: int, width: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sources, width)
        self.output = nn.Linear(width, outputs, bias=False)
        for weight in (self.embedding.weight, self.output.weight):
            nn.init.normal_(weight, std=width**-0.5)

    def forward(self, words: Int[Tensor, " word"], starts: Int[Tensor, " pair"]) -> Float[Tensor, "pair output"]:
        """Return the logits of each source; they lie end to end in `words`, the i-th from `starts[i]`."""
        return self.output(nn.functional.embedding_bag(words, self.embedding.weight, starts, mode="mean"))

    @torch.no_grad()
    def probe(self, source: Words, target: Words) -> Float[np.ndarray, "target source"]:
        """Return the probability of each target word under each source word alone (eq. 6)."""
        probabilities = self.output(self.embedding(torch.tensor(source))).softmax(-1)
        return probabilities[:, torch.tensor(target)].T.numpy()

    @torch.no_grad()
    def log_odds(self, source: Words, target: Words) -> Float[np.ndarray, "target source"]:
        """Return the probe as logits, log(beta / (1 - beta)), which do not round to the same number near 1."""
        logits = self.output(self.embedding(torch.tensor(source)))  # (source, output)
        rows = []
        for word in target:
            others = logits.clone()
            others[:, word] = -torch.inf
            rows.append(logits[:, word] - others.logsumexp(-1))
        return torch.stack(rows).numpy()


def proxy_loss(model: BagOfWords, sources: Sequence[Words], targets: Sequence[Words]) -> tuple[Float[Tensor, ""], int]:
    """Return the negative log-likelihood of all output words, and how many they are (eq. 14)."""
    words = torch.tensor([word for source in sources for word in source])
    starts = torch.tensor(np.cumsum([0, *(len(source) for source in sources[:-1])]))
    log_probs = model(words, starts).log_softmax(-1)
    pairs = torch.repeat_interleave(torch.arange(len(targets)), torch.tensor([len(target) for target in targets]))
    outputs = torch.tensor([word for target in targets for word in target])
    return -log_probs[pairs, outputs].sum(), len(outputs)


@dataclass(frozen=True)
class ProxySettings:
    """The size and the training of a proxy."""

    width: int = 256
    batch: int = 32
    steps: int = 4000
    learning_rate: float = 1e-3


def train_proxy(
    sources: Sequence[Words],
    targets: Sequence[Words],
    vocabulary: tuple[int, int],
    settings: ProxySettings,
    seed: int,
    callback: Callable[[int, BagOfWords], None] = lambda step, model: None,
) -> BagOfWords:
    """Train a proxy with Adam on the mean loss of an output word; the callback sees it before and after every step."""
    torch.manual_seed(seed)
    model = BagOfWords(*vocabulary, settings.width)
    optimizer = torch.optim.Adam(model.parameters(), settings.learning_rate)
    batches = shuffled_batches(len(sources), settings.batch, seed)
    callback(0, model)
    for step in range(1, settings.steps + 1):
        rows = next(batches)
        loss, outputs = proxy_loss(model, [sources[row] for row in rows], [targets[row] for row in rows])
        (loss / outputs).backward()
        optimizer.step()
        optimizer.zero_grad()
        callback(step, model)
    return model


def shuffled_batches(examples: int, batch: int, seed: int) -> Iterator[Int[np.ndarray, " row"]]:
    """Yield the numbers of the examples of batch after batch, without end, shuffled in every epoch."""
    rng = np.random.default_rng([seed, 1])
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < batch:
            waiting = np.concatenate([waiting, rng.permutation(examples)])
        yield waiting[:batch]
        waiting = waiting[batch:]


def logit_derivative(
    model: BagOfWords, sources: Sequence[Words], targets: Sequence[Words]
) -> Float[np.ndarray, "source output"]:
    """Return the derivative by time, under gradient flow on the loss of all pairs, of every logit W_o . e_i.

    d(W e)/dt = W de/dt + dW/dt e, with de/dt and dW/dt the negative gradients (eq. 39-41, signs mended)
    """
    loss, _ = proxy_loss(model, sources, targets)
    embedding, output = model.embedding.weight, model.output.weight
    embedding_slope, output_slope = torch.autograd.grad(loss, [embedding, output])
    flow = -(embedding_slope @ output.T) - embedding @ output_slope.T
    return flow.detach().numpy()


def expected_derivative(counts: Float[np.ndarray, "source output"]) -> Float[np.ndarray, "source output"]:
    """Return what the derivative at the start comes to in a wide model: 2 (C_io - mean of the row) (eq. 54)."""
    return 2 * (counts - counts.mean(axis=1, keepdims=True))
