"""Run the benchmarks and write benchmarks/RESULTS.md: the machine, the versions, every figure beside its aim.

`python benchmarks/report.py [NAME ...]` renews the figures of the scripts named (methods, explain_overhead, ...), by
default of all; the figures of the others stay. `SCRIPT:PART` renews one part of a script that has several
(corpus:memory). Run it on an idle machine: ratios are taken within one run, and still suffer when something else takes
the cores.
"""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from sightline.provenance import find_version

HERE = Path(__file__).parent
FIGURES = HERE / "figures.json"
PACKAGES = ("torch", "transformers", "numpy", "numba", "inseq", "captum", "accelerate")
SCRIPTS = ("methods", "explain_overhead", "startup", "training", "calibration", "alignment", "aligners")
# benchmark, figure, aim: what each figure should be at least (>=) or at most (<=).
AIMS = (
    ("inseq attention", "faster", ">= 2"),
    ("inseq attention", "ours / bare pass", "<= 1.3"),
    ("inseq saliency", "faster", ">= 2"),
    ("inseq saliency", "largest difference / largest score", "<= 0.0001"),
    ("inseq occlusion", "faster", ">= 15"),
    ("captum smoothgrad", "faster", ">= 2"),
    ("norms by the full tensor", "128.less time", ">= 8"),
    ("norms by the full tensor", "128.less memory", ">= 50"),
    ("norms by the full tensor", "512.less time", ">= 8"),
    ("norms by the full tensor", "512.less memory", ">= 50"),
    ("norms / bare pass", "ours / bare pass", "<= 1.5"),
    ("explain_overhead", "seconds_against_forward", "<= 1.3"),
    ("startup", "import, s", "<= 0.3"),
    ("startup", "help, s", "<= 0.5"),
    ("startup", "first explanation, s", "<= 5"),
    ("training", "ratio", ">= 0.9"),
    ("calibrated training", "calibrated / plain", "<= 2.3"),
    ("calibrated generation", "calibrated / plain", "<= 1.3"),
    ("calibrated memory of a step", "calibrated / plain", "<= 2.5"),
    ("LSTM decoding", "200 / 50", "<= 1.2"),
    ("align / bare pass", "align / bare pass", ">= 0.65"),
    ("statistical aligners", "diagonal model, s", "<= 9"),
    ("align --aligner, Tatoeba", "eflomal / diagonal", ">= 4"),
    ("align --aligner, Hansards", "eflomal / hmm", ">= 2"),
    ("align, killed and resumed", "same bytes", ">= 1"),
    ("align, peak memory", "largest / smallest", "<= 1.1"),
    ("align, beside other aligners", "adapter / norms", ">= 0.8"),
    ("align, beside other aligners", "BERT-base / SimAlign", ">= 2"),
    ("align, beside other aligners", "BERT-base / awesome-align", ">= 2"),
    ("align, beside other aligners", "BERT-base in bfloat16 / SimAlign", ">= 2"),
    ("align, beside other aligners", "BERT-base in bfloat16 / awesome-align", ">= 2"),
    ("align, beside other aligners", "OPUS-MT's size, time / bare pass", "<= 1.2"),
    ("align, beside other aligners", "BERT-base, time / bare passes", "<= 1.2"),
    ("adapt", "minutes", "<= 60"),
    ("align on a cluster", "same bytes", ">= 1"),
    ("causal models", "attention / bare pass", "<= 1.2"),
    ("causal models", "erasure / Interpreto", "<= 0.5"),
    ("causal models", "saliency / Interpreto", "<= 0.5"),
    ("Mutation score", "killed in the end, %", ">= 85"),  # by tools/mutation_score.py, entered by hand
)


def figures_of(script: str) -> dict[str, Any]:
    """Run a script, or a part of it, which prints JSON lines with a name each, or one JSON object."""
    script, *part = script.split(":", 1)
    command = [sys.executable, HERE / f"{script}.py", *part]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    try:
        rows = [json.loads(text)]
    except json.JSONDecodeError:
        rows = [json.loads(line) for line in text.splitlines()]
    return {row.pop("benchmark", script): row for row in rows}


def read_figures() -> dict[str, Any]:
    """Read the figures that were measured before."""
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {}


def flat(figures: dict[str, Any], path: str = "") -> dict[str, float]:
    """Name nested figures by their path."""
    found: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            found |= flat(value, f"{path}{name}.")
        elif isinstance(value, int | float):
            found[path + name] = value
    return found


def holds(value: float, aim: str) -> bool:
    """Return whether a figure reaches its aim."""
    sign, bound = aim.split()
    return value >= float(bound) if sign == ">=" else value <= float(bound)


def write_results(results: dict[str, Any]) -> None:
    """Write the report."""
    lines = ["# Benchmarks", "", "Made by `make bench`; ratios are taken within one run.", ""]
    lines += ["| benchmark | figure | measured | aim | reached |", "|---|---|---|---|---|"]
    for benchmark, figure, aim in AIMS:
        value = flat(results.get(benchmark, {}).get("figures", {})).get(figure)
        measured = "not measured" if value is None else f"{value:.3g}"
        reached = "" if value is None else "yes" if holds(value, aim) else "no"
        lines.append(f"| {benchmark} | {figure} | {measured} | {aim} | {reached} |")
    for benchmark, result in results.items():
        lines += ["", f"## {benchmark}", "", f"{result['when']}, {result['machine']}; {result['versions']}", ""]
        lines += ["| figure | value |", "|---|---|"]
        lines += [f"| {name} | {value:.4g} |" for name, value in flat(result["figures"]).items()]
        lines += [line for note in result.get("notes", ()) for line in ("", note)]
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")


def conditions() -> dict[str, str]:
    """Return when, where and with which versions it was measured."""
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    found = {package: find_version(package) for package in PACKAGES}
    installed = [f"{package} {number}" for package, number in found.items() if number is not None]
    return {
        "when": datetime.date.today().isoformat(),
        "machine": f"{len(names)} cores of {names[0] if names else platform.machine()}",
        "versions": f"Python {platform.python_version()}, " + ", ".join(installed),
    }


def main() -> None:
    for script in sys.argv[1:] or SCRIPTS:
        for name, figures in figures_of(script).items():
            # Read anew: a benchmark may take an hour, and another report may have been written meanwhile.
            results = read_figures() | {name: {"figures": figures, **conditions()}}
            FIGURES.write_text(json.dumps(results, indent=1) + "\n")
    write_results(read_figures())


if __name__ == "__main__":
    main()
