"""What is no change although the text is another one, and what is one although it looks alike."""

from __future__ import annotations

from textwrap import dedent

import pytest

from insidetorch.drift.anchors import Anchor, Source, api, gather
from insidetorch.drift.changes import alike as means_the_same
from insidetorch.drift.compare import compare
from insidetorch.drift.definitions import OPERATORS, definitions, fingerprint, group, joined
from insidetorch.drift.findings import Finding
from insidetorch.drift.trees import Tree
from insidetorch.locate.definition import Definition
from insidetorch.locate.select import choose, stretches
from insidetorch.locate.yamls import FILES

HEADER, PYTHON = "torch/include/c10/a.h", "torch/a.py"
DERIVATIVES = FILES["derivatives.yaml"]


def tree(files: dict[str, str], release: str = "1.0") -> Tree:
    stored = {path: dedent(text).lstrip("\n").encode() for path, text in files.items()}
    return Tree(release, "", frozenset(stored), False, stored.__getitem__)


def alike(file: str, symbol: str, old: str, new: str) -> bool:
    one, other = (group(tree({file: text}), file, symbol) for text in (old, new))
    assert one is not None and other is not None
    assert one.sha256 != other.sha256
    return means_the_same(one, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(x: int) -> int:\n  return x", "def f(x: float):\n  return x"),
        ("def f(x):\n  y: int = x\n  return y", "def f(x):\n  y = x\n  return y"),
        ("def f(x):\n  y: int\n  y = x", "def f(x):\n  y = x"),
        ("def f(x):\n  assert x, 'no'", "def f(x):\n  if not x:\n    raise AssertionError('no')"),
        ("def f(x):\n  return", "def f(x):\n  return None"),
        ("def f(x):\n  assert x == 1", "def f(x):\n  if x != 1:\n    raise AssertionError"),
        ("def f(x, y):\n  assert x is None or not y",
         "def f(x, y):\n  if x is not None and y:\n    raise AssertionError('no')"),
        ("def f(x, y):\n  assert not (x and y)",
         "def f(x, y):\n  if x and y:\n    raise AssertionError('no')"),
        ("def f(x, y):\n  assert x < y", "def f(x, y):\n  if not x < y:\n    raise AssertionError"),
        ("def f(x):\n  one = x\n  return one", "def f(x):\n  two = x\n  return two"),
        ("def f(x):\n  for a, b in x:\n    g(a, [b for b in a])",
         "def f(x):\n  for c, d in x:\n    g(c, [e for e in c])"),
        ("def f(x):\n  def inner(y):\n    return t + y\n  t = x\n  return inner",
         "def f(x):\n  def helper(y):\n    return s + y\n  s = x\n  return helper"),
        ("def f(x):\n  try:\n    g()\n  except E as e:\n    h(e)",
         "def f(x):\n  try:\n    g()\n  except E as error:\n    h(error)"),
        ("class f:\n  a: int = 1\n  def m(self, x: int): return x",
         "class f:\n  a: float = 1\n  def m(self, x): return x"),
        ("def f(x):\n  g(x)", "def f(x):\n  g(x)\n  return None"),
    ],
)  # fmt: skip
def test_hints_assertions_and_names_of_locals_are_no_change(old: str, new: str) -> None:
    assert alike(PYTHON, "f", old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(x: int = 1): ...", "def f(x: int = 2): ..."),
        ("def f(x): return x", "def f(y): return y"),
        ("def f(x):\n  assert x == 1", "def f(x):\n  if x == 1:\n    raise AssertionError"),
        ("def f(x):\n  assert x", "def f(x):\n  if not x:\n    raise ValueError"),
        ("def f(x, y):\n  assert x and y",
         "def f(x, y):\n  if not x and not y:\n    raise AssertionError"),
        ("def f(x):\n  assert x",
         "def f(x):\n  if not x:\n    raise AssertionError\n  else:\n    g()"),
        ("def f(x):\n  a = x\n  return b", "def f(x):\n  a = x\n  return a"),
        ("def f(x):\n  a = x\n  return a, b", "def f(x):\n  b = x\n  return b, b"),
        ("def f(x):\n  a, b = x\n  return a", "def f(x):\n  a, b = x\n  return b"),
        ("def f(x):\n  global a\n  a = x", "def f(x):\n  global b\n  b = x"),
        ("def f(x):\n  a = x\n  return locals()", "def f(x):\n  b = x\n  return locals()"),
        ("def f(x):\n  import a\n  return a", "def f(x):\n  import b\n  return b"),
        ("def f(x):\n  g(a=x)", "def f(x):\n  g(b=x)"),
        ("def f(x):\n  a = x\n  def g(): a = 1\n  return a",
         "def f(x):\n  a = x\n  def g():\n    nonlocal a\n    a = 1\n  return a"),
        ("class f:\n  a: int = 1", "class f:\n  a: ClassVar[int] = 1"),
        ("class f:\n  a: int = 1", "class f:\n  a = 1"),
        ("class f:\n  a: int", "class f:\n  b: int"),
        ("class f:\n  def m(self): self.a = 1", "class f:\n  def m(self): self.b = 1"),
    ],
)  # fmt: skip
def test_what_looks_alike_and_is_another_thing_is_a_change(old: str, new: str) -> None:
    assert not alike(PYTHON, "f", old, new)


@pytest.mark.parametrize(
    ("old", "new", "neutral"),
    [
        ("int f(int x);", "[[nodiscard]] int f(int x);", True),
        ("int f(int x) { return x; }", '[[nodiscard("why")]] int f([[maybe_unused]] int x) '
         "{ return x; }", True),
        ("int f(int x);", "[[noreturn]] int f(int x);", False),
        ("int f(int x);", "[[nodiscard]] long f(int x);", False),
    ],
)  # fmt: skip
def test_attributes_for_the_compiler_are_no_change(old: str, new: str, neutral: bool) -> None:
    assert alike(HEADER, "f", old, new) is neutral


ENTRY = """
- func: f(Tensor self) -> Tensor
  variants: function, method
  dispatch:
    CPU, CUDA: f_kernel
    MPS: f_mps
    SparseCPU: f_sparse

"""


@pytest.mark.parametrize(
    ("old", "new", "neutral"),
    [
        ("function, method", "method, function", True),
        ("CPU, CUDA: f_kernel", "CUDA: f_kernel\n    CPU: f_kernel", True),
        ("    MPS: f_mps\n", "", True),
        ("f_sparse", "f_other", True),
        ("    MPS: f_mps", "    XPU, MPS: f_mps", True),
        ("CPU, CUDA: f_kernel", "CPU, CUDA: f_other", False),
        ("CPU, CUDA: f_kernel", "CPU: f_kernel", False),
        ("MPS: f_mps", "Meta: f_mps", False),
        ("MPS: f_mps", "CompositeImplicitAutograd: f_mps", False),
        ("variants: function, method", "variants: function", False),
        ("Tensor self", "Tensor self, bool fast", False),
    ],
)  # fmt: skip
def test_order_in_an_entry_and_other_backends_are_no_change(
    old: str, new: str, neutral: bool
) -> None:
    assert alike(OPERATORS, "f", ENTRY, ENTRY.replace(old, new)) is neutral


def test_an_entry_may_begin_with_any_key() -> None:
    first, second = ENTRY.strip().splitlines()[:2]
    turned = ENTRY.replace(f"{first}\n{second}", f"- {second.strip()}\n  {first[2:]}")
    one, other = (group(tree({OPERATORS: text}), OPERATORS, "f") for text in (ENTRY, turned))
    assert one is not None and other is not None
    assert turned != ENTRY and one.sha256 == other.sha256
    assert one.definition.signature == other.definition.signature == "f(Tensor self) -> Tensor"


def test_the_kernels_of_a_derivative_all_count() -> None:
    entry = "- name: f(Tensor self) -> Tensor\n  dispatch:\n    Default:\n      self: grad\n"
    assert not alike(DERIVATIVES, "f", entry, entry.replace("grad", "grad * 2"))


def changed(file: str, name: str, old: str, new: str, **more: str) -> Finding:
    """Return the finding on a public name whose file changed."""
    files = {"torch/__init__.py": "from torch.a import *\n", "torch/_C/__init__.pyi": ""}
    before, now = ({**files, **more, file: text} for text in (old, new))
    anchor = api("notebooks/a", name, (1,), tree(before))
    assert anchor is not None
    (finding,) = compare([anchor], tree(before), tree(now, "2.0"))
    return finding


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("torch.f", "def f(x, lr=1): ...", "def f(x, **options): ...", "went into **: lr"),
        ("torch.f", "def f(*, lr=1): ...", "def f(**options): ...", "went into **: lr"),
        ("torch.K", "class K(Enum):\n  A = auto()\n  B = auto()",
         "class K(Enum):\n  B = auto()\n  A = auto()", "order of values changed: A, B → B, A"),
        ("torch.K", "class K(A): ...", "class K(B): ...", "base class changed: A → B"),
        ("torch.K", "class K(A, B): ...", "class K(A): ...", "base class changed"),
        ("torch.f", "@no_grad()\ndef f(): ...", "def f(): ...", "changed: no_grad() → none"),
        ("torch.f", "def f(backend='eager'): ...", "def f(backend='inductor'): ...",
         "default changed: backend: 'eager' → 'inductor'"),
        ("torch.f", "def f(x, y=1): ...", "def f(x, *, y=1): ...",
         "y: positional or keyword → keyword-only"),
    ],
)  # fmt: skip
def test_what_callers_notice_is_said_with_its_values(
    name: str, old: str, new: str, said: str
) -> None:
    finding = changed(PYTHON, name, old, new)
    assert finding.verdict == "signature"
    assert any(said in str(one) for one in finding.breakages), finding.breakages


def test_hints_beside_a_change_are_no_breakage() -> None:
    finding = changed(PYTHON, "torch.f", "def f(x) -> int: return 1", "def f(x): return 2")
    assert (finding.verdict, finding.breakages) == ("changed", ())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("enum class K : int { A, B = 3, C };", "enum class K : int { B = 3, A, C };",
         "order of values changed: A, B, C → B, A, C"),
        ("enum K { A, B };", "enum K { A };", "value removed: B"),
        ("struct K : public A { int x; };", "struct K : public B { int x; };", "A → "),
    ],
)  # fmt: skip
def test_enums_and_bases_of_cpp(old: str, new: str, said: str) -> None:
    before, now = tree({HEADER: old}), tree({HEADER: new}, "2.0")
    (found,) = definitions(before, HEADER, "K")
    anchor = Anchor("notebooks/a", "excerpt", "K", (1,), HEADER, "K", (1, 1), ((1, 1),),
                    found.sha256[:32], found.definition.signature)  # fmt: skip
    (finding,) = compare([anchor], before, now)
    assert finding.changes[0].shown
    assert any(said in str(one) for one in finding.breakages), finding.breakages


def test_a_derivative_is_found_behind_its_operator() -> None:
    entry = "- func: exp(Tensor self) -> Tensor\n"
    stub = {"torch/__init__.py": "from torch._C import exp\n",
            "torch/_C/__init__.pyi": "def exp(x: Tensor) -> Tensor: ...\n"}  # fmt: skip
    old = "- name: exp(Tensor self) -> Tensor\n  self: grad * result\n"
    for new, verdict in (
        (old.replace("result", "self"), "derivative"),
        ("", "derivative"),
        (old + "  result: auto_linear\n", "derivative"),
        (old + "# said\n", "unchanged"),
    ):
        finding = changed(DERIVATIVES, "torch.exp", old, new, **stub, **{OPERATORS: entry})
        assert finding.verdict == verdict
        assert bool(finding.changes or finding.said) == (verdict != "unchanged")


@pytest.mark.parametrize(
    ("module", "verdict"),
    [
        ("_lazy = {'f': 1}\ndef __getattr__(name): ...", "moved"),
        ("import torch.b\ndef __getattr__(name): return getattr(torch.b, name)",
         "moved"),
        ("def __getattr__(name): raise AttributeError", "gone"),
        ("names = ['f']", "gone"),
    ],
)  # fmt: skip
def test_a_name_that_its_module_gives_out_when_asked_is_not_gone(module: str, verdict: str) -> None:
    inside = {"torch/b.py": "def f(): ...\n"}
    finding = changed("torch/m.py", "torch.m.f", "def f(): ...", module, **inside)
    assert finding.verdict == verdict


CODE = "def f(x):\n    a = x\n    b = a\n    c = b\n    d = c\n    return d\n"


def shown(*given: str) -> Anchor:
    """Return the anchor of an excerpt of `CODE` that shows these lines alone."""
    (found,) = definitions(tree({PYTHON: CODE}), PYTHON, "f")
    rows = choose(found.definition, only=given)
    numbers = [row.number for row in rows if not row.gap]
    record = {
        "kind": "excerpt", "cell": 1, "target": "f", "symbol": "f", "file": PYTHON,
        "upstream": PYTHON, "lines": [numbers[0], numbers[-1]], "shown": stretches(rows),
        "defined": [1, 6], "signature": "def f(x):", "sha256": fingerprint(CODE.strip(), "python"),
    }  # fmt: skip
    (anchor,) = gather([Source("notebooks/a", [], [record])], tree({PYTHON: CODE}))
    return anchor


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("c = b", "c = b + 1", True),
        ("b = a", "b = a + 1", False),
        ("    c = b\n", "", True),
        ("    d = c\n", "    d = c\n    d += 1\n", False),
        ("    a = x\n", "    a = x\n    a += 1\n", False),
        ("def f(x)", "def f(x, y)", True),
    ],
)
def test_only_lines_that_are_shown_count_as_shown(old: str, new: str, seen: bool) -> None:
    anchor = shown("c = b")
    assert anchor.shown == ((1, 1), (4, 4), (6, 6))
    (finding,) = compare([anchor], tree({PYTHON: CODE}), tree({PYTHON: CODE.replace(old, new)}))
    assert any(change.shown for change in finding.changes) is seen


def test_a_line_added_between_two_that_are_shown_is_seen() -> None:
    anchor = shown("b = a", "c = b")
    files = {PYTHON: CODE.replace("    c = b\n", "    b += 1\n    c = b\n")}
    (finding,) = compare([anchor], tree({PYTHON: CODE}), tree(files))
    assert finding.changes[0].shown


def test_several_definitions_as_one_are_compared_as_one() -> None:
    first, second = (
        definitions(tree({PYTHON: f"def f(x): return {n}\n"}), PYTHON, "f")[0] for n in (1, 2)
    )
    assert isinstance(joined([first, second]).definition, Definition)
    assert not means_the_same(joined([first, second]), joined([second, first]))
