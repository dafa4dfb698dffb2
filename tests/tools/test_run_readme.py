"""The README: its outputs come from running it, and what it names is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.app import COMMANDS

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("run_readme", REPOSITORY / "tools" / "run_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_outputs_are_replaced(tool: Any) -> None:
    text = (
        "before\n\n```console\n$ echo one; echo two\nold\n$ echo three\n```\n\n"
        "```python\nprint('four')\n```\n\n```text\nold\n```\n\n```\n$ left alone\n```\n"
    )
    expected = (
        "before\n\n```console\n$ echo one; echo two\none\ntwo\n$ echo three\nthree\n```\n\n"
        "```python\nprint('four')\n```\n\n```text\nfour\n```\n\n```\n$ left alone\n```\n"
    )
    assert tool.update(text) == (expected, [])
    assert tool.update(expected) == (expected, [])


def test_a_failure_leaves_its_block_and_is_told(tool: Any) -> None:
    text = "```console\n$ echo oops >&2; false\nold\n```\n"
    assert tool.update(text) == (text, ["echo oops >&2; false: ['oops']"])


def test_commands_of_the_readme_exist(tool: Any) -> None:
    commands = [command for block in tool.CONSOLE.findall(README) for command in tool.commands_of(block)]
    named = re.findall(r"(?:^|\| |&& )sightline (\w+)", "\n".join(commands), re.MULTILINE)
    named += re.findall(r"`sightline (\w+)", README)
    assert len(named) > 5
    assert set(named) <= set(COMMANDS)


def test_links_of_the_readme_lead_somewhere() -> None:
    without_comments = re.sub(r"<!--.*?-->", "", README, flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)\)", without_comments):
        assert (REPOSITORY / link).exists(), link
    for path in re.findall(r"(?:sightline/data|recipes|tools)/[\w./-]+\w", README):
        assert (REPOSITORY / path).exists(), path
