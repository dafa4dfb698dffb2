"""Mutants of Python source: one small change each, that a good test notices.

A change is one of: another comparison, another operator, a number one greater, True for False, a condition negated, a
`not` or a statement left out, two arguments exchanged. Docstrings, annotations, assertions and what is raised stay.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
LEFT_ALONE = ("annotation", "returns", "decorator_list", "exc", "cause")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutant:
    """A change of one node of a file: the node's number in the order of `ast.walk`, and which of its changes."""

    file: str
    line: int
    column: int
    node: int
    change: str
    function: str | None
    """The outermost function that the change is inside, as `Class.name`; None outside of all bodies."""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column} {self.change}"

    def tree(self, root: Path) -> ast.Module:
        """Parse the file, and make the change."""
        tree = ast.parse((root / self.file).read_text(encoding="utf-8"))
        _apply(tree, list(ast.walk(tree))[self.node], self.change)
        return ast.fix_missing_locations(tree)


def find_mutants(root: Path, file: str) -> list[Mutant]:
    """List all mutants of a file."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    return [
        Mutant(file, node.lineno, node.col_offset, numbers[id(node)], change, function)
        for node, function in _changeable(tree, None, ())
        for change in _changes(node)
    ]


def sample_mutants(root: Path, files: list[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants at random, from each file in proportion to how many it has, and at least one."""
    rng = random.Random(seed)
    by_file = {file: found for file in files if (found := find_mutants(root, file))}
    total = sum(map(len, by_file.values()))
    quotas = {file: max(1, round(count * len(found) / total)) for file, found in by_file.items()}
    largest = sorted(quotas, key=lambda file: -quotas[file])
    excess = sum(quotas.values()) - count
    for number in range(abs(excess)):  # what rounding added or left out
        quotas[largest[number % len(largest)]] -= 1 if excess > 0 else -1
    drawn = [mutant for file, found in by_file.items() for mutant in rng.sample(found, min(quotas[file], len(found)))]
    return sorted(drawn, key=lambda mutant: (mutant.file, mutant.line, mutant.node, mutant.change))


def _changeable(node: ast.AST, function: str | None, within: tuple[str, ...]) -> Iterator[tuple[ast.AST, str | None]]:
    """Yield the nodes that may be changed, each with the outermost function whose body it is in."""
    for name, value in ast.iter_fields(node):
        if name in LEFT_ALONE or isinstance(node, ast.Assert | ast.Import | ast.ImportFrom):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_docstring(child) or _is_all(child):
                continue
            inner = function
            if isinstance(node, FUNCTIONS) and function is None and name == "body":
                inner = ".".join((*within, node.name))
            yield child, inner
            deeper = (*within, child.name) if isinstance(child, ast.ClassDef) and inner is None else within
            yield from _changeable(child, inner, deeper)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(n, ast.Name) and n.id == "__all__" for n in node.targets)


def _changes(node: ast.AST) -> Iterator[str]:
    """Name the changes that a node allows."""
    if isinstance(node, ast.Compare):
        yield from (f"compare {number}" for number in range(len(node.ops)))
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS and not _joins_texts(node):
        yield "operator"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "no sign"
    elif isinstance(node, ast.BoolOp):
        yield "and/or"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield "constant"
    elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.comprehension):
        if not isinstance(node, ast.comprehension) and not isinstance(node.test, ast.Compare | ast.BoolOp):
            yield "negated"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "left out"
    elif isinstance(node, ast.Call) and len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args):
        yield "exchanged"


def _joins_texts(node: ast.BinOp | ast.AugAssign) -> bool:
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(isinstance(part, ast.JoinedStr) or _is_text(part) for part in parts)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _apply(tree: ast.Module, node: ast.AST, change: str) -> None:
    """Change a node in place."""
    if isinstance(node, ast.Compare):
        number = int(change.split()[1])
        node.ops[number] = COMPARISONS[type(node.ops[number])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp):
        _replace(tree, node, node.operand)
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Expr):
        _replace(tree, node, ast.Pass())
    else:
        assert isinstance(node, ast.Call)
        node.args[0], node.args[1] = node.args[1], node.args[0]


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> None:
    new = copy.copy(new)
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[[item is old for item in value].index(True)] = new
