"""No claim and no verdict rests on a clock: what was timed is shown, and a condition counts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from insidetorch.book.project import Chapter, Project

ROOT = Path(__file__).resolve().parents[1]
CLOCKS = {
    "bench", "bench_once", "copy_bandwidth", "copy_rate", "cpu_seconds",
    "matmul_peak", "monotonic", "peaks", "perf_counter", "process_time",
    "thread_time", "wall_seconds",
}  # fmt: skip
TIMES = {"duration", "iqr", "median"}  # what measurements and events have
COUNTS = {"claim", "isinstance", "len", "verdict"}


class Timed(ast.NodeVisitor):
    """Follows, statement by statement, which names of a page hold what a clock said."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.found: list[str] = []

    def rests(self, node: ast.AST) -> bool:
        """Say whether an expression calls a clock, or uses a name that holds its answer."""
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in COUNTS:
            return False
        if isinstance(node, ast.Name):
            return node.id in CLOCKS | self.names and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in TIMES:
            # A method, such as a tensor's `median()`: only what it is called on and with counts.
            return any(map(self.rests, [node.func.value, *node.args]))
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS | TIMES:
            return True
        if isinstance(node, ast.comprehension):  # a choice by time, as of the events of a span
            return self.rests(node.iter)
        local = {
            name.id
            for part in getattr(node, "generators", ())
            if not self.rests(part.iter)
            for name in ast.walk(part.target)
            if isinstance(name, ast.Name)
        }
        if isinstance(node, ast.Lambda):
            local |= {argument.arg for argument in node.args.args}
        hidden, self.names = self.names & local, self.names - local
        try:
            return any(self.rests(child) for child in ast.iter_child_nodes(node))
        finally:
            self.names |= hidden

    def bind(self, target: ast.AST, timed: bool) -> None:
        """Note what a name holds from here on; one item of a container stains all of it."""
        if isinstance(target, ast.Name):
            (self.names.add if timed else self.names.discard)(target.id)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            if timed:
                self.bind(target.value, True)
        else:
            for part in ast.iter_child_nodes(target):
                self.bind(part, timed)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            pairs = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            if pairs and len(target.elts) == len(node.value.elts):
                values = [self.rests(value) for value in node.value.elts]
                for one, timed in zip(target.elts, values, strict=True):
                    self.bind(one, timed)
            else:
                self.bind(target, self.rests(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self.rests(node.value):
            self.bind(node.target, True)

    def visit_For(self, node: ast.For) -> None:
        self.bind(node.target, self.rests(node.iter))
        for part in (*node.body, *node.orelse):
            self.visit(part)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self.bind(item.optional_vars, self.rests(item.context_expr))
        for part in node.body:
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        inner = Timed()
        inner.names = self.names - {argument.arg for argument in node.args.args}
        for part in node.body:
            inner.visit(part)
        results = [part for part in ast.walk(node) if isinstance(part, (ast.Return, ast.Yield))]
        self.bind(ast.Name(node.name), any(map(inner.rests, results)))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.bind(node.target, self.rests(node.value))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in {"claim", "verdict"}:
            given = [word.value for word in node.keywords if word.arg == "holds"]
            if any(self.rests(condition) for condition in [*node.args[1:], *given]):
                self.found.append(ast.unparse(node.args[0]))
        added = getattr(node.func, "attr", "") in {"append", "extend"}
        if isinstance(node.func, ast.Attribute) and added and any(map(self.rests, node.args)):
            self.bind(node.func.value, True)
        self.generic_visit(node)


def resting(*cells: str) -> list[str]:
    """Return the sentences whose conditions use a clock, in a page with these cells."""
    page = Timed()
    for cell in cells:
        if not cell.startswith("%"):
            page.visit(ast.parse(cell))
    return page.found


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["t = bench(f).median", "claim('slow', t > 1)"], 1),
        (["costs = [cpu_seconds(f) for f in ways]\na, b = costs", "claim('slow', a > b)"], 1),
        (["d = {}\nd['x'] = wall_seconds(f) / 2", "verdict('id', d['x'] > 1)"], 1),
        (["def run():\n    return perf_counter() - 1", "claim('slow', run() > 1)"], 1),
        (["rows = []\nfor f in ways:\n    rows.append(bench(f))", "claim('slow', rows[0])"], 1),
        (["t = bench(f)\nt = 3", "claim('three', t == 3, seen=bench(f))"], 0),
        (["print(bench(f))", "claim('ten calls', len(calls) == 10)"], 0),
        (["claim('the middle', x.median() == 2)"], 0),
        (["t = bench(f)", "claim('slow', torch.median(t.times) > 1)"], 1),
    ],
)
def test_a_condition_that_uses_a_clock_is_found(cells: list[str], found: int) -> None:
    assert len(resting(*cells)) == found


def test_no_sentence_of_the_book_rests_on_a_clock() -> None:
    project = Project(ROOT)
    chapters = [page for page in project.pages(project.limits()) if isinstance(page, Chapter)]
    assert len(chapters) >= 15
    timed = {
        chapter.doc: resting(*[str(cell["source"]) for cell in chapter.code_cells])
        for chapter in chapters
    }
    assert not {doc: found for doc, found in timed.items() if found}
