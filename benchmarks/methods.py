"""Attribution methods side by side with Inseq, Captum, the bare forward pass and the tensor that norms never build.

Every ratio comes from one run on one machine. `python benchmarks/methods.py [NAME ...]` prints JSON lines.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from opus import bert, in_process, marian, peak_bytes, seconds, sentences

import sightline
from sightline.attend.watch import Record, watch
from sightline.methods.norms import transformed_vectors

warnings.filterwarnings("ignore")


def bare_pass(model: Any, sources: list[str], targets: list[str]) -> Callable[[], None]:
    """Return the model's own forward pass over the same pairs in batches of 32, tokenised beforehand."""
    examples = [model.encode(s, t) for s, t in zip(sources, targets, strict=True)]
    examples.sort(key=len)
    batches = [model.inputs(model.batch(examples[i : i + 32])) for i in range(0, len(examples), 32)]

    @torch.no_grad()
    def run() -> None:
        for inputs in batches:
            model.module(**inputs)

    return run


def against_bare_pass(method: str, count: int) -> dict[str, Any]:
    model = marian()
    sources, targets = sentences(count)
    model.attention_layers  # noqa: B018  the check on first use is not what is measured
    bare = seconds(bare_pass(model, sources, targets))
    ours = seconds(lambda: sightline.explain(model, sources, targets, method=method))
    return {"pairs": count, "bare pass": bare, "ours": ours, "ours / bare pass": ours / bare}


def _inseq(model: Any, method: str) -> Any:
    import inseq

    return inseq.load_model(model.module, method, tokenizer=model.tokenizer)


def inseq_attention() -> dict[str, Any]:
    model = marian()
    sources, targets = sentences(64)
    model.attention_layers  # noqa: B018
    ours = seconds(lambda: sightline.explain(model, sources, targets, method="attention"))
    bare = seconds(bare_pass(model, sources, targets))
    model.module.set_attn_implementation("eager")
    peer = _inseq(model, "attention")
    theirs = seconds(lambda: peer.attribute(sources, targets, batch_size=1, show_progress=False), repeats=1)
    return {"pairs": 64, "ours": ours, "inseq": theirs, "faster": theirs / ours, "ours / bare pass": ours / bare}


def inseq_saliency() -> dict[str, Any]:
    return _against_inseq("saliency", 16)


def inseq_occlusion() -> dict[str, Any]:
    return _against_inseq("occlusion", 4)


def _against_inseq(method: str, count: int) -> dict[str, Any]:
    model = marian()
    sources, targets = sentences(count)
    results: dict[str, Any] = {}

    def run_ours() -> None:
        results["ours"] = sightline.explain(model, sources, targets, method=method)

    ours = seconds(run_ours, repeats=2)
    peer = _inseq(model, method)

    def run_theirs() -> None:
        results["theirs"] = peer.attribute(sources, targets, batch_size=count, show_progress=False)

    theirs = seconds(run_theirs, repeats=1)
    differences = [
        _difference(why.scores, theirs_one.source_attributions)
        for why, theirs_one in zip(results["ours"], results["theirs"].sequence_attributions, strict=True)
    ]
    return {
        "pairs": count,
        "ours": ours,
        "inseq": theirs,
        "faster": theirs / ours,
        "largest difference / largest score": max(differences),
    }


def _difference(ours: np.ndarray, theirs: torch.Tensor) -> float:
    """Compare (target, source) with Inseq's (source, target[, embedding]), as far as both go."""
    scores = theirs.norm(dim=-1) if theirs.ndim == 3 else theirs
    matrix = scores.T.numpy()
    rows, columns = min(len(ours), len(matrix)), min(ours.shape[1], matrix.shape[1])
    pair = ours[:rows, :columns], matrix[:rows, :columns]
    real = ~np.isnan(pair[1])
    return float(np.abs(pair[0] - pair[1])[real].max() / pair[0].max())


def captum_smoothgrad() -> dict[str, Any]:
    from captum.attr import InputXGradient, NoiseTunnel

    model = marian()
    sources, targets = sentences(4)
    module = model.module
    examples = [model.encode(s, t) for s, t in zip(sources, targets, strict=True)]
    for parameter in module.parameters():
        parameter.requires_grad_(False)

    def captum() -> None:
        for example in examples:
            batch = model.batch([example])
            embedded = module.get_encoder().embed_tokens(batch.ids) * module.get_encoder().embed_scale
            spread = float(0.15 * (embedded.max() - embedded.min()))
            for output in range(len(example.outputs)):

                def forward(embedding: torch.Tensor, output: int = output, example: Any = example, batch: Any = batch):
                    steps = batch.decoder_ids.expand(len(embedding), -1)
                    logits = module(inputs_embeds=embedding, decoder_input_ids=steps, use_cache=False).logits
                    return logits[:, output].log_softmax(-1)[:, example.outputs[output]]

                NoiseTunnel(InputXGradient(forward)).attribute(
                    embedded, nt_type="smoothgrad", nt_samples=30, nt_samples_batch_size=30, stdevs=spread
                )

    def ours() -> None:
        sightline.explain(model, sources, targets, method="word_saliency", smoothgrad=30)

    mine, theirs = seconds(ours, repeats=1), seconds(captum, repeats=1)
    return {"pairs": 4, "samples": 30, "ours": mine, "captum": theirs, "faster": theirs / mine}


def norms_by_gram() -> dict[str, Any]:
    """Measure time and memory that norms add to the forward pass, ours and by the full tensor of weighted vectors."""
    results: dict[str, Any] = {}
    for length in (128, 512):
        runs = {kind: _measured_norms(kind, length) for kind in ("pass", "ours", "full")}
        added = {
            kind: {what: runs[kind][what] - runs["pass"][what] for what in ("seconds", "bytes")}
            for kind in ("ours", "full")
        }
        results[str(length)] = {
            "tokens": length,
            "pass": runs["pass"],
            "added by ours": added["ours"],
            "added by the full tensor": added["full"],
            "less time": added["full"]["seconds"] / max(added["ours"]["seconds"], 1e-4),
            "less memory": added["full"]["bytes"] / max(added["ours"]["bytes"], 2**20),
        }
    return results


def _measured_norms(kind: str, length: int) -> dict[str, float]:
    return in_process(
        f"import sys; sys.path[:0] = {sys.path[:1]!r}; import methods; methods.norms_once({kind!r}, {length})"
    )


@torch.no_grad()
def norms_once(kind: str, length: int) -> None:
    """Run the forward pass, with our norms or the full tensor, and print its time and peak memory."""
    model, text = bert(length)
    batch = model.batch([model.encode(text, None)])
    by_module = {layer.module: layer for layer in model.attention_layers}

    def full(module: torch.nn.Module, record: Record) -> torch.Tensor:
        vectors = transformed_vectors(by_module[module], record.values)  # (batch, source, head, model)
        weighted = torch.einsum("bhts,bshm->bhtsm", record.weights, vectors)
        return weighted.sum(1).norm(dim=-1)

    from sightline.methods.norms import norms
    from sightline.methods.settings import NormsSettings

    def run() -> None:
        if kind == "pass":
            model.run(batch)
        elif kind == "ours":
            norms(model, batch, NormsSettings())
        else:
            with watch(model.module, by_module, record=("weights", "values"), keep=full):
                model.run(batch)

    time = seconds(run, repeats=1 if kind == "full" and length > 128 else 4)
    print(json.dumps({"seconds": time, "bytes": peak_bytes()}))


BENCHMARKS: dict[str, Callable[[], dict[str, Any]]] = {
    "inseq attention": inseq_attention,
    "inseq saliency": inseq_saliency,
    "inseq occlusion": inseq_occlusion,
    "captum smoothgrad": captum_smoothgrad,
    "norms by the full tensor": norms_by_gram,
    "norms / bare pass": lambda: against_bare_pass("norms", 256),
}


def run(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run some benchmarks, or all, one after the other."""
    for name in names or BENCHMARKS:
        yield name, BENCHMARKS[name]()


if __name__ == "__main__":
    torch.set_num_threads(2)
    for name, figures in run(sys.argv[1:]):
        print(json.dumps({"benchmark": name, **figures}), flush=True)
