"""Faults of the machine while a corpus is worked on by the command: each has its sentence, and nothing is lost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ALIGN = [sys.executable, "-m", "sightline.cli", "align", "--method", "norms", "-s", "layer=1", "-s", "reading=input"]


@pytest.fixture
def command(folder: str, rows: list[tuple[str, str]], tmp_path: Path) -> list[str]:
    many = rows * 100
    (tmp_path / "text").write_text("".join(f"{source}\t{target}\n" for source, target in many))
    return [*ALIGN, "-m", folder, "--workers", "1", str(tmp_path / "text")]


def test_a_file_that_may_not_grow_is_told_and_resumed(command: list[str], tmp_path: Path) -> None:
    """A quota of bytes stands for a full disk, which only the system's administrator can make."""
    whole, out, record = tmp_path / "whole", tmp_path / "out", tmp_path / "out.partial.json"
    subprocess.run([*command, "-o", str(whole)], check=True, stderr=subprocess.PIPE)
    limit = whole.stat().st_size // 2

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    resumed = [*command, "--resume", "-o", str(out)]
    stopped = subprocess.run(resumed, stderr=subprocess.PIPE, text=True, preexec_fn=limited)
    assert stopped.returncode == 2, stopped.stderr
    assert stopped.stderr.splitlines()[-1] == (
        f"sightline: {out} cannot be written: File too large. What is done is kept: make room, and start the same "
        "command again."
    )
    done = json.loads(record.read_text())["rows"]
    assert 0 < done < 3100
    assert not out.exists()
    again = subprocess.run(resumed, check=True, stderr=subprocess.PIPE)
    assert again.stderr == b""
    assert out.read_bytes() == whole.read_bytes()
