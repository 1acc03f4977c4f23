"""The places of a module where one small change makes a mutant, and what the change is.

Only expressions and statements inside functions: what a module evaluates while it is imported is the same for every
mutant of a process. Log lines, error messages, annotations, defaults, decorators and patterns are left out.
"""

import ast
import copy
import dataclasses
import pathlib
from typing import Final

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
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
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
LOGS: Final = frozenset({"debug", "info", "warning", "error", "exception"})


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Site:
    """One mutant: the node that changes, by its place in a walk of the tree, and which of its changes it is."""

    path: str
    line: int
    node: int
    change: int


def sites(path: pathlib.Path, name: str) -> list[Site]:
    """All of one module, in the order of its text. `name` is what they call the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    eligible = _eligible(tree)
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in eligible and isinstance(node, ast.expr | ast.stmt):
            found += [Site(name, node.lineno, number, change) for change in range(len(changes(node)))]
    return sorted(found)


def changes(node: ast.AST) -> list[ast.expr | ast.stmt]:
    """What may stand in its place: each a plausible slip."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            return [_with(node, ops=[COMPARISONS[type(op)]()])]
        case ast.BoolOp(op=ast.And()):
            return [_with(node, op=ast.Or())]
        case ast.BoolOp(op=ast.Or()):
            return [_with(node, op=ast.And())]
        case ast.UnaryOp(op=ast.Not()):
            return [copy.deepcopy(node.operand)]
        case ast.BinOp(op=op) if type(op) in OPERATORS and not (_is_text(node.left) or _is_text(node.right)):
            return [_with(node, op=OPERATORS[type(op)]())]
        case ast.Constant(value=bool()):
            return [_with(node, value=not node.value)]
        case ast.Constant(value=int() | float() as value):
            return [_with(node, value=value + 1)]
        case ast.Call(func=ast.Name(id=called)) if called in CALLS:
            return [_with(node, func=ast.Name(CALLS[called], ast.Load()))]
        case ast.AugAssign(op=op) if type(op) in OPERATORS:
            return [_with(node, op=OPERATORS[type(op)]()), ast.Pass()]
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            return [ast.Pass()]
        case ast.Continue():
            return [ast.Break()]
        case ast.Break():
            return [ast.Continue()]
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if isinstance(
            test, ast.Name | ast.Call | ast.Attribute
        ):
            return [_with(node, test=ast.UnaryOp(ast.Not(), copy.deepcopy(test)))]
    return []


def change(source: str, site: Site) -> tuple[str, str]:
    """The lines that the mutant changes, before and after."""
    node = _node(ast.parse(source), site)
    changed = changes(node)[site.change]
    if isinstance(node, ast.If | ast.While):  # the body would hide the change
        assert isinstance(changed, ast.If | ast.While)
        node, changed = node.test, changed.test
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    before = lines[0].encode()[: node.col_offset].decode()
    after = lines[-1].encode()[node.end_col_offset :].decode()
    return "\n".join(lines).strip(), f"{before}{ast.unparse(changed)}{after}".strip()


def _node(tree: ast.AST, site: Site) -> ast.AST:
    return next(node for number, node in enumerate(ast.walk(tree)) if number == site.node)


def _with(node: ast.expr | ast.stmt, **fields: object) -> ast.expr | ast.stmt:
    changed = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _eligible(tree: ast.Module) -> set[int]:
    """The IDs of nodes that run when a function is called."""
    found: set[int] = set()

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.match_case) or _is_log(node):
            if isinstance(node, ast.match_case):
                for child in [*filter(None, [node.guard]), *node.body]:
                    walk(child)
            return
        found.add(id(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return  # its body is found by itself
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                walk(node.value)
            return
        for child in ast.iter_child_nodes(node):
            walk(child)

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                walk(statement)
        elif isinstance(node, ast.Lambda):
            walk(node.body)
    return found


def _is_log(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and any(
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in LOGS
        for call in ast.iter_child_nodes(node)
    )
