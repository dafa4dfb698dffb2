"""How long it takes to start: in a fresh process each, the best of a few.

    import sightline                 the package alone
    sightline --help                 the command line
    first explanation                load the model in the box, explain one sentence pair
    torch and transformers           import what it needs: what of that time is not ours

`python benchmarks/startup.py` prints JSON; an explanation is left out where the package lacks its model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from sightline.models.box import has_box_model

RUNS = 5
CODE = {
    "import, s": "import sightline",
    "help, s": "from sightline.cli import main; main(['--help'])",
    "first explanation, s": (
        "import sightline; sightline.explain(sightline.load(), 'The cat sleeps.', 'El gato duerme.').words()"
    ),
    "torch and transformers, s": "import torch; from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
}
NEEDS_THE_MODEL = "first explanation, s"


def seconds(code: str) -> float:
    """Run code in a process of its own."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    names = [name for name in CODE if has_box_model() or name != NEEDS_THE_MODEL]
    print(json.dumps({name: min(seconds(CODE[name]) for _ in range(RUNS)) for name in names}))


if __name__ == "__main__":
    main()
