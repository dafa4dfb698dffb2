"""Reaching a model's input embeddings while it runs, one position at a time.

A hook on the side's own embedding module changes what the module gives, in the context that asked for it; ids stay as
they are, so that repeated words stay apart and nothing else in the model notices. (`inputs_embeds` is not an
equal way in: some models do not scale it, some shift positions, some refuse it.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from sightline.attend.hooks import After, hooks

UNLIMITED = 1_000_000
EmbeddingChange = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class EmbeddingSite:
    """Where one side is embedded, and the factor that the model multiplies the result with."""

    module: nn.Module
    scale: float = 1.0


def embedding_site(stack: Any) -> EmbeddingSite:
    """Find the embedding module of an encoder, a decoder or a whole model."""
    module = stack.get_input_embeddings() if hasattr(stack, "get_input_embeddings") else stack.embed_tokens
    # Marian and Pegasus scale outside the module; BART and M2M100 inside it.
    scale = 1.0 if hasattr(module, "embed_scale") else float(getattr(stack, "embed_scale", None) or 1.0)
    return EmbeddingSite(module, scale)


@contextmanager
def changed_embeddings(
    sites: dict[str, EmbeddingSite], encoder: nn.Module | None, **changes: EmbeddingChange
) -> Iterator[None]:
    """Apply a change to the (scaled) embeddings of each side named, as long as the context lasts."""
    running = _Running(encoder is not None and sites["source"].module is sites["prefix"].module)
    encoders = [encoder] if encoder is not None and running.shared else []
    after = [(sites[side].module, _hook(sites[side].scale, change, side, running)) for side, change in changes.items()]
    with hooks(
        before=[(module, lambda *_: running.enter()) for module in encoders],
        after=[*after, *((module, lambda *_: running.leave()) for module in encoders)],
    ):
        yield


@dataclass
class _Running:
    """Tells the sides apart where one embedding module serves both."""

    shared: bool
    in_encoder: bool = False

    def enter(self) -> None:
        self.in_encoder = True

    def leave(self) -> None:
        self.in_encoder = False

    def concerns(self, side: str) -> bool:
        return not self.shared or self.in_encoder == (side == "source")


def _hook(scale: float, change: EmbeddingChange, side: str, running: _Running) -> After:
    def hook(_module: nn.Module, _args: object, output: Tensor) -> Tensor | None:
        return change(output * scale) / scale if running.concerns(side) else None

    return hook


def count_positions(module: nn.Module, tokenizer: Any) -> int:
    """Return how many positions a model has embeddings for, and its tokenizer allows."""
    config: Any = module.config
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = getattr(config, "max_position_embeddings", None) or UNLIMITED
    embeddings = [m for m in module.modules() if getattr(m, "padding_idx", None) is not None]
    if any(isinstance(m, nn.Embedding) and m.num_embeddings == positions for m in embeddings):
        positions -= config.pad_token_id + 1  # RoBERTa counts positions from after the padding id
    return min(positions, tokenizer.model_max_length or UNLIMITED)
