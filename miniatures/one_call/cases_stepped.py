"""The statements that the chapter on one call steps through, and what they need."""

SETUP = """
a, b, c, out = (torch.ones(16) for _ in range(4))
g = torch.ones(16, requires_grad=True)
wide, rows = torch.ones(16, dtype=torch.float64), torch.ones(4, 16)
x = {n: torch.ones(n) for n in (17, 31, 32)}
one = torch.ones(())
own = torch.ones(16).as_subclass(type("Own", (torch.Tensor,), {}))
mode, quiet = torch.inference_mode(), torch.no_grad()
with torch.inference_mode():
    i, j = torch.ones(16), torch.ones(16)
"""

CALLS = {
    "torch.add(a, b)": "r = torch.add(a, b)",
    "freeing it": "del r",
    "a.add(b)": "r = a.add(b)",
    "a + b": "r = a + b",
    "a.add_(b)": "a.add_(b)",
    "out=": "torch.add(a, b, out=out)",
    "requires grad": "r = torch.add(g, b)",
    "freeing that": "del r",
    "broadcast": "r = torch.add(a, rows)",
    "torch.ops": "r = torch.ops.aten.add.Tensor(a, b)",
    "no dimension": "r = torch.add(a, one)",
    "two dtypes": "r = torch.add(a, wide)",
    "a number": "r = torch.add(a, 2)",
    "a float": "r = torch.add(a, 2.0)",
    "a subclass": "r = torch.add(own, b)",
    "two calls": "r = torch.mul(torch.add(a, b), c)",
    "17 numbers": "r = torch.add(x[17], x[17])",
    "31 numbers": "r = torch.add(x[31], x[31])",
    "32 numbers": "r = torch.add(x[32], x[32])",
    "quiet on": "quiet.__enter__()",
    "no_grad": "r = torch.add(g, b)",
    "quiet off": "quiet.__exit__(None, None, None)",
    "mode on": "mode.__enter__()",
    "inference mode": "r = torch.add(i, j)",
    "mode off": "mode.__exit__(None, None, None)",
}

WIDE_CALLS = {"add": "r = torch.add(a, b)", "sigmoid": "r = torch.sigmoid(x[32])"}
"""What is run with the widest vectors allowed."""

FORCED = "assert torch.backends.cpu.get_cpu_capability() == 'AVX512'"
"""Fails unless the variable ATEN_CPU_CAPABILITY has had its effect."""

KERNEL = "callback_fn|add_kernel|sigmoid_kernel"
"""Functions whose instructions are shown, not only counted: the kernel and its loop."""

MILESTONES = {
    "THPVariable_add": "the binding begins",
    "PythonArgParser::raw_parse": "which overload fits?",
    "gil_scoped_release::gil_scoped_release": "give back Python's lock",
    "add_Tensor::call": "dispatcher: which kernel first?",
    "VariableType::add_Tensor": "autograd: record this?",
    "add_Tensor::redispatch": "dispatcher: which kernel next?",
    "wrapper_CPU_add_Tensor": "the CPU's kernel begins",
    "structured_add_Tensor::meta": "type, shape, memory",
    "structured_ufunc_add_CPU::impl": "which loop?",
    "function_ref::callback_fn": "the loop adds",
    "TensorIteratorBase::~TensorIteratorBase": "clear up",
    "gil_scoped_release::~gil_scoped_release": "take the lock again",
    "THPVariable_Wrap": "make the Python object",
}
"""Functions that one call passes, in order, and what begins with each."""
