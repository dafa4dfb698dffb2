"""Evaluation mode for as long as anyone needs it: the first thread switches a model over, the last switches it back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from torch import nn


@dataclass
class _Evaluation:
    """How many contexts evaluate a model, and what to switch back after the last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    contexts: int = 0
    were_training: list[nn.Module] = field(default_factory=list)
    trainable: list[nn.Parameter] = field(default_factory=list)

    def begin(self, model: nn.Module) -> None:
        self.were_training = [module for module in model.modules() if module.training]
        self.trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        model.eval()
        for parameter in self.trainable:
            parameter.requires_grad_(False)

    def end(self) -> None:
        for module in self.were_training:  # perhaps not all of them: parts of a model in training may be frozen
            module.training = True
        for parameter in self.trainable:
            parameter.requires_grad_(True)
        self.were_training, self.trainable = [], []  # which would keep the model in memory


_evaluations: WeakKeyDictionary[nn.Module, _Evaluation] = WeakKeyDictionary()
_evaluations_lock = threading.Lock()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch a model's dropout and its parameters' gradients off, as long as the context lasts."""
    with _evaluations_lock:
        evaluation = _evaluations.setdefault(model, _Evaluation())
    with evaluation.lock:
        evaluation.contexts += 1
        if evaluation.contexts == 1:
            evaluation.begin(model)
    try:
        yield
    finally:
        with evaluation.lock:
            evaluation.contexts -= 1
            if evaluation.contexts == 0:
                evaluation.end()
