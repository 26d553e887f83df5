# ruff: noqa: E501
"""Changes such as releases bring, made in PyTorch's own sources: each at its rank, or not told.

They are written from what releases changed, not from what the comparison looks at.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from insidetorch.drift.anchors import Anchor, api
from insidetorch.drift.compare import compare
from insidetorch.drift.definitions import OPERATORS, definitions
from insidetorch.drift.prose import read
from insidetorch.drift.reread import Item, Level, items
from insidetorch.drift.trees import Tree, open_folder
from insidetorch.facts import torch_facts
from insidetorch.locate.yamls import FILES

DOC = "notebooks/sample"
CHAPTER = """# A sample

## A backward pass

`torch.autograd.backward` walks the graph; `retain_graph=True` keeps its buffers. The cell passes it.

```{code-cell}
torch.autograd.backward(loss, None, retain_graph=True)
x.backward()
```

Each `Node` has a task. What is ready waits in a `ReadyQueue`, and `GraphTask` holds `keep_graph_`.

## A step

```{code-cell}
model = torch.nn.Linear(2, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
optimizer.step()
```

`SGD` reads `momentum` in its group. `Linear.reset_parameters` draws from a uniform distribution.

## Operators

```{code-cell}
torch.mul(a, b)
torch.sum(a)
torch.matmul(a, b)
with torch.no_grad():
    checkpoint(f, x, use_reentrant=False)
```

`CPU` and `CUDA` share the kernel `mul_out`.

## Keys

The set is one word. `has_backend` asks for a bit.

```{code-cell}
settings(recompile_limit=3)
ShardingStrategy.FULL_SHARD
```
"""
SGD, LINEAR = "torch/optim/sgd.py", "torch/nn/modules/linear.py"
AUTOGRAD, TENSOR = "torch/autograd/__init__.py", "torch/_tensor.py"
GRAD_MODE, CHECKPOINT = "torch/autograd/grad_mode.py", "torch/utils/checkpoint.py"
FSDP, DYNAMO = "torch/distributed/fsdp/api.py", "torch/_dynamo/config.py"
GRAPH_TASK = "torch/include/torch/csrc/autograd/graph_task.h"
ENGINE = "torch/include/torch/csrc/autograd/engine.h"
KEYS, KEY = "torch/include/c10/core/DispatchKeySet.h", "torch/include/c10/core/DispatchKey.h"
STORAGE = "torch/include/c10/core/StorageImpl.h"
DEVICES = "torch/include/torch/headeronly/core/DeviceType.h"
MACROS = "torch/include/ATen/Dispatch.h"
DERIVATIVES = FILES["derivatives.yaml"]
PACKAGES = (
    "torch/__init__.py", "torch/nn/__init__.py", "torch/nn/modules/__init__.py",
    "torch/optim/__init__.py", "torch/utils/__init__.py", "torch/functional.py",
    "torch/distributed/__init__.py", "torch/distributed/fsdp/__init__.py",
    "torch/_dynamo/__init__.py", "torch/_C/__init__.pyi", "torch/_C/_VariableFunctions.pyi",
    "torch/optim/optimizer.py", "torch/nn/modules/module.py", "torch/utils/_contextlib.py",
)  # fmt: skip
FILES_READ = (
    SGD, LINEAR, AUTOGRAD, TENSOR, GRAD_MODE, CHECKPOINT, FSDP, DYNAMO, GRAPH_TASK, ENGINE, KEYS,
    KEY, STORAGE, DEVICES, MACROS, OPERATORS, DERIVATIVES, *PACKAGES,
)  # fmt: skip
# Whole definitions that the chapter shows, or those of their lines that hold a text.
SHOWN: dict[tuple[str, str], tuple[str, ...]] = {
    (SGD, "SGD.step"): (), (LINEAR, "Linear"): ("def forward", "return F.linear"),
    (GRAPH_TASK, "torch::autograd::GraphTask"): ("struct GraphTask", "bool keep_graph_"),
    (ENGINE, "torch::autograd::Engine"): ("struct TORCH_API Engine", "virtual ~Engine"),
    (ENGINE, "torch::autograd::ReadyQueue"): (), (ENGINE, "torch::autograd::MAX_DEPTH"): (),
    (KEYS, "c10::DispatchKeySet::has_backend"): (), (STORAGE, "c10::StorageImpl::nbytes"): (),
    (DEVICES, "c10::DeviceType"): ("enum class DeviceType", "CPU = 0"),
    (MACROS, "AT_DISPATCH_FLOATING_TYPES"): (), (KEY, "C10_FORALL_BACKEND_COMPONENTS"): (),
    (OPERATORS, "mul.out"): (), (DERIVATIVES, "mul.Tensor"): (),
}  # fmt: skip
NAMED = {
    1: ("torch.autograd.backward", "torch.Tensor.backward"),
    2: ("torch.nn.Linear", "torch.optim.SGD"),
    3: ("torch.mul", "torch.sum", "torch.matmul", "torch.no_grad",
        "torch.utils.checkpoint.checkpoint"),
    4: ("torch._dynamo.config.recompile_limit", "torch.distributed.fsdp.api.ShardingStrategy"),
}  # fmt: skip

CHANGES: tuple[tuple[str, str, str, str, Level | None, str], ...] = (
    # What a cell calls, or a sentence names.
    ("keyword-only", AUTOGRAD, "    retain_graph: bool | None = None,\n    create_graph: bool = False,\n    grad_v",
     "    *,\n    retain_graph: bool | None = None,\n    create_graph: bool = False,\n    grad_v", Level.NAMED, "passed otherwise"),
    ("positional to keyword-only", SGD, "        lr: float | Tensor = 1e-3,\n        momentum: float = 0,\n        dampening: float = 0,\n        weight_decay: float | Tensor = 0,\n        nesterov: bool = False,\n        *,\n",
     "        *,\n        lr: float | Tensor = 1e-3,\n        momentum: float = 0,\n        dampening: float = 0,\n        weight_decay: float | Tensor = 0,\n        nesterov: bool = False,\n", Level.NAMED, "passed otherwise"),
    ("default of what is not passed", SGD, "nesterov: bool = False", "nesterov: bool = True", Level.NAMED, "default"),
    ("default of what is passed", SGD, "momentum: float = 0,", "momentum: float = 1,", Level.REST, "default"),
    ("parameter removed, passed", AUTOGRAD, "    retain_graph: bool | None = None,\n    create_graph: bool = False,\n    grad_v",
     "    create_graph: bool = False,\n    grad_v", Level.NAMED, "parameter"),
    ("parameter removed, not passed", SGD, "        fused: bool | None = None,\n    ) -> None:", "    ) -> None:", Level.REST, "parameter removed"),
    ("parameter required", LINEAR, "        bias: bool = True,\n        device=None,\n        dtype=None,\n    ) -> None:\n        factory_kwargs = {\"device\": device, \"dtype\": dtype}\n        super().__init__()\n        self.in_features = in_features\n        self.out_features = out_features\n        self.weight = Parameter(",
     "        bias: bool,\n        device=None,\n        dtype=None,\n    ) -> None:\n        factory_kwargs = {\"device\": device, \"dtype\": dtype}\n        super().__init__()\n        self.in_features = in_features\n        self.out_features = out_features\n        self.weight = Parameter(", Level.NAMED, "required"),
    ("parameter into **", CHECKPOINT, "    use_reentrant: bool | None = None,\n    context_fn: Callable[[], Tuple[ContextManager, ContextManager]] = noop_context_fn,\n    determinism_check: str = _DEFAULT_DETERMINISM_MODE,\n    debug: bool = False,\n    early_stop: bool = True,\n    **kwargs\n):",
     "    context_fn: Callable[[], Tuple[ContextManager, ContextManager]] = noop_context_fn,\n    determinism_check: str = _DEFAULT_DETERMINISM_MODE,\n    debug: bool = False,\n    early_stop: bool = True,\n    **kwargs\n):", Level.NAMED, "parameter"),
    ("base class", SGD, "class SGD(Optimizer):", "class SGD(_FusedOptimizer):", Level.NAMED, "base class"),
    ("decorator on a class", GRAD_MODE, "class no_grad(_NoParamDecoratorContextManager):", "class no_grad(_DecoratorContextManager):", Level.NAMED, "base class"),
    ("decorator on a function", CHECKPOINT, "@torch._disable_dynamo\ndef checkpoint(", "@torch._dynamo.allow_in_graph\ndef checkpoint(", Level.NAMED, "decorator"),
    ("enum order", FSDP, "    FULL_SHARD = auto()\n    SHARD_GRAD_OP = auto()", "    SHARD_GRAD_OP = auto()\n    FULL_SHARD = auto()", Level.NAMED, "order"),
    ("member removed, used", FSDP, "    FULL_SHARD = auto()\n", "", Level.NAMED, "member removed"),
    ("member removed, not used", FSDP, "    _HYBRID_SHARD_ZERO2 = auto()\n", "", Level.COUNTED, ""),
    ("overload removed", OPERATORS, "- func: mul.Scalar(Tensor self, Scalar other) -> Tensor\n", "- func: mul2.Scalar(Tensor self, Scalar other) -> Tensor\n", Level.NAMED, "overload removed"),
    ("overload's schema", OPERATORS, "- func: matmul(Tensor self, Tensor other) -> Tensor", "- func: matmul(Tensor self, Tensor other, bool fast) -> Tensor", Level.NAMED, "schema"),
    ("result of an operator", OPERATORS, "- func: matmul(Tensor self, Tensor other) -> Tensor", "- func: matmul(Tensor self, Tensor other) -> (Tensor, Tensor)", Level.NAMED, "schema"),
    ("argument added with a default", OPERATORS, "- func: matmul(Tensor self, Tensor other) -> Tensor", "- func: matmul(Tensor self, Tensor other, *, bool fast=False) -> Tensor", Level.REST, "argument added"),
    ("option's value", DYNAMO, "\nrecompile_limit = 8\n", "\nrecompile_limit = 16\n", Level.NAMED, "value changed"),
    ("deprecated", GRAD_MODE, "class no_grad(", "@deprecated('use another')\nclass no_grad(", Level.NAMED, "deprecated"),
    ("member that a sentence names", LINEAR, "init.kaiming_uniform_(self.weight, a=math.sqrt(5))", "init.xavier_uniform_(self.weight)", Level.NAMED, "code changed"),
    # What the page shows.
    ("condition added", SGD, "\n            if group[\"momentum\"] != 0:\n", "\n            if torch.compiler.is_compiling():\n                continue\n            if group[\"momentum\"] != 0:\n", Level.SHOWN, "condition added"),
    ("keyword of a call", SGD, "maximize=group[\"maximize\"],\n                has_sparse_grad", "maximize=False,\n                has_sparse_grad", Level.SHOWN, "code changed"),
    ("result", LINEAR, "return F.linear(input, self.weight, self.bias)\n\n    def extra_repr(self) -> str:\n        \"\"\"\n        Return the extra representation of the module.\n        \"\"\"\n        return f\"in_features={self.in_features}, out_features={self.out_features}, bias",
     "return F.linear(input, self.weight.t(), self.bias)\n\n    def extra_repr(self) -> str:\n        \"\"\"\n        Return the extra representation of the module.\n        \"\"\"\n        return f\"in_features={self.in_features}, out_features={self.out_features}, bias", Level.SHOWN, "result changed"),
    ("member renamed, shown", GRAPH_TASK, "bool keep_graph_;", "bool retain_graph_;", Level.SHOWN, "member removed"),
    ("base class of C++", GRAPH_TASK, "struct GraphTask : std::enable_shared_from_this<GraphTask> {", "struct GraphTask : c10::intrusive_ptr_target {", Level.SHOWN, "signature"),
    ("virtual taken away", ENGINE, "  virtual ~Engine();", "  ~Engine();", Level.SHOWN, "code changed"),
    ("constant", ENGINE, "static constexpr int MAX_DEPTH = 60;", "static constexpr int MAX_DEPTH = 100;", Level.SHOWN, ""),
    ("comparison turned", ENGINE, "return t1.fn_->sequence_nr() < t2.fn_->sequence_nr();", "return t1.fn_->sequence_nr() > t2.fn_->sequence_nr();", Level.SHOWN, "result changed"),
    ("default argument", ENGINE, "void push(NodeTask item, bool incrementOutstandingTasks = true);", "void push(NodeTask item, bool incrementOutstandingTasks = false);", Level.SHOWN, "value changed"),
    ("template argument", ENGINE, "std::priority_queue<NodeTask, std::vector<NodeTask>, CompareNodeTaskTime>", "std::priority_queue<NodeTask, std::deque<NodeTask>, CompareNodeTaskTime>", Level.SHOWN, "renamed"),
    ("check added", STORAGE, "    TORCH_CHECK(!size_bytes_is_heap_allocated_);\n    return size_bytes_.as_int_unchecked();", "    TORCH_CHECK(!size_bytes_is_heap_allocated_);\n    TORCH_CHECK(allocator_);\n    return size_bytes_.as_int_unchecked();", Level.SHOWN, "condition added"),
    ("value of an enum", DEVICES, "  CPU = 0,", "  CPU = 9,", Level.SHOWN, "value changed"),
    ("macro", MACROS, "  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))\n", "  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))\n", Level.SHOWN, ""),
    ("macro's list", KEY, "  _(HIP, extra)                                 \\\n", "", Level.SHOWN, ""),
    ("formula of a derivative, shown", DERIVATIVES, "  self: mul_tensor_backward(grad, other, self.scalar_type())\n  other: mul_tensor_backward(grad, self, other.scalar_type())\n  result: other_t", "  self: grad * other\n  other: mul_tensor_backward(grad, self, other.scalar_type())\n  result: other_t", Level.SHOWN, ""),
    ("entry of the dispatcher, shown", OPERATORS, "    CPU, CUDA, MPS, MTIA: mul_out\n", "    CPU, MPS, MTIA: mul_out\n    CUDA: mul_out_cuda\n", Level.SHOWN, ""),
    # What no sentence rests on.
    ("member removed, not named", STORAGE, "  bool resizable() const {\n    return resizable_;\n  }\n", "", None, ""),
    ("beside what is shown", ENGINE, "  virtual std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() {\n    return nullptr;\n  }\n", "", Level.REST, "member removed"),
    ("enum order, C++", DEVICES, "  CUDA = 1, // CUDA.\n  MKLDNN = 2, // Reserved for explicit MKLDNN\n", "  MKLDNN = 2,\n  CUDA = 1,\n", Level.REST, "order"),
    ("formula of a derivative", DERIVATIVES, "      self: grad.expand_symint(self.sym_sizes())\n      result: auto_linear\n", "      self: grad.expand(self.sizes())\n      result: auto_linear\n", Level.REST, "derivative"),
    ("code of a named function", TENSOR, "            self, gradient, retain_graph, create_graph, inputs=inputs\n        )\n", "            self, gradient, retain_graph, create_graph, inputs=inputs or None\n        )\n", Level.COUNTED, ""),
    ("entry for CPU", OPERATORS, "    CompositeExplicitAutograd: sum\n", "    CPU, CUDA: sum\n", Level.COUNTED, ""),
    # What is gone.
    ("renamed", AUTOGRAD, "def backward(\n    tensors", "def run_backward(\n    tensors", Level.GONE, "gone"),
    ("shown function removed", SGD, "    def step(self, closure=None):", "    def _step(self, closure=None):", Level.GONE, "gone"),
    ("class of C++ renamed", ENGINE, "struct ReadyQueue {", "struct TaskQueue {", Level.GONE, "gone"),
    ("entry removed", OPERATORS, "- func: mul.out(", "- func: mul_other.out(", Level.GONE, "gone"),
    # Neutral.
    ("hint", SGD, "momentum: float = 0,", "momentum: float | int = 0,", None, ""),
    ("docstring", AUTOGRAD, "Compute the sum of gradients of given tensors", "Compute sums of gradients of given tensors", None, ""),
    ("comment", ENGINE, "  // To protect read and writes to heap_\n", "  // Guards heap_.\n", None, ""),
    ("layout", SGD, "            sgd(\n                params,\n                grads,\n", "            sgd(\n                params, grads,\n", None, ""),
    ("local renamed", LINEAR, "            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0\n            init.uniform_(self.bias, -bound, bound)\n\n    def forward(self, input: Tensor) -> Tensor:\n        \"\"\"\n        Runs the forward pass.\n        \"\"\"\n        return F.linear(input, self.weight, self.bias)\n\n    def extra_repr(self) -> str:\n        \"\"\"\n        Return the extra representation of the module.\n        \"\"\"\n        return f\"in_features={self.in_features}, out_features={self.out_features}, bias",
     "            limit = 1 / math.sqrt(fan_in) if fan_in > 0 else 0\n            init.uniform_(self.bias, -limit, limit)\n\n    def forward(self, input: Tensor) -> Tensor:\n        \"\"\"\n        Runs the forward pass.\n        \"\"\"\n        return F.linear(input, self.weight, self.bias)\n\n    def extra_repr(self) -> str:\n        \"\"\"\n        Return the extra representation of the module.\n        \"\"\"\n        return f\"in_features={self.in_features}, out_features={self.out_features}, bias", None, ""),
    ("attribute for the compiler", STORAGE, "  size_t nbytes() const {", "  [[nodiscard]] size_t nbytes() const {", None, ""),
    ("promise not to throw", STORAGE, "  size_t nbytes() const {", "  size_t nbytes() const noexcept {", None, ""),
    ("kernel of another backend", OPERATORS, "    SparseCPU: mul_out_sparse_cpu\n", "    SparseCPU: mul_out_sparse\n", None, ""),
    ("order of keys", OPERATORS, "  structured: True\n  structured_inherits: TensorIteratorBase\n  dispatch:\n    CPU, CUDA, MPS, MTIA: mul_out\n", "  structured_inherits: TensorIteratorBase\n  structured: True\n  dispatch:\n    CPU, CUDA, MPS, MTIA: mul_out\n", None, ""),
    ("typing overload", GRAD_MODE, "    def __enter__(self) -> None:\n        self.prev = torch.is_grad_enabled()\n        torch.set_grad_enabled(False)\n", "    @overload\n    def __enter__(self) -> None: ...\n    def __enter__(self) -> None:\n        self.prev = torch.is_grad_enabled()\n        torch.set_grad_enabled(False)\n", None, ""),
    ("moved with a re-export", AUTOGRAD, "def backward(\n    tensors", "MOVED", Level.COUNTED, "moved"),
    ("renamed with an alias", AUTOGRAD, "def backward(\n    tensors", "ALIAS", Level.COUNTED, ""),
)  # fmt: skip


@pytest.fixture(scope="module")
def sources() -> dict[str, bytes]:
    facts = torch_facts()
    assert facts is not None
    installed = open_folder(facts.root.parent)
    return {file: installed.read(file) or b"" for file in FILES_READ}


@pytest.fixture(scope="module")
def tree(sources: dict[str, bytes]) -> Tree:
    return Tree("1.0", "", frozenset(sources), False, sources.__getitem__)


@pytest.fixture(scope="module")
def anchors(tree: Tree) -> list[Anchor]:
    found = []
    for (file, symbol), texts in SHOWN.items():
        (one,) = [d for d in definitions(tree, file, symbol) if d.body][:1]
        what = one.definition
        rows = [n for n, line in enumerate(what.lines, what.first) if any(t in line for t in texts)]
        shown = tuple((n, n) for n in rows) or ((what.first, what.last),)
        cell = {SGD: 2, LINEAR: 2, OPERATORS: 3, DERIVATIVES: 3, KEYS: 4, KEY: 4}.get(file, 1)
        found.append(Anchor(DOC, "excerpt", symbol, (cell,), file, symbol, (what.first, what.last),
                            shown, one.sha256[:32], what.signature))  # fmt: skip
    for cell, names in NAMED.items():
        for name in names:
            one = api(DOC, name, (cell,), tree)
            assert one is not None, name
            found.append(one)
    return found


Changed = Callable[[str, str, str], list[Item]]


@pytest.fixture(scope="module")
def changed(sources: dict[str, bytes], tree: Tree, anchors: list[Anchor]) -> Changed:
    prose = {DOC: read(CHAPTER)}

    def told(file: str, old: str, new: str) -> list[Item]:
        text = sources[file].decode()
        assert text.count(old) >= 1, old
        files = {**sources, file: text.replace(old, new, 1).encode()}
        if new in ("MOVED", "ALIAS"):
            start = text.index(old)
            end = text.index("\n\n\n@overload\ndef grad(", start)
            body = text[start:end]
            files["torch/autograd/_walk.py"] = body.encode()
            kept = "from torch.autograd._walk import backward\n"
            if new == "ALIAS":
                kept = body.replace("def backward(", "def run(", 1) + "\n\nbackward = run\n"
            files[file] = (text[:start] + kept + text[end:]).encode()
        other = Tree("2.0", "", frozenset(files), False, files.__getitem__)
        return items(compare(anchors, tree, other), prose)

    return told


def test_the_set_holds_what_it_should() -> None:
    assert len([one for one in CHANGES if one[4] is not None]) >= 40
    assert len({one[0] for one in CHANGES}) == len(CHANGES)


@pytest.mark.parametrize(
    ("file", "old", "new", "level", "why"),
    [one[1:] for one in CHANGES],
    ids=[one[0] for one in CHANGES],
)
def test_a_change_is_told_at_its_rank(
    changed: Changed, file: str, old: str, new: str, level: Level | None, why: str
) -> None:
    found = sorted(changed(file, old, new), key=lambda item: item.level)
    said = [(item.level.name, item.why, item.target) for item in found]
    if level is None:
        assert said == []
        return
    assert said and found[0].level == level, said
    assert why in found[0].why, said
    if level < Level.REST:
        rest = found[0].rests[0]
        assert rest.text or rest.line, "no place rests on it"
        assert found[0].old or found[0].new or level is Level.GONE


def test_the_installed_release_beside_itself_stands(
    sources: dict[str, bytes], tree: Tree, anchors: list[Anchor]
) -> None:
    same = Tree("2.0", "", frozenset(sources), False, sources.__getitem__)
    assert items(compare(anchors, tree, same), {DOC: read(CHAPTER)}) == []
