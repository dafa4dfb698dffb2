"""How far a run is: lines done, lines a second, time left; on a terminal's standard error, once it takes a while."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

SECONDS_OF_SILENCE = 2.0


class Progress:
    """A progress bar that appears after two seconds, and goes away at the end."""

    def __init__(self, label: str, shown: bool | None = None) -> None:
        self.label, self.shown = label, shown
        self.done = 0
        self.total: float | None = None
        self._bar: Bar | None = None
        self._timer = threading.Timer(SECONDS_OF_SILENCE, self._show)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._ended = False

    def __enter__(self) -> Progress:
        from rich.console import Console

        if Console(stderr=True).is_terminal if self.shown is None else self.shown:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()

    def begin(self, label: str, total: int | None = None) -> None:
        """Begin another step, with this many rows where that is known, and count from zero."""
        with self._lock:
            self.label, self.done, self.total = label, 0, total
            if self._bar is not None:
                self._bar.reset(self._bar.task_ids[0], description=label, total=total)

    def advance(self, rows: int, share: float | None = None) -> None:
        """Count rows that are done; `share` says how much of the input they and those before them are."""
        with self._lock:
            self.done += rows
            if share:
                self.total = max(self.done, self.done / share)
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=self.done, total=self.total)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        class Rate(TextColumn):
            def __init__(self) -> None:
                super().__init__("")

            def render(self, task: Task):  # type: ignore[no-untyped-def]
                from rich.text import Text

                return Text("" if task.speed is None else f"{task.speed:,.0f} a second")

        with self._lock:
            if self._ended:
                return
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f} lines"),
                Rate(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,  # what is written there is the result, and not for the terminal's errors
                speed_estimate_period=600.0,
            )
            self._bar.add_task(self.label, completed=self.done, total=self.total)
            self._bar.start()
