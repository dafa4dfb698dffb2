"""Hooks act in the context that set them, as long as it lasts, and leave nothing behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn

from sightline.attend.hooks import _set_here, hooks


def test_hooks_see_and_change_what_their_own_context_runs() -> None:
    module, given = nn.Identity(), []

    def note(_module: nn.Module, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        given.append(args[0])

    elsewhere: list[torch.Tensor] = []
    one = torch.ones(1)
    with hooks(before=[(module, note)], after=[(module, lambda _module, _args, output: output + 1)]):
        assert module(one) == 2
        thread = threading.Thread(target=lambda: elsewhere.append(module(5 * one)))
        thread.start()
        thread.join()
    assert elsewhere == [5]
    assert given == [1]
    assert module(one) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_behind(fails: bool) -> None:
    module = nn.Identity()
    try:
        with hooks(before=[(module, print)], after=[(module, print)]):
            assert len(_set_here.get()) == 1
            if fails:
                raise InterruptedError
    except InterruptedError:
        pass
    assert not module._forward_hooks
    assert not module._forward_pre_hooks
    assert not _set_here.get()  # or it would grow with every pass
