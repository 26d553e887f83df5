"""The miniature dispatcher computes PyTorch's tables and runs the kernels that PyTorch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch

from insidetorch.errors import BookError
from insidetorch.private.keys import dispatch_keys, forced_sets, key_bits, key_set, thread_sets
from insidetorch.private.tables import computed_table, operator_names, table_is_current
from miniatures.dispatcher import tables as module
from miniatures.dispatcher.cases import random_case
from miniatures.dispatcher.draw_keys import changes, layers, sets, stop, the_sum
from miniatures.dispatcher.draw_tables import (
    bars,
    conventions,
    filling,
    kernels_at,
    pile,
    place,
    shares,
    table_grid,
    used,
)
from miniatures.dispatcher.record_walk import Stop, recorded
from miniatures.dispatcher.tables import RULES, Dispatcher, Kernel, Operator
from miniatures.dispatcher.watch import (
    backend_select,
    compiled,
    copied,
    dispatcher_here,
    functionalities,
    keys_here,
    kinds_of_tensors,
    passive_mode,
    runs,
    seen_inside,
    table_of,
    union,
    walk,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SEEDS = range(5000, 5010)


@pytest.fixture(scope="module")
def small() -> Dispatcher:
    return dispatcher_here()


@pytest.fixture
def reset(small: Dispatcher) -> Iterator[Dispatcher]:
    small.included, small.excluded = thread_sets()
    yield small
    small.included = small.excluded = 0


def test_operators_have_the_same_table(small: Dispatcher) -> None:
    """One in fifty: the chapter compares them all."""
    names = sorted(operator_names())[7::50]
    assert len(names) > 60
    different = [name for name in names if table_of(copied(name, small)) != computed_table(name)]
    assert not different


def test_the_comparison_is_about_every_rule() -> None:
    rules = Counter(rule for name in operator_names() for _, rule in computed_table(name).values())
    assert set(rules) >= {"kernel", "backend fallback", *RULES.values()}


def test_random_operators_have_the_same_tables_and_run_the_same_kernels(small: Dispatcher) -> None:
    """A few: the chapter compares two hundred."""
    tensors = kinds_of_tensors().values()
    ends: Counter[str] = Counter()
    stale = 0
    for seed in SEEDS:
        case = random_case(seed, small)
        assert table_of(case.small) == case.table_here(), seed
        if not table_is_current(case.name):
            stale += 1  # what a call finds is not what PyTorch prints
            continue
        for tensor in tensors:
            for context in (torch.no_grad, torch.inference_mode):
                with context():
                    here, ours = case.call_here(tensor), case.call_small(tensor)
                assert here == ours, (seed, dispatch_keys(tensor))
                ends["nothing" if here[-1].startswith("no kernel") else "kernel"] += 1
                ends["several"] += len(here) > 2
    assert min(ends.values()) > 0, ends
    assert stale < len(SEEDS) / 2


def test_two_tensors_are_united(small: Dispatcher) -> None:
    kinds = list(kinds_of_tensors().values())
    for seed in range(40):
        case = random_case(seed, small)
        if table_is_current(case.name):
            for one, other in pairwise(kinds):
                assert case.call_here(one, other) == case.call_small(other, one)


def _no_coverage(op: Operator, key: str) -> tuple[Kernel | None, str]:
    behind, op.dispatcher.behind = op.dispatcher.behind, {}
    try:
        return Operator.entry(op, key)
    finally:
        op.dispatcher.behind = behind


def _fallback_first(op: Operator, key: str) -> tuple[Kernel | None, str]:
    fallback = op.dispatcher.fallbacks.get(key)
    return (fallback, "backend fallback") if fallback else Operator.entry(op, key)


@pytest.mark.parametrize("broken", [_no_coverage, _fallback_first])
def test_another_rule_gives_another_table(
    broken: Callable[[Operator, str], tuple[Kernel | None, str]], small: Dispatcher
) -> None:
    differ = 0
    for seed in range(50):
        case = random_case(seed, small)
        theirs = case.table_here()
        for key in small.keys.runtime:
            kernel, rule = broken(case.small, key)
            differ += theirs.get(key) != ((kernel.where, rule) if kernel else None)
    assert differ > 0


def test_the_order_of_the_aliases_matters(
    small: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RULES", dict(reversed(list(RULES.items()))))
    cases = [random_case(seed, small) for seed in range(50)]
    assert any(table_of(case.small) != case.table_here() for case in cases)


def test_key_sets_agree_with_pytorch() -> None:
    keys = keys_here()
    assert len(keys.backends) + len(keys.families) <= 64
    assert sum(map(len, keys.families)) == len(keys.runtime)
    for name, tensor in kinds_of_tensors().items():
        bits, members = key_bits(tensor), dispatch_keys(tensor)
        assert keys.top(bits) == members[-1], name
        assert all(keys.bits[member] & bits == keys.bits[member] for member in members)
        assert str(key_set(bits)) == f"DispatchKeySet({', '.join(members)})"


def test_a_backend_stays_when_a_functionality_goes() -> None:
    keys = keys_here()
    both = keys.bits["CPU"] | keys.bits["AutogradCUDA"]
    assert keys.top(both) == "AutogradCUDA"
    assert keys.top(keys.without(both, keys.bits["AutogradCUDA"])) == "CUDA"


def test_the_thread_s_sets_are_read_and_forced() -> None:
    keys = keys_here()
    before = thread_sets()
    with forced_sets(keys.bits["Python"], 0):
        assert thread_sets() == (keys.bits["Python"], 0)
    assert thread_sets() == before
    assert functionalities(before[0]) == ["BackendSelect", "ADInplaceOrView"]
    assert functionalities(keys.bits["CPU"] | keys.bits["AutogradCPU"]) == ["Dense", "Autograd"]


def test_what_modes_change() -> None:
    assert seen_inside(torch.no_grad) == ("–", "–", "–")
    assert seen_inside(torch.inference_mode)[0] == "−ADInplaceOrView"
    assert seen_inside(passive_mode)[0] == "+Python +PythonTLSSnapshot"
    assert seen_inside(torch.vmap)[2] == "+FuncTorchBatched"


def test_a_walk_tells_the_fate_of_each_key() -> None:
    steps = walk("aten::add.Tensor", torch.ones(2, 2), torch.eye(2).to_sparse())
    assert [(step.key, step.fate) for step in steps] == [
        ("AutocastCPU", "excluded"), ("AutogradCPU", "runs first"),
        ("ADInplaceOrView", "falls through"), ("BackendSelect", "falls through"),
        ("SparseCPU", "runs next"), ("CPU", "not reached"),
    ]  # fmt: skip
    assert runs(torch.eye(2).to_sparse())[-1] == "SparseCPU"


def test_a_missing_kernel_and_an_ambiguous_one_raise(reset: Dispatcher) -> None:
    op = Operator("here::nothing", reset)
    with pytest.raises(NotImplementedError, match=r"'here::nothing' from the 'SparseCPU'"):
        reset.call(op, key_bits(torch.eye(2).to_sparse()))
    op.register("CompositeImplicitAutograd", Kernel("composite", print))
    op.register("SparseCPU", Kernel("sparse", print))
    with pytest.raises(RuntimeError, match="ambiguous"):
        reset.call(op, key_bits(torch.ones(2).to_mkldnn()))


def test_the_newest_kernel_is_active(reset: Dispatcher) -> None:
    ran: list[str] = []
    op = Operator("here::twice", reset)
    for name in ("old", "new"):
        op.register("CPU", Kernel(name, lambda op, keys, name=name: ran.append(name)))
    with torch.inference_mode():
        reset.call(op, union(torch.ones(2)))
    assert ran == ["new"]


def test_the_generator_writes_the_kernel_that_selects_a_backend() -> None:
    assert "computeDispatchKey(dtype, layout, device)" in backend_select("empty.memory_format")


def test_no_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BookError, match=r"install g\+\+"):
        compiled("int one() { return 1; }")


def test_a_walk_is_recorded_as_it_runs_and_leaves_nothing() -> None:
    rows, w = torch.ones(3, 2), torch.ones(2, requires_grad=True)
    before = computed_table("aten::mul.Tensor")
    notes = recorded(lambda: torch.vmap(lambda row: row * w)(rows), "aten::mul.Tensor")
    assert [note.key for note in notes][1::2] == ["FuncTorchBatched", "AutogradCPU"]
    assert all(note.keys[0] == note.key for note in notes)
    assert computed_table("aten::mul.Tensor") == before


def test_a_composite_operator_is_recorded_as_it_is() -> None:
    """Watching a place must not change which kernel another place has."""
    x, weight = torch.ones(2), torch.ones(3, 2)
    notes = recorded(lambda: torch.nn.functional.linear(x, weight), "aten::linear")
    assert [note.key for note in notes] == ["AutogradCPU"]


def test_a_call_that_raises_is_recorded_up_to_there() -> None:
    before = computed_table("aten::mm")
    with pytest.raises(RuntimeError):
        recorded(lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)), "aten::mm")
    assert computed_table("aten::mm") == before


def test_pictures_say_what_is_in_them() -> None:
    dense, sparse = torch.ones(2, 2), torch.eye(2).to_sparse()
    assert "sparse numbers on the CPU: runs next" in layers("aten::add.Tensor", dense, sparse).text
    said = the_sum("aten::add.Tensor", dense, sparse).text
    assert "AutogradCPU: the highest" in said and "BackendSelect: the thread adds it" in said
    assert "Sparse: in the set" in sets({"sparse": key_bits(sparse)}).text
    drawn = table_grid(["aten::cumsum"], ["SparseCPU", "CPU"])
    assert "cumsum: CPU: a kernel for this place alone" in drawn.text
    modes = {"no_grad": seen_inside(torch.no_grad), "vmap": seen_inside(torch.vmap)}
    assert "no_grad: nothing" in changes(modes).text
    state = Stop("a::b", "CPU", "x.cpp:1", ("CPU",), *thread_sets())
    assert "CPU: the highest" in stop(state, [state]).text
    assert "old" in pile({"now": ["new", "old"]}).text
    assert "Int" in conventions([("n", "int64_t", "Int")], 16).text
    assert "12 ns" in bars({"a": 12.0}, "ns").text and "a 1" in used({"a": 1}, 2).text
    assert "CPU" in shares({"aten::mm": computed_table("aten::mm")}).text
    assert place("aten::cumsum", "SparseCPU") is None and kernels_at("aten::mm", "CPU")
    assert "+ CPU" in filling({"+ CPU": {"CPU": place("aten::mm", "CPU")}}).text
