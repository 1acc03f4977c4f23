"""One expression of the product made plausibly wrong, and how a running process gets it.

A mutation is data: the module, the function, the source of one expression in it and of what stands there instead. The
module is compiled anew with that expression, and each function keeps its identity and gets the code of its twin, so that
every module that has imported it before runs the mutant. Values that were made while the module was imported
(constants, defaults of parameters) are worked out anew and put where the old ones were.
"""

import ast
import builtins
import copy
import dataclasses
import functools
import gc
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any


class DoesNotApplyError(Exception):
    """The mutation does not fit the source: the expression moved, changed, or the mutant would be no mutant."""


@dataclass(frozen=True)
class Mutation:
    """`old` is the source of one expression in `function`, compared as a tree, and `new` what stands there instead.

    `function` is `name`, `Class.method`, or the name of a constant of the module or of a class, or of a field whose
    annotation is meant. Functions inside functions belong to the outermost. `index` says which, where `old` occurs more than once.
    """

    module: str
    function: str
    old: str
    new: str
    index: int | None = None

    def __str__(self) -> str:
        at = "" if self.index is None else f" [{self.index}]"
        return f"{self.module}.{self.function}: {self.old}{at} → {self.new}"

    def apply(self) -> None:
        """This process runs the mutant from now on; there is no way back.

        Raises:
            DoesNotApplyError: The mutation does not fit the source.

        """
        found = _Found(self)
        if isinstance(found.home, ast.FunctionDef | ast.AsyncFunctionDef):
            if not found.change_code() and not found.change_defaults():
                raise DoesNotApplyError(f"{self}: the mutant is the same code")
        else:
            found.change_constant()
        for each in caches():
            each.cache_clear()


@functools.cache
def caches() -> tuple[Any, ...]:
    """All of the product, as of the first call. The search touches every object that there is: it is made before forks."""
    found = (each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper))
    return tuple(each for each in found if str(each.__module__).startswith("growth."))


@functools.cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


class _Found:
    """Where a mutation applies: the tree of its module, with the expression replaced."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation
        self.module = _imported(mutation)
        self.tree = copy.deepcopy(_around(mutation, _parsed(mutation.module)))
        self.home = _home(mutation, self.tree)
        old, self.new = (_expression(mutation, text) for text in (mutation.old, mutation.new))
        if _same(old, self.new):
            raise DoesNotApplyError(f"{mutation}: nothing changes")
        hits = [slot for slot in _slots(self.home) if _same(slot.read(), old)]
        if not hits:
            raise DoesNotApplyError(f"{mutation}: the expression is not there")
        if (mutation.index is None) != (len(hits) == 1) or (mutation.index or 0) >= len(hits):
            raise DoesNotApplyError(f"{mutation}: the expression occurs {len(hits)} times")
        self._check_names()
        self.slot = hits[mutation.index or 0]
        before = self.slot.read()
        for each in ast.walk(self.new):
            ast.copy_location(each, before)
        self.slot.write(self.new)

    def _check_names(self) -> None:
        """A mutant that names what is not there would only raise."""
        known = {each.id for each in ast.walk(self.home) if isinstance(each, ast.Name)}
        known |= {each.arg for each in ast.walk(self.home) if isinstance(each, ast.arg)}
        known |= {each.id for each in ast.walk(self.new) if isinstance(each, ast.Name) and _is_bound(each)}
        known |= {each.arg for each in ast.walk(self.new) if isinstance(each, ast.arg)}
        for name in {each.id for each in ast.walk(self.new) if isinstance(each, ast.Name)} - known:
            if not hasattr(self.module, name) and not hasattr(builtins, name):
                raise DoesNotApplyError(f"{self.mutation}: {name} is not known there")

    def change_code(self) -> bool:
        """The function runs the mutant's code; whether that is another code at all."""
        function = self._function()
        twin = self._twin(function.__code__)
        if twin == function.__code__:
            return False
        function.__code__ = twin
        return True

    def _function(self) -> FunctionType:
        found: Any = self.module
        parts = self.mutation.function.split(".")
        for part in parts[:-1]:
            found = getattr(found, part)
        found = vars(found)[parts[-1]]
        while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
            ways = [each for each in ("__wrapped__", "__func__", "fget", "func") if hasattr(found, each)]
            if not ways:
                raise DoesNotApplyError(f"{self.mutation}: {type(found).__name__} holds no function")
            found = getattr(found, ways[0])
        return found

    def _twin(self, code: CodeType) -> CodeType:
        compiled = compile(self.tree, code.co_filename, "exec", dont_inherit=True)
        for each in _codes(compiled):
            if each.co_qualname == code.co_qualname and each.co_firstlineno == code.co_firstlineno:
                return each
        raise DoesNotApplyError(f"{self.mutation}: {code.co_qualname} is not found in its own source")

    def change_defaults(self) -> bool:
        """The expression is the default of a parameter."""
        function = self._function()
        assert isinstance(self.home, ast.FunctionDef | ast.AsyncFunctionDef)
        arguments = self.home.args
        values = {id(each): at for at, each in enumerate(arguments.defaults)}
        names = {id(each): arg.arg for arg, each in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
        for each in (*arguments.defaults, *arguments.kw_defaults):
            if each is None or not _holds(each, self.new):
                continue
            value = self._value(each)
            if id(each) in values:
                defaults = list(function.__defaults__ or ())
                defaults[values[id(each)]] = value
                function.__defaults__ = tuple(defaults)
            else:
                function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), names[id(each)]: value}
            return True
        return False

    def change_constant(self) -> None:
        """The constant gets its new value here and wherever it was imported by its name."""
        assert isinstance(self.home, ast.Assign | ast.AnnAssign)
        owner: Any = self.module
        parts = self.mutation.function.split(".")
        for part in parts[:-1]:
            owner = getattr(owner, part)
        if isinstance(self.home, ast.AnnAssign) and _holds(self.home.annotation, self.new):
            owner.__annotations__[parts[-1]] = self._value(self.home.annotation)
            return
        if hasattr(owner, "__struct_fields__") or dataclasses.is_dataclass(owner):
            raise DoesNotApplyError(f"{self.mutation}: the default of a field is in the code of its class already")
        assert self.home.value is not None
        value = self._value(self.home.value)
        before = getattr(owner, parts[-1])
        setattr(owner, parts[-1], value)
        if len(parts) == 1:
            for name, module in list(sys.modules.items()):
                if name.startswith(("growth.", "tests.")) and vars(module).get(parts[-1]) is before:
                    setattr(module, parts[-1], value)

    def _value(self, expression: ast.expr) -> Any:
        tree = ast.fix_missing_locations(ast.Expression(expression))
        return eval(compile(tree, self.module.__file__ or "", "eval", dont_inherit=True), vars(self.module))


@dataclass(frozen=True)
class _Slot:
    """A place of the tree that holds one expression."""

    parent: ast.AST
    field: str
    at: int | None

    def read(self) -> ast.expr:
        held: Any = getattr(self.parent, self.field)
        found: ast.expr = held if self.at is None else held[self.at]
        return found

    def write(self, expression: ast.expr) -> None:
        if self.at is None:
            setattr(self.parent, self.field, expression)
        else:
            getattr(self.parent, self.field)[self.at] = expression


def _imported(mutation: Mutation) -> ModuleType:
    if not mutation.module.startswith("growth."):
        raise DoesNotApplyError(f"{mutation}: only the product is mutated")
    try:
        return importlib.import_module(mutation.module)
    except ImportError as error:
        raise DoesNotApplyError(f"{mutation}: {error}") from error


def _expression(mutation: Mutation, text: str) -> ast.expr:
    try:
        return ast.parse(f"({text})", mode="eval").body
    except SyntaxError as error:
        raise DoesNotApplyError(f"{mutation}: «{text}» is no expression: {error}") from error


def _around(mutation: Mutation, tree: ast.Module) -> ast.Module:
    """What of the module must be compiled anew: the statement in which the expression stands, and how it is to be read."""
    name = mutation.function.partition(".")[0]
    future = (each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__")
    return ast.Module([*future, *(each for each in tree.body if name in _names(each))], [])


def _home(mutation: Mutation, tree: ast.Module) -> ast.AST:
    """What is named: a function, a method, or the assignment of a constant."""
    found: ast.AST = tree
    for name in mutation.function.split("."):
        hits = [each for each in ast.iter_child_nodes(found) if name in _names(each)]
        if not hits:
            raise DoesNotApplyError(f"{mutation}: {name} is not there")
        found = hits[0]
    return found


def _names(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Assign(targets=targets):
            return {each.id for each in targets if isinstance(each, ast.Name)}
    return set()


def _slots(root: ast.AST) -> Iterator[_Slot]:
    """Every place below that holds an expression, in the order of the source."""
    for parent in _in_order(root):
        for name, held in ast.iter_fields(parent):
            if isinstance(held, ast.expr):
                yield _Slot(parent, name, None)
            elif isinstance(held, list):
                yield from (_Slot(parent, name, at) for at, each in enumerate(held) if isinstance(each, ast.expr))


def _in_order(root: ast.AST) -> Iterator[ast.AST]:
    yield root
    for child in ast.iter_child_nodes(root):
        yield from _in_order(child)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _holds(tree: ast.AST, part: ast.AST) -> bool:
    return any(each is part for each in ast.walk(tree))


def _same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


def _is_bound(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
