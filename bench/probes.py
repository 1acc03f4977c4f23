"""Which way each decision of some packages went, seen by probes that are put into their code when it is imported.

A decision is an `if`, a `while`, a `for` or a `case`; each has two outcomes: its body was entered, or what comes after it
was reached. Conditions that are always true by their text have none. A tracer of lines would say the same at several
times the cost.
"""

import ast
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import itertools
import pathlib
import pkgutil
import sys
import types
from collections.abc import Sequence
from typing import Any

TEST = "_probe_tested"
PASS = "_probe_passed"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Decision:
    """One of a module; `number` tells those of one line apart."""

    module: str
    line: int
    number: int


Outcome = tuple[Decision, bool]
"""A decision, and whether its body was entered."""

_decisions: list[Decision | None] = []
"""By the number that its probe says; None for the end of a `match`, which is no decision itself."""
_seen: set[tuple[int, bool]] = set()
_before: dict[int, tuple[int, ...]] = {}
"""Of a `case`: those above it, which were tried and did not match when it was entered."""


def install(packages: Sequence[str]) -> None:
    """Imports all modules of these packages with probes in them. Nothing of them may have been imported before."""
    early = [name for name in sys.modules if name.startswith(tuple(f"{package}." for package in packages))]
    assert not early, f"imported before the probes: {early[:3]}"
    sys.meta_path.insert(0, _Finder(tuple(packages)))
    for name in packages:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)


def decisions() -> list[Decision]:
    """Every one of the imported modules."""
    return [each for each in _decisions if each is not None]


def outcomes() -> set[Outcome]:
    """Those that were seen since `forget`."""
    return {(decision, taken) for number, taken in _seen if (decision := _decisions[number]) is not None}


def forget() -> None:
    _seen.clear()


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(fullname == each or fullname.startswith(f"{each}.") for each in self._packages):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> types.CodeType:
        """From the source: bytecode that is kept has no probes."""
        tree = ast.parse(pathlib.Path(self.path).read_text(encoding="utf-8"))
        probed = ast.fix_missing_locations(_Probing(fullname).visit(tree))
        code: types.CodeType = compile(probed, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        setattr(module, TEST, _tested)
        setattr(module, PASS, _passed)
        super().exec_module(module)


def _tested(number: int, value: Any) -> Any:
    _seen.add((number, bool(value)))
    return value


def _passed(number: int, taken: bool) -> None:  # noqa: FBT001 - called from code that is put in
    _seen.add((number, taken))
    for before in _before.get(number, ()):
        _seen.add((before, False))


class _Probing(ast.NodeTransformer):
    """Puts the probes in; lines stay as they are."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._numbers = itertools.count()

    def _decision(self, line: int) -> int:
        _decisions.append(Decision(self._module, line, next(self._numbers)))
        return len(_decisions) - 1

    def _test(self, node: ast.If | ast.While) -> ast.AST:
        if not isinstance(node.test, ast.Constant) and not _is_for_types(node.test):
            key = self._decision(node.test.lineno)
            call = ast.Call(ast.Name(TEST, ast.Load()), [ast.Constant(key), node.test], [])
            node.test = ast.copy_location(call, node.test)
        self.generic_visit(node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._test(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._test(node)

    def _loop(self, node: ast.For | ast.AsyncFor) -> ast.AST:
        key = self._decision(node.lineno)
        self.generic_visit(node)
        node.body.insert(0, _probe(key, node.body[0], taken=True))
        node.orelse.insert(0, _probe(key, node.body[0], taken=False))
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._loop(node)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        tried: list[int] = []
        if not _matches_everything(node.cases[-1]):
            node.cases.append(ast.match_case(ast.MatchAs(None, None), None, [ast.copy_location(ast.Pass(), node)]))
        for case in node.cases:
            if _matches_everything(case):
                _decisions.append(None)
                number = len(_decisions) - 1
            else:
                number = self._decision(case.pattern.lineno)
            _before[number] = tuple(tried)
            tried.append(number)
            case.body.insert(0, _probe(number, case.body[0], taken=True))
        self.generic_visit(node)
        return node


def _probe(key: int, beside: ast.stmt, *, taken: bool) -> ast.stmt:
    call = ast.Call(ast.Name(PASS, ast.Load()), [ast.Constant(key), ast.Constant(taken)], [])
    return ast.copy_location(ast.Expr(call), beside)


def _matches_everything(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
