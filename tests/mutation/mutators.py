"""Small changes of a function's source, one at a time: what random mutants are drawn from.

Constants, operators, comparisons, conditions, dropped statements and swapped arguments. Nothing is
changed in annotations, decorators, docstrings, f-strings, assertions and the words of an exception:
no promise rests on them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef

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
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
DROPPED = (ast.Expr, ast.AugAssign, ast.Raise, ast.If, ast.Continue, ast.Break)
UNTOUCHED = (ast.Assert, ast.Raise, ast.JoinedStr)


@dataclass(frozen=True)
class Change:
    """A piece of source, where it is, and what stands there instead."""

    start: tuple[int, int]
    end: tuple[int, int]
    old: str
    new: str

    def applied(self, source: str) -> str:
        """The source of the whole file with this change."""
        lines = source.encode().splitlines(keepends=True)
        (first, left), (last, right) = self.start, self.end
        before = b"".join(lines[: first - 1]) + lines[first - 1][:left]
        after = lines[last - 1][right:] + b"".join(lines[last:])
        return (before + self.new.encode() + after).decode()

    @property
    def words(self) -> str:
        """On one line, for a list: spaces of the source are made one."""
        return f"{' '.join(self.old.split())} -> {' '.join(self.new.split())}"


def functions(source: str) -> Iterator[tuple[str, Function]]:
    """Functions of a module and methods of its classes, with their dotted names."""

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
        for node in body:
            if isinstance(node, Function):
                yield prefix + node.name, node
            elif isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{prefix}{node.name}.")

    yield from walk(ast.parse(source).body, "")


def changes(source: str, function: Function) -> Iterator[Change]:
    """Every change of one function."""
    docstring = 1 if ast.get_docstring(function) is not None else 0
    roots: list[ast.AST] = [*function.args.defaults, *function.body[docstring:]]
    for root in roots:
        for node in _behaviour(root):
            for new in _instead(node):
                yield _change(source, node, new)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below it, without what no promise rests on."""
    if isinstance(node, UNTOUCHED):
        if isinstance(node, ast.Raise):
            yield node  # may be dropped, but its words stay
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _behaviour(child)


def _change(source: str, node: ast.AST, new: str) -> Change:
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return Change(start, end, ast.get_source_segment(source, node) or "", new)


def _instead(node: ast.AST) -> Iterator[str]:
    """What may stand in place of a node."""
    if isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = COMPARISONS[type(node.ops[0])]()
        yield _code(ast.Compare(node.left, [other], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield _code(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        other_word = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _code(ast.BoolOp(other_word, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield _code(node.operand)
    elif isinstance(node, ast.IfExp):
        yield _code(ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse))
    elif isinstance(node, ast.Call):
        yield from _swapped(node)
    elif isinstance(node, DROPPED):
        yield "pass"


def _constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, int):
        yield repr(value + 1)
        if value > 1:
            yield repr(value - 1)
    elif isinstance(value, float):
        yield repr(value * 1.25 if value else 1.0)
        yield repr(value * 0.8 if value else 0.5)


def _swapped(call: ast.Call) -> Iterator[str]:
    if len(call.args) < 2 or any(isinstance(a, ast.Starred) for a in call.args[:2]):
        return
    if isinstance(call.func, ast.Name) and call.func.id == "isinstance":
        return  # an error at once, which shows nothing
    one, two, *others = call.args
    if ast.dump(one) != ast.dump(two):
        yield _code(ast.Call(call.func, [two, one, *others], call.keywords))


def _code(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
