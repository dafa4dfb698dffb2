"""Hooks on a model's modules that act only in the context (thread, task) that asked for them.

torch calls a module's hooks whoever runs the module. These look first whether the pass belongs to the context that set
them, so that several threads can ask one model different things at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import nn

Before = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]
"""Called with a module and its arguments before it runs."""
After = Callable[[nn.Module, tuple[Any, ...], Any], Any]
"""Called with a module, its positional arguments and its output; what it returns, if not None, replaces the output."""

_set_here: ContextVar[frozenset[object]] = ContextVar("sightline_hooks", default=frozenset())
registering = threading.Lock()
"""Held while hooks come and go; whoever walks through a model's hooks holds it too."""


@contextmanager
def hooks(
    *, before: Iterable[tuple[nn.Module, Before]] = (), after: Iterable[tuple[nn.Module, After]] = ()
) -> Iterator[None]:
    """Call functions before and after modules run, in this context alone and as long as it lasts."""
    key = object()

    def only_here_before(function: Before) -> Callable[..., None]:
        # Another thread that comes across this hook as it is removed calls it without keyword arguments.
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
            if key in _set_here.get():
                function(module, args, kwargs or {})

        return hook

    def only_here_after(function: After) -> After:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
            return function(module, args, output) if key in _set_here.get() else None

        return hook

    before, after = list(before), list(after)
    token = _set_here.set(_set_here.get() | {key})
    with registering:
        handles = [m.register_forward_pre_hook(only_here_before(f), with_kwargs=True) for m, f in before]
        handles += [m.register_forward_hook(only_here_after(f)) for m, f in after]
    try:
        yield
    finally:
        with registering:
            for handle in handles:
                handle.remove()
        _set_here.reset(token)
