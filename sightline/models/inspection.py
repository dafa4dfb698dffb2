"""Finding a model's attention layers by watching it run.

No table of families is kept for this: a small forward pass shows which modules attend, in which order, and to what;
and whether a watched pass gives the same numbers as the model's own eager attention. Only the name of the output
projection has to be guessed, and the guess is checked against what the projection is really given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sightline.attend.hooks import Before, hooks
from sightline.attend.watch import Record, Watch, eager_attention, watch
from sightline.errors import InputError

KINDS = ("cross", "encoder", "decoder")
OUTPUT_NAMES = ("out_proj", "o_proj", "o", "c_proj", "out_lin", "dense")
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6}
TOLERANCE_HALF = 0.1


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer: its module, what kind it is, its number among its kind, its output projection if known.

    Where one module serves several layers (ALBERT), `call` is the number of this layer's among the module's calls in a
    pass.
    """

    module: nn.Module
    kind: str
    index: int
    output: nn.Module | None
    call: int = 0

    def seen_by(self, watch: Watch) -> Any:
        """Return what a watch over one pass recorded in this layer."""
        return watch.call(self.module, self.call)

    def output_map(self, heads: int) -> Float[Tensor, "head width model"]:
        """Give the linear map from each head's values to the layer's output, without its bias.

        It is read off by applying the projection to unit vectors, so that a wrapped (LoRA) or quantised projection
        counts as it acts.
        """
        if self.output is None:
            raise InputError(
                f"The output projection of {type(self.module).__name__} is not known, so norms cannot be computed: "
                "use attention, a gradient method or erasure for this model."
            )
        if isinstance(self.output, nn.Linear):
            matrix = self.output.weight.T
        else:
            parameter = next(self.output.parameters(), torch.empty(0))  # a quantised projection has none
            width = getattr(self.output, "in_features", None) or len(parameter)  # transformers' Conv1D is (in, out)
            unit = torch.eye(width, dtype=parameter.dtype, device=parameter.device)
            matrix = self.output(unit) - self.output(torch.zeros_like(unit))
        return matrix.reshape(heads, -1, matrix.shape[-1])


def find_attention(
    model: nn.Module, run: Callable[[nn.Module], Tensor], source_length: int, target_length: int | None
) -> list[AttentionLayer]:
    """Run a model once under watch, and list its attention layers in the order in which they run.

    `run(model)` gives logits for a probe of these lengths; `target_length` is None where there is no decoder with
    cross-attention. A model whose watched logits differ from its own eager ones is refused.
    """
    with torch.no_grad():
        with eager_attention(model) as reference:
            expected = run(reference)
        inputs: dict[nn.Module, Tensor] = {}
        candidates = [module for name, module in model.named_modules() if name.split(".")[-1] in OUTPUT_NAMES]
        keeping = hooks(before=[(module, _keep_input(inputs)) for module in candidates])
        with keeping, watch(model, record=("weights", "values")) as seen:
            logits = run(model)
    if not seen.calls:
        raise InputError(
            f"{type(model).__name__} has no attention that Sightline can watch: "
            "use a gradient method or erasure for this model."
        )
    error = (logits - expected).abs().max().item() / max(expected.abs().max().item(), 1e-6)
    if not error <= TOLERANCE.get(logits.dtype, TOLERANCE_HALF):
        raise InputError(
            f"{type(model).__name__} computes attention in a way that Sightline does not reproduce "
            f"(its logits differ by {error:.1e} under watch): use a gradient method or erasure for this model."
        )
    encoder = set(model.get_encoder().modules()) if target_length is not None else set()  # type: ignore[operator]
    parents = {child: parent for parent in model.modules() for child in parent.children()}
    layers: list[AttentionLayer] = []
    for module in seen.order:
        first = seen.call(module, 0)
        if target_length is None:
            kind = _kind_in_one_stack(first)
        elif module in encoder:
            kind = "encoder"
        else:
            kind = "cross" if _source_length(first) == source_length else "decoder"
        index = sum(layer.kind == kind for layer in layers)
        call = sum(layer.module is module for layer in layers)
        layers.append(AttentionLayer(module, kind, index, _output(module, first, parents, inputs), call))
    return layers


def _keep_input(inputs: dict[nn.Module, Tensor]) -> Before:
    def keep(module: nn.Module, args: tuple[Tensor, ...], _kwargs: object) -> None:
        if args:  # of the first call, as the record that it is compared with
            inputs.setdefault(module, args[0])

    return keep


def _kind_in_one_stack(record: Record) -> str:
    """Tell a classifier's one query over all its states from a causal stack and from one that sees everything."""
    assert record.weights is not None
    if record.weights.shape[2] == 1:
        return "cross"
    return "decoder" if bool(record.weights.triu(1).abs().max() == 0) else "encoder"


def _source_length(record: Record) -> int:
    assert record.weights is not None
    return record.weights.shape[-1]


def _output(
    module: nn.Module, record: Record, parents: dict[nn.Module, nn.Module], inputs: dict[nn.Module, Tensor]
) -> nn.Module | None:
    """Find the projection that is given exactly the concatenated heads of this layer."""
    assert record.weights is not None
    assert record.values is not None
    heads = record.weights.to(record.values.dtype) @ record.values  # (batch, head, target, width)
    given = heads.transpose(1, 2).flatten(2)  # (batch, target, head * width)
    places = [module]
    if module in parents:  # BERT keeps the projection in a sibling
        places.append(getattr(parents[module], "output", None) or parents[module])
    for projection in (getattr(place, name, None) for place in places for name in OUTPUT_NAMES):
        found = None if projection is None else inputs.get(projection)
        if found is None or found.numel() != given.numel():
            continue
        if torch.allclose(found.reshape(given.shape), given, rtol=1e-3, atol=1e-3):
            return projection
    return None
