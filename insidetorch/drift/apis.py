"""Which PyTorch names the code cells of a chapter use, read from their syntax trees alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from insidetorch.drift.definitions import OPERATORS
from insidetorch.drift.names import dotted_name, found_at, longest, resolve
from insidetorch.drift.trees import Tree
from insidetorch.gpu.cell import parse, split

PACKAGES = ("torch", "torchgen", "functorch")
_TENSOR = "torch.Tensor"
_PASSES = 4
_PYTHON_MAGIC = re.compile(r"\A\s*%%(?:time|timeit|capture|prun)\b[^\n]*\n")


@dataclass(frozen=True)
class _Thing:
    """What a variable is known to hold: a PyTorch name itself, or an instance of a class."""

    dotted: str
    instance: bool = False


def named_apis(cells: Sequence[str], tree: Tree) -> dict[str, list[int]]:
    """Return the PyTorch names that cells use, each with the numbers of those cells, from 1.

    A variable counts where all that is ever assigned to it in the chapter is of one known class,
    so ``x.backward()`` is ``torch.Tensor.backward`` if each ``x = …`` surely makes a tensor.

    :param cells: the sources of the code cells, in order, with their magics.
    :param tree: the release that tells which names there are.
    """
    trees = [_cell(source) for source in cells]
    scope = _known([node for cell in trees for node in cell.body], {}, tree)
    used: dict[str, set[int]] = {}
    for number, cell in enumerate(trees, start=1):
        for name in _used(cell.body, scope, tree):
            used.setdefault(name, set()).add(number)
    return {name: sorted(numbers) for name, numbers in sorted(used.items())}


def private_names(source: str) -> list[str]:
    """Return the names that a module lists as ``Name("torch.…", …)``."""
    return sorted(
        {
            node.args[0].value
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Name"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        }
    )


def _cell(source: str) -> ast.Module:
    cuda = split(source)
    code = cuda[1] if cuda else _PYTHON_MAGIC.sub("", source)
    return parse(code) or ast.Module(body=[], type_ignores=[])


_Scope = Mapping[str, _Thing]


def _known(body: Iterable[ast.AST], outer: _Scope, tree: Tree) -> dict[str, _Thing]:
    """Return the variables of a scope that hold one known thing throughout."""
    bindings = _Bindings()
    for node in body:
        bindings.visit(node)
    scope: dict[str, _Thing] = {}
    free = {name: thing for name, thing in outer.items() if name not in bindings.values}
    for _ in range(_PASSES):
        seen = {**free, **scope}
        found: dict[str, _Thing] = {}
        for name, values in bindings.values.items():
            things = {_what(value, seen, tree) for value in values}
            if len(things) == 1 and (thing := things.pop()) is not None:
                found[name] = thing
        if found == scope:
            break
        scope = found
    return {**free, **scope}


@dataclass
class _Bindings(ast.NodeVisitor):
    """What each name of one scope is bound to: an expression, a known thing, or None."""

    values: dict[str, list[ast.expr | _Thing | None]] = field(default_factory=dict)

    def bind(self, name: str, value: ast.expr | _Thing | None) -> None:
        """Add one binding."""
        self.values.setdefault(name, []).append(value)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            ours = whole.split(".")[0] in PACKAGES
            self.bind(alias.asname or whole, _Thing(whole) if ours else None)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        ours = not node.level and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names:
            thing = _Thing(f"{node.module}.{alias.name}") if ours else None
            self.bind(alias.asname or alias.name, thing)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bind(node.name, None)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bind(node.name, None)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._target(target, node.value)
        self.generic_visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._target(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.bind(node.target.id, ast.BinOp(_load(node.target), node.op, node.value))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self.bind(node.id, None)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.bind(node.target.id, node.value)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self.visit(item.optional_vars)
        for statement in node.body:
            self.visit(statement)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bind(node.name, None)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.AST) -> None:
        """Leave out comprehensions, whose variables are their own."""

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def _target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            inner = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            same = len(inner) == len(target.elts) and not any(
                isinstance(one, ast.Starred) for one in [*inner, *target.elts]
            )
            for index, one in enumerate(target.elts):
                if same:
                    self._target(one, inner[index])
                else:
                    self.visit(one)


def _load(name: ast.Name) -> ast.Name:
    return ast.Name(name.id, ast.Load())


def _what(value: ast.expr | _Thing | None, scope: _Scope, tree: Tree) -> _Thing | None:
    """Return what an expression surely is, or None."""
    if value is None or isinstance(value, _Thing):
        return value
    tensor = _Thing(_TENSOR, True)
    if isinstance(value, ast.Name | ast.Attribute):
        parts = dotted_name(value)
        if parts is not None and parts[0] in scope:
            thing = scope[parts[0]]
            return _attribute(thing, ".".join(parts[1:]), tree) if parts[1:] else thing
        if isinstance(value, ast.Name):
            return None
        owner = _what(value.value, scope, tree)
        return _attribute(owner, value.attr, tree) if owner else None
    if isinstance(value, ast.Call):
        called = _what(value.func, scope, tree)
        return _result(called, tree) if called else None
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        tensors = [_what(side, scope, tree) == tensor for side in sides]
        plain = [isinstance(side, ast.Constant) for side in sides]
        sure = any(tensors) and all(a or b for a, b in zip(tensors, plain, strict=True))
        return tensor if sure else None
    if isinstance(value, ast.Subscript):
        return tensor if _what(value.value, scope, tree) == tensor else None
    if isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.Not):
        return tensor if _what(value.operand, scope, tree) == tensor else None
    return None


def _attribute(thing: _Thing, attributes: str, tree: Tree) -> _Thing | None:
    name = f"{thing.dotted}.{attributes}"
    place = resolve(tree, name)
    if place is None or (thing.instance and place.kind == "value"):
        return None
    return _Thing(name)


def _result(called: _Thing, tree: Tree) -> _Thing | None:
    """Return what calling a PyTorch name surely gives: an instance of the class, or a tensor."""
    place = None if called.instance else resolve(tree, called.dotted)
    if place is None:
        return None
    if place.kind == "class":
        return _Thing(called.dotted, True)
    return _Thing(_TENSOR, True) if _gives_tensor(tree, called.dotted) else None


@lru_cache(maxsize=4096)
def _gives_tensor(tree: Tree, dotted: str) -> bool:
    place = resolve(tree, dotted)
    found = found_at(tree, place) if place else None
    if place is None or found is None:
        return False
    code = found.definition.text
    if place.file == OPERATORS:
        results = re.findall(r"^- func: .*->\s*(.*?)\s*$", code, re.MULTILINE)
        return bool(results) and all(re.fullmatch(r"Tensor(\(\w!?\))?", one) for one in results)
    results = re.findall(r"\)\s*->\s*([^:]+):", " ".join(code.split()))
    signatures = len(re.findall(r"^\s*def ", code, re.MULTILINE))
    tensor = re.compile(r"['\"]?(?:torch\.)?Tensor['\"]?")
    first = results[:signatures]
    return 0 < signatures == len(first) and all(tensor.fullmatch(one.strip()) for one in first)


def _used(body: Iterable[ast.AST], scope: _Scope, tree: Tree) -> Iterator[str]:
    """Yield the PyTorch names used in statements, functions and classes inside them included."""
    waiting: list[tuple[ast.AST, _Scope]] = [(node, scope) for node in body]
    while waiting:
        node, here = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (
                alias.name
                for alias in node.names
                if alias.name.split(".")[0] in PACKAGES
                and "." in alias.name
                and resolve(tree, alias.name)
            )
            continue
        if isinstance(node, ast.ImportFrom):
            if not node.level and (node.module or "").split(".")[0] in PACKAGES:
                for alias in node.names:
                    found = longest(tree, f"{node.module}.{alias.name}")
                    if found:
                        yield found[0]
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += [(part, here) for part in _around(node)]
            inner = _inside(node, here, tree)
            statements = [node.body] if isinstance(node, ast.Lambda) else node.body
            waiting += [(part, inner) for part in statements]
            continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = (part for one in node.generators for part in ast.walk(one.target))
            own = {part.id for part in targets if isinstance(part, ast.Name)}
            here = {name: thing for name, thing in here.items() if name not in own}
        if isinstance(node, ast.Attribute | ast.Name):
            name = _api(node, here, tree)
            place = resolve(tree, name) if name else None
            if name and place and (isinstance(node.ctx, ast.Load) or place.kind == "value"):
                yield name
            if dotted_name(node) is not None:
                continue
        waiting += [(child, here) for child in ast.iter_child_nodes(node)]


def _around(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.AST]:
    """Return the parts of a function that belong to the scope it stands in."""
    parts: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
    if not isinstance(node, ast.Lambda):
        parts += [*node.decorator_list, *([node.returns] if node.returns else [])]
    return parts + [a.annotation for a in _arguments(node) if a.annotation]


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    args = node.args
    extra = [one for one in (args.vararg, args.kwarg) if one]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


def _inside(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, outer: _Scope, tree: Tree
) -> _Scope:
    own = {argument.arg for argument in _arguments(node)}
    visible = {name: thing for name, thing in outer.items() if name not in own}
    if isinstance(node, ast.Lambda):
        return visible
    for argument in _arguments(node):
        thing = _what(argument.annotation, outer, tree) if argument.annotation else None
        if thing is not None and thing == _Thing(_TENSOR):
            visible[argument.arg] = _Thing(_TENSOR, True)
    return _known(node.body, visible, tree)


def _api(node: ast.Attribute | ast.Name, scope: _Scope, tree: Tree) -> str | None:
    """Return the PyTorch name that ``a.b.c`` stands for; modules alone are none."""
    parts = dotted_name(node)
    if parts is not None:
        thing = scope.get(parts[0])
        attributes = parts[1:]
    elif isinstance(node, ast.Attribute):
        thing, attributes = _what(node.value, scope, tree), (node.attr,)
    else:
        return None
    if thing is None or (thing.instance and not attributes):
        return None
    found = longest(tree, ".".join([thing.dotted, *attributes]))
    if found is None or found[1].kind == "module":
        return None
    if thing.instance and found[0] == thing.dotted:
        return None
    return found[0]
