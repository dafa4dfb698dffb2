"""How many small changes of the formulas the tests notice: a mutation score over a random sample, with a fixed seed.

    python tools/mutation_score.py -o mutants.jsonl [--count 400] [--seed 0]
    python tools/mutation_score.py -o again.jsonl --survivors mutants.jsonl --budget 120

Everything happens in a copy of the repository, and without real corpora. The tests are collected once, and those of the
changed files run once, quick ones with all of their parameters and others with the first, to see which functions they
call (kept beside the output). Each mutant is then a fork of that process, in which the code of one function is
replaced, and which runs the tests that call it, the quickest first, until one fails. What stands outside of functions
is changed in the copy and imported anew. A mutant survives when no test has failed and all are done, or the budget of
CPU seconds is used up. A test that fails without the change, too, is left out. Functions that numba compiles run
uncompiled where they are changed. Results are appended as they come; what the output has already is skipped.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mutants import FUNCTIONS, Mutant, sample_mutants

REPOSITORY = Path(__file__).resolve().parents[1]
FILES = ("methods/*.py", "attend/*.py", "alignment/*.py", "measures/*.py", "studies/*/*.py")
NO_FORMULAS = {"__init__.py", "plots.py", "published.py", "results.py", "settings.py", "study.py"}
NO_FORMULAS |= {"files.py", "formats.py", "scanning.py", "rendering.py", "saved.py", "eflomal.py", "parallel.py"}
TESTS = (
    "alignment",
    "attend",
    "measures",
    "methods",
    "studies",
    "training/test_calibration.py",
    "test_faithfulness.py",
)
HEAVY = ("numba", "numpy", "pyarrow", "pytest", "scipy.stats", "torch", "transformers", "hypothesis", "sentencepiece")
QUICK_TEST = 0.5  # CPU seconds, while it is traced; all sets of parameters of such a test are traced
LONGEST_TEST = 20  # CPU seconds above twice the usual; a test that takes more with a change does not end any more
SURVIVED, FAILED = 0, 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=15.0, help="CPU seconds of tests for each mutant")
    parser.add_argument("--survivors", type=Path, help="try only those that survived in this output")
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    os.environ.pop("SIGHTLINE_DATA", None)  # or the tests of studies would look for a folder
    mutants = sample_mutants(REPOSITORY, _files(), arguments.count, arguments.seed)
    if arguments.survivors:
        survived = {r["mutant"] for r in _read(arguments.survivors) if r["outcome"] == "survived"}
        mutants = [mutant for mutant in mutants if mutant.name in survived]
    done = {result["mutant"] for result in _read(output)}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder, "repository")
        ignored = shutil.ignore_patterns(".git", ".venv", "node_modules", "runs")
        shutil.copytree(REPOSITORY, root, ignore=ignored, copy_function=shutil.copy2)
        os.chdir(root)
        sys.path[:0] = [str(root), str(root / "tests")]
        for name in HEAVY:
            importlib.import_module(name)
        left = [mutant for mutant in mutants if mutant.name not in done]
        random.Random(arguments.seed).shuffle(left)  # so that what is done of a stopped run is a fair sample
        compiles = {file for file in {mutant.file for mutant in left} if "@njit" in (root / file).read_text()}
        score = _Score(root, output, arguments.budget)
        for uncompiled in (False, True):
            some = [mutant for mutant in left if (mutant.file in compiles) == uncompiled]
            within = [mutant for mutant in some if mutant.function is not None]
            if within:
                _in_fork(lambda some=within, uncompiled=uncompiled: score.run_session(some, uncompiled))
            for mutant in some:
                if mutant.name not in {result["mutant"] for result in _read(output)}:
                    score.run_anew(mutant, uncompiled)
    _report(_read(output))


def _files() -> list[str]:
    found = {path for pattern in FILES for path in (REPOSITORY / "sightline").glob(pattern)}
    return sorted(str(path.relative_to(REPOSITORY)) for path in found if path.name not in NO_FORMULAS)


def _read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _report(results: Sequence[dict[str, Any]]) -> None:
    by_area: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        by_area[result["mutant"].split("/")[1]].append(result["outcome"] == "killed")
    for area, killed in [*sorted(by_area.items()), ("all", [one for some in by_area.values() for one in some])]:
        print(f"{area:10} {sum(killed):4} of {len(killed):4} killed ({sum(killed) / max(len(killed), 1):.1%})")


class _Score:
    """Runs the tests of mutants, and writes down what came of each."""

    def __init__(self, root: Path, output: Path, budget: float) -> None:
        self.root, self.output, self.budget = root, output, budget
        self.sound: dict[str, bool] = {}
        """Whether a test passes without any change."""
        self.calls: dict[str, tuple[float, set[tuple[str, str]]]] = {}
        """How long a test takes, and the functions (file and name) that it calls; kept beside the output."""

    def run_session(self, mutants: Sequence[Mutant], uncompiled: bool) -> None:
        """Collect all tests once, then run them on each mutant in a fork."""

        def loop(items: list[Any]) -> None:
            functions = _find_functions({mutant.file for mutant in mutants}, self.root)
            files = {file for mutant in mutants for file in _candidates(mutant, self.root)}
            traced = self._trace_path(uncompiled)
            self._read_trace(traced)
            here = [item for item in items if item.nodeid.partition("::")[0] in files]
            first = _first_parameters(here)
            self.trace([item for item in first if item.nodeid not in self.calls], traced)
            quick = {_function_of(test) for test, (seconds, _) in self.calls.items() if seconds < QUICK_TEST}
            others = [item for item in here if _function_of(item.nodeid) in quick]
            self.trace([item for item in others if item.nodeid not in self.calls], traced)
            for mutant in mutants:
                code = _code_of(mutant, self.root)
                places = functions.get((mutant.file, mutant.function or ""), [])
                if code is None or not places or any(_shape(place.__code__) != _shape(code) for place in places):
                    continue  # changed in the copy, later
                self.run(mutant, items, lambda places=places, code=code: _replace_code(places, code))

        _run_pytest([f"tests/{name}" for name in TESTS], loop, uncompiled)

    def run_anew(self, mutant: Mutant, uncompiled: bool) -> None:
        """Change the copy, and import everything in a new process, which has only the heavy packages."""
        path = self.root / mutant.file
        original, stamp = path.read_text(), path.stat().st_mtime
        tests = _candidates(mutant, self.root)
        self._read_trace(self._trace_path(uncompiled))

        def session() -> None:
            _run_pytest(tests, lambda items: self.run(mutant, items, None), uncompiled)

        path.write_text(ast.unparse(mutant.tree(self.root)))
        os.utime(path, (stamp + 10, stamp + 10))  # or Python takes what it had compiled before
        try:
            if _in_fork(lambda: importlib.import_module(_module_of(mutant.file))) == SURVIVED:
                _in_fork(session)
        finally:
            path.write_text(original)
            os.utime(path, (stamp, stamp))
        if mutant.name not in {result["mutant"] for result in _read(self.output)}:
            self.write(mutant, "killed", "import", 0.0, 0)  # it cannot even be imported

    def _trace_path(self, uncompiled: bool) -> Path:
        return self.output.with_suffix(".uncompiled" if uncompiled else ".compiled")

    def _read_trace(self, path: Path) -> None:
        for test, passed, seconds, names in _read(path):
            self.sound[test] = passed
            self.calls[test] = seconds, set(map(tuple, names))

    def trace(self, items: list[Any], path: Path) -> None:
        """Find out what tests call, in a fork."""

        def child() -> None:
            for number, item in enumerate(items):
                called: set[CodeType] = set()
                before = time.process_time()
                sys.settrace(lambda frame, *_, called=called: called.add(frame.f_code))
                threading.settrace(sys.gettrace())
                passed = _passes(item, items[number + 1] if number + 1 < len(items) else None)
                sys.settrace(None)
                names = {
                    (os.path.relpath(code.co_filename, self.root), _outermost(code.co_qualname))
                    for code in called
                    if code.co_filename.startswith(f"{self.root}/sightline/")
                }
                with path.open("a") as file:
                    file.write(json.dumps([item.nodeid, passed, time.process_time() - before, sorted(names)]) + "\n")

        _in_fork(child)
        self._read_trace(path)

    def run(self, mutant: Mutant, items: list[Any], change: Callable[[], None] | None) -> None:
        """Run tests on a mutant until one fails that passes without the change."""
        begun = time.monotonic()
        ordered = _order(items, mutant, self.root)
        if change is not None:
            ordered = self._calling(ordered, mutant)
        else:
            ordered = [item for item in ordered if self.sound.get(item.nodeid, True)]
        while True:
            outcome, culprit, count = self._try(ordered, change)
            if outcome == "survived" or change is None or self._is_sound(culprit, items):
                break
            ordered = [item for item in ordered if item.nodeid != culprit]
        self.write(mutant, outcome, culprit, time.monotonic() - begun, count)

    def _calling(self, ordered: list[Any], mutant: Mutant) -> list[Any]:
        """Choose the tests that call the changed function, the quickest first, then their other parameters."""
        wanted = (mutant.file, mutant.function)
        seconds = {test: time for test, (time, called) in self.calls.items() if wanted in called and self.sound[test]}
        callers = {_function_of(test) for test in seconds}
        first = sorted((item for item in ordered if item.nodeid in seconds), key=lambda item: seconds[item.nodeid])
        rest = [item for item in ordered if item.nodeid not in self.calls and _function_of(item.nodeid) in callers]
        return first + rest

    def _try(self, ordered: list[Any], change: Callable[[], None] | None) -> tuple[str, str, int]:
        read, write = os.pipe()

        def child() -> None:
            if change is not None:
                change()
            for number, item in enumerate(ordered):
                if time.process_time() > self.budget:
                    break
                os.write(write, f"{number}\n".encode())
                usual, _ = self.calls.get(item.nodeid, (0.0, set()))
                signal.setitimer(signal.ITIMER_PROF, LONGEST_TEST + 2 * usual)
                if not _passes(item, ordered[number + 1] if number + 1 < len(ordered) else None):
                    os._exit(FAILED)
            os._exit(SURVIVED)

        status = _in_fork(child)
        os.close(write)
        with os.fdopen(read) as file:
            tried = file.read().split()
        last = ordered[int(tried[-1])].nodeid if tried else "none"
        return ("survived" if status == SURVIVED else "killed"), last, len(tried)

    def _is_sound(self, test: str, items: list[Any]) -> bool:
        if test not in self.sound:
            self.sound[test] = self._try([item for item in items if item.nodeid == test], None)[0] == "survived"
        return self.sound[test]

    def write(self, mutant: Mutant, outcome: str, test: str, seconds: float, count: int) -> None:
        result = {"mutant": mutant.name, "outcome": outcome, "test": test, "tests": count, "seconds": round(seconds, 1)}
        with self.output.open("a") as file:
            file.write(json.dumps(result) + "\n")


def _in_fork(work: Callable[[], Any]) -> int:
    """Run work in a child and return its status; how it ends is its own affair."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(FAILED)
    return os.waitpid(child, 0)[1]


def _run_pytest(tests: Sequence[str], loop: Callable[[list[Any]], None], uncompiled: bool) -> None:
    """Let pytest collect tests, and a function run them."""
    import pytest

    class Plugin:
        @staticmethod
        def pytest_configure() -> None:
            if uncompiled:
                importlib.import_module("sightline.compilation").njit = lambda **_: lambda function: function

        @staticmethod
        def pytest_runtestloop(session: Any) -> bool:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            loop(session.items)
            return True

    pytest.main([*tests, "-p", "no:cacheprovider", "-p", "no:timeout", "--continue-on-collection-errors"], [Plugin()])


def _passes(item: Any, following: Any) -> bool:
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, nextitem=following, log=False))


def _function_of(test: str) -> str:
    """Name a test without its parameters."""
    return test.partition("[")[0]


def _module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _outermost(name: str) -> str:
    return name.partition(".<locals>")[0]


# The code of a mutant


def _find_functions(files: Iterable[str], root: Path) -> dict[tuple[str, str], list[FunctionType]]:
    """Find every function object of some files, wherever it is held."""
    for file in files:
        importlib.import_module(_module_of(file))
    paths = {str(root / file): file for file in files}
    found: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename in paths:
            found[paths[one.__code__.co_filename], one.__code__.co_qualname].append(one)
    return found


def _code_of(mutant: Mutant, root: Path) -> CodeType | None:
    """Compile the changed function; None if it stands for several (a property with its setter)."""
    wanted = [compile(mutant.tree(root), str(root / mutant.file), "exec", dont_inherit=True)]
    found = []
    while wanted:
        code = wanted.pop()
        inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        found += [one for one in inner if one.co_qualname == mutant.function]
        wanted += inner
    return found[0] if len(found) == 1 else None


def _shape(code: CodeType) -> tuple[Any, ...]:
    return code.co_freevars, code.co_argcount, code.co_kwonlyargcount


def _replace_code(places: Iterable[FunctionType], code: CodeType) -> None:
    for place in places:
        place.__code__ = code


# The order of tests


def _candidates(mutant: Mutant, root: Path) -> list[str]:
    """List the test files of a mutant: named after its file, importing it, in the folder of its folder."""
    return [file for file, _ in sorted(_ranks(mutant, root).items(), key=lambda pair: pair[1])]


def _ranks(mutant: Mutant, root: Path) -> dict[str, int]:
    path = Path(mutant.file)
    module = _module_of(mutant.file)
    imports = re.compile(rf"{re.escape(module)}\b|from {re.escape(module.rpartition('.')[0])} import .*\b{path.stem}\b")
    area = path.parts[1]
    names = {path.stem, path.parent.name} if area == "studies" else {path.stem}
    ranks = {}
    for name in TESTS:
        place = root / "tests" / name
        for file in sorted(place.glob("test_*.py")) if place.is_dir() else [place]:
            relative = str(file.relative_to(root))
            if file.stem.removeprefix("test_") in names and place.name == area:
                ranks[relative] = 0
            elif imports.search(file.read_text()):
                ranks[relative] = 1
            elif place.name == area:
                ranks[relative] = 2
    return ranks


def _order(items: list[Any], mutant: Mutant, root: Path) -> list[Any]:
    """Put tests that are likely to fail first; of each, one set of parameters before any other."""
    ranks = _ranks(mutant, root)
    word = (mutant.function or _assigned_name(mutant, root)).rpartition(".")[2].strip("_")
    seen: dict[str, int] = defaultdict(int)
    keyed = []
    for position, item in enumerate(items):
        file = item.nodeid.partition("::")[0]
        if file not in ranks:
            continue
        seen[_function_of(item.nodeid)] += 1
        turn = seen[_function_of(item.nodeid)]
        mentions = word and word in Path(file).read_text()
        late = ranks[file] if mentions else ranks[file] + 0.5
        keyed.append(((0 if turn <= 2 else 1, late if turn <= 2 else turn, turn, position), item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _first_parameters(items: list[Any]) -> list[Any]:
    """Leave all but the first set of parameters of each test out."""
    return list({_function_of(item.nodeid): item for item in reversed(items)}.values())[::-1]


def _assigned_name(mutant: Mutant, root: Path) -> str:
    """Return the name of the class, function or value whose definition has the mutant's line."""
    for node in ast.parse((root / mutant.file).read_text()).body:
        if node.lineno <= mutant.line <= (node.end_lineno or node.lineno):
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                return node.name
            targets = node.targets if isinstance(node, ast.Assign) else []
            return next((target.id for target in targets if isinstance(target, ast.Name)), "")
    return ""


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
