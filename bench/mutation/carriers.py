"""Modules that carry mutants: each is compiled once with all of its mutants in it, and a number says which one is active.

An expression `e` with mutant 7 becomes `(mutant if _mutant(7) else e)`, a statement an `if` of that form. So a process
imports everything once, and a fork of it becomes any mutant by a single assignment. What asks is recorded: that is the
set of mutants whose place a test has reached.
"""

import ast
import collections
import importlib.abc
import importlib.machinery
import pathlib
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Final

from bench.mutation.sites import Site, changes

SWITCH: Final = "_mutant"

active: int | None = None
reached: set[int] = set()


def install(root: pathlib.Path, mutants: Sequence[Site]) -> None:
    """From now on the modules of these sites are imported with their mutants. None may have been imported before."""
    by_path: dict[str, list[tuple[int, Site]]] = collections.defaultdict(list)
    for number, site in enumerate(mutants):
        by_path[str(root / site.path)].append((number, site))
    early = [name for name, module in sys.modules.items() if getattr(module, "__file__", None) in by_path]
    assert not early, f"imported before their mutants: {early[:3]}"
    sys.meta_path.insert(0, _Finder(by_path))


def activate(number: int) -> None:
    global active  # noqa: PLW0603 - the switch of this process
    active = number


def is_active(number: int) -> bool:
    reached.add(number)
    return number == active


def carrier(source: str, mutants: Sequence[tuple[int, Site]]) -> ast.Module:
    """The module with its mutants; their lines stay as they are."""
    tree = ast.parse(source)
    wanted: dict[int, list[tuple[int, Site]]] = collections.defaultdict(list)
    for number, site in mutants:
        wanted[site.node].append((number, site))
    by_node = {id(node): wanted[number] for number, node in enumerate(ast.walk(tree)) if number in wanted}
    carrying = _Carrying(by_node).visit(tree)
    assert isinstance(carrying, ast.Module)
    return ast.fix_missing_locations(carrying)


class _Carrying(ast.NodeTransformer):
    """Children first, so that a mutant of the whole keeps the mutants of its parts."""

    def __init__(self, by_node: Mapping[int, list[tuple[int, Site]]]) -> None:
        self._by_node = by_node

    def visit(self, node: ast.AST) -> ast.AST:
        mutants = self._by_node.get(id(node), ())
        self.generic_visit(node)
        result = node
        for number, site in mutants:
            changed = ast.copy_location(changes(node)[site.change], node)
            asked = ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])
            if isinstance(changed, ast.expr):
                assert isinstance(result, ast.expr)
                result = ast.copy_location(ast.IfExp(asked, changed, result), node)
            else:
                assert isinstance(result, ast.stmt)
                result = ast.copy_location(ast.If(asked, [changed], [result]), node)
        return result


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, by_path: Mapping[str, list[tuple[int, Site]]]) -> None:
        self._by_path = by_path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or spec.origin not in self._by_path:
            return None
        spec.loader = _Loader(fullname, spec.origin, self._by_path[spec.origin])
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutants: Sequence[tuple[int, Site]]) -> None:
        super().__init__(fullname, path)
        self._mutants = mutants

    def get_code(self, fullname: str) -> types.CodeType:  # noqa: ARG002 - the loader's shape
        """From the source: bytecode that is kept has no mutants."""
        source = pathlib.Path(self.path).read_text(encoding="utf-8")
        code: types.CodeType = compile(carrier(source, self._mutants), self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        setattr(module, SWITCH, is_active)
        super().exec_module(module)
