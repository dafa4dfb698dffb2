"""The guide: every block of Python and every command in it is run, its references are those of the code, its links lead
somewhere, and it builds without a warning.

Blocks of a page share one namespace and one folder, which holds a few files that pages speak of. What stands in a block
of `text` is a form, or needs the network. A block after `<!-- slow -->` is run by `make test-slow`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sightline
from sightline.cli import main
from sightline.data.gold import gold_files
from sightline.models.box import has_box_model
from sightline.training.recipe import Recipe
from sightline.values import describe_fields

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
BLOCK = re.compile(r"^(<!-- slow -->\n+)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "console", "text", "yaml"}


class Block(NamedTuple):
    language: str
    code: str
    slow: bool


def blocks(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(language, code, bool(slow)) for slow, language, code in BLOCK.findall(text)]


def is_run(block: Block, slow: bool) -> bool:
    return block.language in ("python", "console") and block.slow == slow


def tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that pages speak of, and a `sightline` on the path for pipes."""
    english, spanish, gold = gold_files("everyday")
    for name, path in (("text.en", english), ("text.es", spanish), ("text.gold", gold)):
        (tmp_path / name).write_text("".join(Path(path).read_text(encoding="utf-8").splitlines(True)[:6]), "utf-8")
    for name in ("en", "es"):
        shutil.copy(tmp_path / f"text.{name}", tmp_path / f"more.{name}")
    (tmp_path / "sentences.txt").write_text("The cat sleeps .\nIt rains .\n", encoding="utf-8")
    shutil.copy(REPOSITORY / "recipes" / "tiny.yaml", tmp_path / "tiny.yaml")
    command = tmp_path / "bin" / "sightline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m sightline.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(page: str, slow: bool) -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    for block in blocks(page):
        if not is_run(block, slow):
            continue
        if block.language == "python":
            exec(compile(block.code, page, "exec"), names)
            continue
        for line in block.code.splitlines():
            if line.startswith("$ "):
                run_command(line.removeprefix("$ "))


def run_command(command: str) -> None:
    """Run a plain `sightline` command here, which saves importing torch each time; any other one in a shell."""
    if command.startswith("sightline ") and not re.search(r"[|<>&;$`]", command):
        with pytest.raises(SystemExit) as stopped:
            main(shlex.split(command)[1:])
        assert stopped.value.code in (0, None), command
    else:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.skipif(not has_box_model(), reason="this installation lacks its own model")
@pytest.mark.parametrize("page", [page for page in PAGES if any(is_run(block, slow=False) for block in blocks(page))])
@pytest.mark.usefixtures("folder")
def test_blocks_of_the_guide_run(page: str) -> None:
    run_page(page, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(is_run(block, slow=True) for block in blocks(page))])
@pytest.mark.usefixtures("folder")
def test_slow_blocks_of_the_guide_run(page: str) -> None:
    run_page(page, slow=True)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_names_its_language(page: str) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_in_the_guide(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!\w+:)([^)#]+)[^)]*\)", prose):
        target = (DOCS / page).parent.joinpath(link).resolve()
        assert target.is_file(), link
        assert target.is_relative_to(DOCS), f"{link} is not part of the site"


def test_references_are_those_of_the_code() -> None:
    """If this fails, run tools/write_reference.py."""
    for name, text in tool("write_reference").pages().items():
        assert (DOCS / "reference" / name).read_text(encoding="utf-8") == text, name


def test_every_key_of_a_recipe_is_described() -> None:
    recipes = (DOCS / "reference" / "recipes.md").read_text(encoding="utf-8")
    assert not re.findall(r"^\|.*\|\s*\|$", recipes, re.MULTILINE)
    assert describe_fields(Recipe)["folder"]


def test_public_names_are_in_the_reference() -> None:
    listed = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: [\w.]+\.(\w+)$", listed, re.MULTILINE))
    assert {"score_alignments" if name == "score" else name for name in sightline.__all__} <= named


@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="needs the extra docs")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "sightline").symlink_to(REPOSITORY / "sightline")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = (tmp_path / "site" / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    assert "without_special" in reference
    assert (tmp_path / "site" / "extending" / "index.html").is_file()
