"""The bytecode of Python 3.11, 3.12 and 3.13, told as one small set of instructions."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

IGNORED = {
    "RESUME",
    "NOP",
    "CACHE",
    "PRECALL",
    "PUSH_NULL",
    "TO_BOOL",
    "COPY_FREE_VARS",
    "KW_NAMES",
}
SAME = {
    "LOAD_FAST": "LOAD",
    "LOAD_FAST_CHECK": "LOAD",
    "STORE_FAST": "STORE",
    "LOAD_CONST": "CONST",
    "LOAD_GLOBAL": "GLOBAL",
    "LOAD_DEREF": "CELL",
    "LOAD_ATTR": "ATTR",
    "LOAD_METHOD": "ATTR",
    "COMPARE_OP": "BINARY",
    "UNPACK_SEQUENCE": "UNPACK",
    "POP_TOP": "POP",
    "GET_ITER": "ITER",
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    "RETURN_VALUE": "RETURN",
    "COPY": "COPY",
    "SWAP": "SWAP",
}

OPERATORS: dict[Any, Callable[..., Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv},
    **{"//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul},
    **{"+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"==": operator.eq, "!=": operator.ne, "IS_OP": operator.is_, "not IS_OP": operator.is_not},
    **{"UNARY_NEGATIVE": operator.neg, "UNARY_NOT": operator.not_, "UNARY_INVERT": operator.inv},
    "CONTAINS_OP": lambda item, items: item in items,
    "not CONTAINS_OP": lambda item, items: item not in items,
    None: operator.getitem,
}
TAKEN: dict[str, Callable[[Any], bool]] = {
    **{"TRUE": bool, "FALSE": operator.not_},
    **{"NONE": lambda value: value is None, "NOT_NONE": lambda value: value is not None},
}


@dataclass(frozen=True)
class Op:
    """One instruction: its name here, its argument, and the index it may jump to."""

    name: str
    arg: Any = None
    target: int = -1


def ops_of(code: CodeType) -> list[Op]:
    """Translate a code object; an instruction that is not known here is ``("UNKNOWN", name)``."""
    made: list[tuple[str, Any, int]] = []  # the last is the offset of a jump's target
    index, names = dict[int, int](), ()
    for i in dis.get_instructions(code):
        index[i.offset] = len(made)
        if i.opname == "KW_NAMES":
            names = code.co_consts[i.arg or 0]
        if i.opname in IGNORED:
            continue
        target = i.argval if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs else -1
        for name, arg in _told(i, names):
            made.append((name, arg, target))
        names = () if i.opname == "CALL" else names
    return [Op(name, arg, index.get(target, -1)) for name, arg, target in made]


def _told(i: dis.Instruction, names: tuple[str, ...]) -> list[tuple[str, Any]]:
    name, arg = i.opname, i.arg or 0
    if name in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"):  # 3.13
        return [(name.split("_")[0], variable) for variable in i.argval]
    if name == "STORE_FAST_LOAD_FAST":
        return [("STORE", i.argval[0]), ("LOAD", i.argval[1])]
    if name == "RETURN_CONST":  # 3.12
        return [("CONST", i.argval), ("RETURN", None)]
    if name == "END_FOR":  # an exhausted loop leaves a mark: 3.12 pops it and the iterator at once
        return [("POP", None)] * (2 if sys.version_info < (3, 13) else 1)
    if name == "CALL":
        return [("CALL", (arg, names))]
    if name == "CALL_KW":  # 3.13: the names are on the stack
        return [("CALL", (arg, None))]
    if name == "BINARY_OP":
        return [("BINARY", i.argrepr)]
    if name.startswith("UNARY_"):
        return [("UNARY", name)]
    if name == "FOR_ITER":  # who drops the iterator at the end: 3.11 this one, then END_FOR
        return [("NEXT", sys.version_info < (3, 12))]
    if name in ("IS_OP", "CONTAINS_OP"):
        return [("BINARY", ("not " if arg else "") + name)]
    if name == "BINARY_SUBSCR":
        return [("BINARY", None)]
    if name in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE"):
        return [("BUILD", ({"T": tuple, "L": list, "S": slice}[name[6]], arg))]
    if name == "BINARY_SLICE":  # 3.12
        return [("BUILD", (slice, 2)), ("BINARY", None)]
    if name.startswith("POP_JUMP"):
        return [("BRANCH", name.partition("IF_")[2])]
    if name == "JUMP_BACKWARD_NO_INTERRUPT" or name not in SAME:
        return [("UNKNOWN", name)]
    return [(SAME[name], i.argval)]


def live(ops: list[Op], start: int) -> set[str]:
    """Return the local variables that code from here on may read before it writes them."""
    found, known, todo = set[str](), set[Any](), [(start, frozenset[str]())]
    while todo:
        at, written = todo.pop()
        if at in range(len(ops)) and (at, written) not in known:
            known.add((at, written))
            op = ops[at]
            if op.name == "LOAD" and op.arg not in written:
                found.add(op.arg)
            after = written | {op.arg} if op.name == "STORE" else written
            todo += [(at + 1, after)] * (op.name not in ("RETURN", "JUMP"))
            todo += [(op.target, after)] * (op.target >= 0)
    return found
