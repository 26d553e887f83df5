"""Names in cells, and where they are defined, read without importing anything."""

from __future__ import annotations

from textwrap import dedent

import pytest

from insidetorch.drift.apis import named_apis, private_names
from insidetorch.drift.names import longest, resolve
from insidetorch.drift.trees import Tree

NATIVE = "torchgen/packaged/ATen/native/native_functions.yaml"
FILES = {
    "torch/__init__.py": """
        from torch._tensor import Tensor
        from torch import nn as nn
        from torch.deep import *
        if TYPE_CHECKING:
            from torch._C._VariableFunctions import *
        from torch._C import device
        def compile(model): ...
    """,
    "torch/_tensor.py": """
        import torch
        class Tensor(torch._C.TensorBase):
            def backward(self, gradient=None): ...
            def cos(self) -> "Tensor": ...
    """,
    "torch/_C/__init__.pyi": """
        class device: ...
        class TensorBase:
            grad: Tensor | None
            def sum(self) -> Tensor: ...
            def stub_only(self) -> Tensor: ...
    """,
    "torch/_C/_VariableFunctions.pyi": """
        def sum(input: Tensor) -> Tensor: ...
        def randn(*size: int) -> Tensor: ...
        def tensor(data: Any) -> Tensor: ...
    """,
    "torch/deep.py": "from .deeper import hidden as shown, loop\n",
    "torch/deeper.py": "from .deep import loop\ndef hidden(): ...\n",
    "torch/nn/__init__.py": "from .modules import Linear\nfrom . import functional\n",
    "torch/nn/modules.py": """
        class Base:
            def parameters(self): ...
        class Linear(Base):
            class Inner:
                def method(self): ...
            def forward(self, x): ...
    """,
    "torch/nn/functional.py": """
        conv = _add_docstr(torch.randn, "text")
        def relu(x) -> Tensor: ...
    """,
    NATIVE: """
        - func: sum(Tensor self) -> Tensor
        - func: sum.dim(Tensor self, int dim) -> Tensor
        - func: randn(SymInt[] size) -> Tensor
        - func: split(Tensor self) -> Tensor[]
    """,
}


@pytest.fixture(scope="module")
def tree() -> Tree:
    files = {path: dedent(text).lstrip("\n").encode() for path, text in FILES.items()}
    return Tree("1.0", "", frozenset(files), False, files.__getitem__)


@pytest.mark.parametrize(
    ("name", "file", "symbol"),
    [
        ("torch.compile", "torch/__init__.py", "compile"),
        ("torch.Tensor.backward", "torch/_tensor.py", "Tensor.backward"),
        ("torch.Tensor.sum", NATIVE, "sum"),
        ("torch.Tensor.stub_only", "torch/_C/__init__.pyi", "TensorBase.stub_only"),
        ("torch.sum", NATIVE, "sum"),
        ("torch.tensor", "torch/_C/_VariableFunctions.pyi", "tensor"),
        ("torch.device", "torch/_C/__init__.pyi", "device"),
        ("torch.shown", "torch/deeper.py", "hidden"),
        ("torch.nn.Linear.parameters", "torch/nn/modules.py", "Base.parameters"),
        ("torch.nn.Linear.Inner.method", "torch/nn/modules.py", "Linear.Inner.method"),
        ("torch.nn.functional.relu", "torch/nn/functional.py", "relu"),
        ("torch.ops.aten.sum.dim", NATIVE, "sum.dim"),
        ("torch.nn.functional", "torch/nn/functional.py", ""),
    ],
)
def test_a_name_leads_to_its_definition(tree: Tree, name: str, file: str, symbol: str) -> None:
    place = resolve(tree, name)
    assert place is not None
    assert (place.file, place.symbol) == (file, symbol)


@pytest.mark.parametrize(
    "name",
    ["torch.loop", "torch.absent", "torch.nn.Linear.absent", "other.thing", "torch.ops.aten.no"],
)
def test_what_is_not_there_leads_nowhere(tree: Tree, name: str) -> None:
    assert resolve(tree, name) is None


def test_the_longest_known_beginning_is_found(tree: Tree) -> None:
    found = longest(tree, "torch.device.type.upper")
    assert found is not None
    assert found[0] == "torch.device"


def apis(tree: Tree, *cells: str) -> dict[str, list[int]]:
    return named_apis([dedent(cell) for cell in cells], tree)


def test_names_are_followed_through_imports_and_cells(tree: Tree) -> None:
    found = apis(
        tree,
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn as layers",
        "F.relu(1); layers.Linear(2, 3); torch.sum(1)",
        "%%time\ntorch.sum(2)\n!ls",
    )
    assert found == {
        "torch.nn": [1], "torch.nn.functional": [1], "torch.nn.functional.relu": [2],
        "torch.nn.Linear": [2], "torch.sum": [2, 3],
    }  # fmt: skip


def test_methods_count_where_the_class_is_sure(tree: Tree) -> None:
    found = apis(
        tree,
        """
        import torch
        x = torch.randn(3)
        y = (2 * x).cos()
        y.sum().backward()
        linear = torch.nn.Linear()
        linear.parameters()
        z = x if x else None
        z.sum(); unknown.backward(); torch.split(x).backward()
        """,
        "a, b = torch.randn(1), 7\na.stub_only(); b.stub_only()",
    )
    assert set(found) == {
        "torch.randn", "torch.Tensor.cos", "torch.Tensor.sum", "torch.Tensor.backward",
        "torch.nn.Linear", "torch.nn.Linear.parameters", "torch.Tensor.stub_only",
    }  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "x = torch.randn(3)\nx = 'text'",
        "for x in (1,): pass",
        "def x(): ...",
        "def f(x):\n    x.cos()\nx = 1",
        "f = lambda x: x.cos()\nx = 1",
        "[x.cos() for x in ()]\nx = 2",
        "with open('f') as x: pass",
        "import other as x",
        "x = torch.randn(3)\ndel x",
        "x = not torch.randn(3)",
    ],
)
def test_a_name_bound_to_something_else_is_not_sure(tree: Tree, code: str) -> None:
    assert "torch.Tensor.cos" not in apis(tree, f"import torch\n{code}\nx.cos()")


def test_annotated_parameters_and_locals_are_sure(tree: Tree) -> None:
    found = apis(
        tree,
        """
        import torch
        def f(t: torch.Tensor, u):
            v = t.cos()
            u.backward()
            return v.stub_only()
        """,
    )
    assert set(found) == {"torch.Tensor", "torch.Tensor.cos", "torch.Tensor.stub_only"}


def test_a_cell_that_is_no_python_names_nothing(tree: Tree) -> None:
    assert apis(tree, "%%bash\nimport torch", "import torch; torch.sum(") == {}


def test_private_names_are_those_listed() -> None:
    source = 'A = Name("torch._C.a")\nB = Name(f"x{y}")\nother("torch.b")\n'
    assert private_names(source) == ["torch._C.a"]
