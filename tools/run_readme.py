"""Run what the README shows, and put what it prints there: nothing stands in it that was not run.

    python tools/run_readme.py [README.md]

In blocks of ```console every `$ command` is run, in the repository, and what follows it is replaced by what it prints;
a ```python block is run, and the ```text block behind it replaced. A command that fails leaves its block as it was and
is told at the end. What commands write elsewhere stays there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = "100"


class FailedError(Exception):
    """A command of the README failed."""


def update(text: str) -> tuple[str, list[str]]:
    """Run all blocks of a text; give the text with their outputs, and the failures."""
    failures: list[str] = []

    def run_console(block: re.Match[str]) -> str:
        try:
            return f"```console\n{''.join(map(_run_command, commands_of(block[1])))}```"
        except FailedError as failure:
            failures.append(str(failure))
            return block[0]

    def run_python(block: re.Match[str]) -> str:
        try:
            return f"```python\n{block[1]}```\n\n```text\n{_run([sys.executable, '-c', block[1]], block[1])}```"
        except FailedError as failure:
            failures.append(str(failure))
            return block[0]

    return PYTHON.sub(run_python, CONSOLE.sub(run_console, text)), failures


def commands_of(block: str) -> list[str]:
    """List the commands of a block, without their prompts."""
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def _run_command(command: str) -> str:
    return f"$ {command}\n{_run(['bash', '-o', 'pipefail', '-c', command], command)}"


def _run(arguments: list[str], name: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": WIDTH, "NO_COLOR": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=REPOSITORY, env=environment)
    if done.returncode != 0:
        raise FailedError(f"{name.strip().splitlines()[0]}: {done.stderr.strip().splitlines()[-1:]}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n") + "\n"


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY / "README.md")
    text, failures = update(path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
