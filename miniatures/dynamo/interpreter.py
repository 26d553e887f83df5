"""The symbolic interpreter of the small Dynamo: Python's instructions, run on Vars."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

import torch

from miniatures.dynamo.bytecode import OPERATORS, TAKEN, ops_of
from miniatures.dynamo.calls import Tracer
from miniatures.dynamo.values import Break, Method, Var


def popped(stack: list[Any], arg: tuple[int, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """Pop a function and its arguments, as the argument of a CALL says."""
    count, names = arg
    if names is None:  # Python 3.13 has the names on the stack
        names = stack.pop()
        names = [n.value for n in names.value] if isinstance(names, Var) else names
    args = [stack.pop() for _ in range(count)][::-1]
    split = count - len(names)
    return stack.pop(), args[:split], dict(zip(names, args[split:], strict=True))


class Interpreter:
    """Runs the instructions of one function on Vars."""

    def __init__(self, tracer: Tracer, code: CodeType, name: str, values: dict[str, Var]) -> None:
        self.tracer, self.ops, self.name, self.values = tracer, ops_of(code), name, values
        self.stack, self.cells = list[Var](), code.co_cellvars + code.co_freevars

    def step(self, at: int) -> int:
        """Execute one instruction and return the index of the next; -1 after a return."""
        op, stack, pop, see = self.ops[at], self.stack, self.stack.pop, self.tracer
        match op.name:
            case "LOAD":
                stack.append(self.values[op.arg])
            case "STORE":
                self.values[op.arg] = pop()
            case "CONST":
                stack.append(Var(tuple(map(Var, op.arg)) if type(op.arg) is tuple else op.arg))
            case "GLOBAL":
                stack.append(see.named(self.name, op.arg))
            case "CELL":
                index = self.cells.index(op.arg)
                stack.append(see.at(f"{self.name}.__closure__[{index}].cell_contents"))
            case "ATTR":
                stack.append(see.attribute(pop(), op.arg))
            case "BINARY" | "UNARY":
                args = [pop() for _ in range(1 if op.name == "UNARY" else 2)][::-1]
                stack.append(see.compute(OPERATORS[op.arg], args))
            case "BUILD":
                items = [pop() for _ in range(op.arg[1])][::-1]
                stack.append(Var(slice(*items) if op.arg[0] is slice else op.arg[0](items)))
            case "UNPACK":
                stack.extend(reversed(see.items(pop())))
            case "POP":
                pop()
            case "COPY":
                stack.append(stack[-op.arg])
            case "SWAP":
                stack[-op.arg], stack[-1] = stack[-1], stack[-op.arg]
            case "ITER":
                stack.append(Var(iter(see.items(pop()))))
            case "NEXT":
                item = next(stack[-1].value, None)
                if item is None and op.arg:
                    pop()
                else:
                    stack.append(item or Var(None))
                return at + 1 if item else op.target
            case "JUMP":
                return op.target
            case "BRANCH":
                value = see.look(stack[-1]).value if "NONE" in op.arg else see.plain(stack[-1])
                pop()
                return op.target if TAKEN[op.arg](value) else at + 1
            case "CALL":
                stack.append(self.call(*popped(stack, op.arg)))
            case "RETURN":
                return -1
            case _:
                raise Break(f"the instruction {op.arg}")
        return at + 1

    def call(self, function: Var, args: list[Var], kwargs: dict[str, Var]) -> Var:
        """Call what was popped; a function of the user is run in the same way: inlined."""
        if (result := self.tracer.call(function, args, kwargs)) is not None:
            return result
        if isinstance(value := function.value, torch.nn.Module):
            return self.call(self.tracer.attribute(function, "forward"), args, kwargs)
        if isinstance(value, Method):
            return self.call(value.function, [value.owner, *args], kwargs)
        bound = inspect.signature(value).bind(*args, **kwargs).arguments
        rest = {k: Var(p.default) for k, p in inspect.signature(value).parameters.items()}
        inner = Interpreter(self.tracer, value.__code__, str(function.source), rest | bound)
        at = 0
        while at >= 0:
            at = inner.step(at)
        return inner.stack[-1]
