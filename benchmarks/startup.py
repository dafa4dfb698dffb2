"""How long it takes to start: in a fresh process each, the best of a few.

    import sightline                 the package alone
    sightline --help                 the command line
    first explanation                load the model in the box, explain one sentence pair
    the same by transformers alone   load it and run it on the pair: what of that time is not ours

`python benchmarks/startup.py` prints JSON; the last two are left out where the package lacks its model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from sightline.models.box import BOX_MODEL, box_folder, has_box_model

RUNS = 5
CODE = {
    "import, s": "import sightline",
    "help, s": "from sightline.cli import main; main(['--help'])",
    "first explanation, s": (
        "import sightline; sightline.explain(sightline.load(), 'The cat sleeps.', 'El gato duerme.').words()"
    ),
    "transformers alone, s": (
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer; "
        f"folder = {str(box_folder() / BOX_MODEL)!r}; tokenizer = AutoTokenizer.from_pretrained(folder); "
        "pair = tokenizer('>>es<< The cat sleeps.', text_target='El gato duerme.', return_tensors='pt'); "
        "AutoModelForSeq2SeqLM.from_pretrained(folder, dtype='float32')(**pair, output_attentions=True)"
    ),
}
NEED_THE_MODEL = ("first explanation, s", "transformers alone, s")


def seconds(code: str) -> float:
    """Run code in a process of its own."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    names = [name for name in CODE if has_box_model() or name not in NEED_THE_MODEL]
    print(json.dumps({name: min(seconds(CODE[name]) for _ in range(RUNS)) for name in names}))


if __name__ == "__main__":
    main()
