"""What a run says while it goes: lines for people, JSON lines for programs, TensorBoard where it is installed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sightline.files import append_line, write_text
from sightline.json_files import read_json_lines

LOG = "log.jsonl"


class Journal:
    """Writes `log.jsonl`: one object a line, with its `kind` (data, train, dev, warning, ...) and `step`."""

    def __init__(self, output: Path, step: int, quiet: bool) -> None:
        """Go on after `step`: what an interrupted run wrote after its last checkpoint is happening again."""
        self.path = output / LOG
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        lines = self._lines() if self.path.exists() else ()
        write_text(self.path, "".join(f"{line}\n" for line, figures in lines if figures["step"] <= step))
        self.board = _board(output, step)

    def say(self, text: str) -> None:
        """Print a line for people."""
        self.console.print(text, markup=False)

    def record(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Write down figures of a step."""
        append_line(self.path, json.dumps({"kind": kind, "step": step, **figures}, ensure_ascii=False))
        if self.board is not None:
            for name, value in figures.items():
                if isinstance(value, int | float):
                    self.board.add_scalar(f"{kind}/{name}", value, step)
            self.board.flush()

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Return what was written down of a kind, from the beginning of the run."""
        return [record for _, record in self._lines() if record["kind"] == kind]

    def _lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        remedy = "Remove it to go on; only what it recorded is lost."
        return read_json_lines(self.path, {"kind": str, "step": int}, remedy)


def _board(output: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(output / "tensorboard"), purge_step=step + 1)


def duration(seconds: float) -> str:
    """Write a time for people: `45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
