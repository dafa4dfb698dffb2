"""Finding a model's attention layers by watching it run.

No table of families is kept for this: a small forward pass shows which modules attend, in which order, and to what;
and whether a watched pass gives the same numbers as the model's own eager attention. Only the names of the value and
output projections have to be guessed, and the guesses are checked against what the projections really give and are
given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sightline.attend.hooks import After, Before, hooks
from sightline.attend.watch import Record, Watch, eager_attention, watch
from sightline.errors import InputError

OUTPUT_NAMES = ("out_proj", "o_proj", "o", "c_proj", "out_lin", "dense")
VALUE_NAMES = ("v_proj", "value", "v_lin", "v", "c_attn")
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6}
TOLERANCE_HALF = 0.1


@dataclass(frozen=True)
class ValueProjection:
    """The projection from which a layer has its values: a module, and where in its output they start and end.

    Each head's values serve `groups` heads of queries.
    """

    module: nn.Module
    start: int
    end: int
    groups: int


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer: its module, what kind it is, its number among its kind, its projections where known.

    Where one module serves several layers (ALBERT), `call` is the number of this layer's among the module's calls in a
    pass.
    """

    module: nn.Module
    kind: str
    index: int
    output: nn.Module | None
    call: int = 0
    value: ValueProjection | None = None

    def seen_by(self, watch: Watch) -> Any:
        """Return what a watch over one pass recorded in this layer."""
        return watch.call(self.module, self.call)

    def output_map(self, heads: int) -> Float[Tensor, "head width model"]:
        """Return the linear map from each head's values to the layer's output, without its bias.

        It is read off by applying the projection to unit vectors, so that a wrapped (LoRA) or quantised projection
        counts as it acts.
        """
        if self.output is None:
            raise InputError(
                f"The output projection of {type(self.module).__name__} is not known, so norms cannot be computed: "
                "use attention, a gradient method or erasure for this model."
            )
        matrix, _ = _affine_map(self.output)
        return matrix.reshape(heads, -1, matrix.shape[-1])

    def value_map(self, heads: int) -> tuple[Float[Tensor, "head model width"], Float[Tensor, "head width"]]:
        """Return the linear map from the layer's input to each head's values, and its bias."""
        if self.value is None:
            raise InputError(
                f"The value projection of {type(self.module).__name__} is not known, so what it does to its input "
                "cannot be measured."
            )
        matrix, bias = (part[..., self.value.start : self.value.end] for part in _affine_map(self.value.module))
        by_head = matrix.reshape(len(matrix), heads // self.value.groups, -1).transpose(0, 1)
        biases = bias.reshape(heads // self.value.groups, -1)
        return by_head.repeat_interleave(self.value.groups, 0), biases.repeat_interleave(self.value.groups, 0)


def _affine_map(projection: nn.Module) -> tuple[Float[Tensor, "input output"], Float[Tensor, " output"]]:
    """Read off the matrix and the bias of a projection, as it acts."""
    if isinstance(projection, nn.Linear):
        matrix = projection.weight.T
        return matrix, matrix.new_zeros(matrix.shape[1]) if projection.bias is None else projection.bias
    parameter = next(projection.parameters(), torch.empty(0))  # a quantised projection has none
    width = getattr(projection, "in_features", None) or len(parameter)  # transformers' Conv1D is (in, out)
    unit = torch.eye(width, dtype=parameter.dtype, device=parameter.device)
    bias = projection(torch.zeros_like(unit))
    return projection(unit) - bias, bias[0]


def _run_at_all(run: Callable[[nn.Module], Tensor], model: nn.Module) -> Tensor:
    """Run a model for the first time; nonsense in its configuration may show only now, in any way."""
    try:
        return run(model)
    except InputError:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise InputError(
            f"{type(model).__name__} cannot be run ({reason}): take its config.json and its weights from one place."
        ) from error


def find_attention(
    model: nn.Module, run: Callable[[nn.Module], Tensor], source_length: int, target_length: int | None
) -> list[AttentionLayer]:
    """Run a model once under watch, and list its attention layers in the order in which they run.

    `run(model)` gives logits for a probe of these lengths; `target_length` is None where there is no decoder with
    cross-attention. A model whose watched logits differ from its own eager ones is refused.
    """
    with torch.no_grad():
        with eager_attention(model) as reference:
            expected = _run_at_all(run, reference)
        inputs: dict[nn.Module, Tensor] = {}
        outputs: dict[nn.Module, Tensor] = {}
        keeping = hooks(
            before=[(module, _keep_input(inputs)) for module in _named(model, OUTPUT_NAMES)],
            after=[(module, _keep_output(outputs)) for module in _named(model, VALUE_NAMES)],
        )
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
        output = _output(module, first, parents, inputs)
        layers.append(AttentionLayer(module, kind, index, output, call, _value(module, first, outputs)))
    return layers


def _named(model: nn.Module, names: tuple[str, ...]) -> list[nn.Module]:
    return [module for name, module in model.named_modules() if name.split(".")[-1] in names]


def _keep_input(inputs: dict[nn.Module, Tensor]) -> Before:
    def keep(module: nn.Module, args: tuple[Tensor, ...], _kwargs: object) -> None:
        if args:  # of the first call, as the record that it is compared with
            inputs.setdefault(module, args[0])

    return keep


def _keep_output(outputs: dict[nn.Module, Tensor]) -> After:
    def keep(module: nn.Module, _args: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(output, Tensor):
            outputs.setdefault(module, output)

    return keep


def _kind_in_one_stack(record: Record) -> str:
    """Distinguish a classifier's one query over all its states from a causal stack and one that sees everything."""
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


def _value(module: nn.Module, record: Record, outputs: dict[nn.Module, Tensor]) -> ValueProjection | None:
    """Find the projection that gives exactly this layer's values, alone or after queries and keys (GPT-2)."""
    assert record.values is not None
    for projection in filter(None, (getattr(module, name, None) for name in VALUE_NAMES)):
        given = outputs.get(projection)
        if given is None or given.ndim != 3:
            continue
        for groups in _divisors(record.values.shape[1]):  # heads of queries that share one head of values
            values = record.values[:, ::groups].transpose(1, 2).flatten(2)  # (batch, source, head * width)
            width = given.shape[-1]
            start = width - values.shape[-1]
            if start < 0 or given.shape[:2] != values.shape[:2]:
                continue
            if torch.allclose(given[..., start:], values, rtol=1e-3, atol=1e-3):
                return ValueProjection(projection, start, width, groups)
    return None


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
