"""Statistical aligners beside eflomal: how long training takes, and commands from text files to files of links.

`python benchmarks/aligners.py` prints JSON lines. It needs the Hansards, Tatoeba and the package eflomal. The commands
are run in turn, each as often; the wall time of the best run counts, and the processor time of the best run beside it,
which tells more where something else takes the cores.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from opus import seconds

from sightline.alignment.bitext import build_bitext
from sightline.alignment.position_model import train_diagonal
from sightline.data.corpora import data_path, read_tab_separated
from sightline.data.hansard import read_training_pairs

FAST_ALIGN_SECONDS = 28  # five iterations in one direction on the Hansards, on 2 cores
SIGHTLINE = [sys.executable, "-c", "from sightline.cli import main; main()"]
EFLOMAL = "import sys; from eflomal import Aligner; s, t, f, r = sys.argv[1:]; Aligner().align(open(s), open(t), f, r)"
RUNS = 2

Pairs = list[tuple[str, str]]


def compare_training(pairs: Pairs) -> dict[str, float]:
    """Train the diagonal model in one direction, five iterations, words to model."""
    words = [(source.split(), target.split()) for source, target in pairs]
    train_diagonal(build_bitext(words[:100]))  # compiles
    diagonal = seconds(lambda: train_diagonal(build_bitext(words)), repeats=3)
    return {
        "pairs": len(words),
        "diagonal model, s": diagonal,
        "fast_align / diagonal model": FAST_ALIGN_SECONDS / diagonal,
    }


def compare_commands(pairs: Pairs) -> dict[str, float]:
    """Align two files in both directions by `sightline align` and by eflomal; the former also joins the directions."""
    with TemporaryDirectory(prefix="sightline-aligners-") as folder:
        few, texts = write_texts(Path(folder, "few"), pairs[:100]), write_texts(Path(folder, "all"), pairs)
        links = [str(Path(folder, name)) for name in ("forward", "reverse")]
        commands = {
            name: [*SIGHTLINE, "align", "--aligner", name, "-o", links[0], *texts] for name in ("diagonal", "hmm")
        }
        for command in commands.values():
            run([*command[:-2], *few])  # compiles
        commands["eflomal"] = [sys.executable, "-c", EFLOMAL, *texts, *links]
        wall, processor = dict.fromkeys(commands, float("inf")), dict.fromkeys(commands, float("inf"))
        for _ in range(RUNS):
            for name, command in commands.items():
                elapsed, used = run(command)
                wall[name], processor[name] = min(wall[name], elapsed), min(processor[name], used)
    return {
        "pairs": len(pairs),
        "runs": RUNS,
        "load average": os.getloadavg()[0],  # of an idle machine, about 1
        **{f"{name}, s": value for name, value in wall.items()},
        **{f"{name}, s of processor time": value for name, value in processor.items()},
        "eflomal / diagonal": wall["eflomal"] / wall["diagonal"],
        "eflomal / diagonal, processor time": processor["eflomal"] / processor["diagonal"],
        "eflomal / hmm": wall["eflomal"] / wall["hmm"],
        "eflomal / hmm, processor time": processor["eflomal"] / processor["hmm"],
    }


def write_texts(stem: Path, pairs: Pairs) -> list[str]:
    """Write both sides of pairs to files; return their names."""
    paths = [stem.with_suffix(ending) for ending in (".source", ".target")]
    for path, sentences in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    return list(map(str, paths))


def run(command: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time and its processor time."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    elapsed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    hansards = list(read_training_pairs(data_path("hansard-en-fr")))
    tatoeba = list(read_tab_separated(data_path("tatoeba-en-es/pairs.tsv.gz")))
    for name, measure, pairs in (
        ("statistical aligners", compare_training, hansards),
        ("align --aligner, Tatoeba", compare_commands, tatoeba),
        ("align --aligner, Hansards", compare_commands, hansards),
    ):
        print(json.dumps({"benchmark": name, **measure(pairs)}), flush=True)


if __name__ == "__main__":
    main()
