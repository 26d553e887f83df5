"""The miniature Module loads PyTorch's checkpoints and gives the same bits; so do its names."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from miniatures import checkpoint, module
from miniatures.checkpoint import read
from miniatures.module import EVERYWHERE, Module
from miniatures.module_observe import (
    allocated,
    every_hook,
    functions_entered,
    own_memory,
    records,
    saved,
)
from miniatures.random_modules import (
    BatchNorm,
    Linear,
    Pair,
    ReLU,
    Residual,
    Sequential,
    TorchResidual,
    random_pair,
)

SEEDS = range(240)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost more than they bring to models of four numbers in a row."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(a, b)


def outputs(pair: Pair) -> list[tuple[Tensor, Tensor]]:
    """Return both outputs in training mode, which moves the statistics, then in evaluation."""
    found = []
    for mode in (True, False):
        pair.theirs.train(mode)
        for part in pair.mine.modules():
            part.training = mode
        found.append((pair.theirs(pair.batch), pair.mine(pair.batch)))
    return found


@pytest.mark.parametrize(
    "seeds",
    [
        SEEDS[:12],
        *(pytest.param(SEEDS[i : i + 57], marks=pytest.mark.slow) for i in range(12, 240, 57)),
    ],
    ids=str,
)
def test_checkpoints_of_pytorch_give_the_same_bits(seeds: range) -> None:
    for seed in seeds:
        pair = random_pair(seed)
        assert pair.mine.load_state_dict(read(saved(pair.theirs.state_dict()))) == ([], [])
        assert all(same(a, b) for a, b in outputs(pair)), f"seed {seed}"
        ours, theirs = pair.mine.state_dict(), pair.theirs.state_dict()
        assert list(ours) == list(theirs), f"seed {seed}"
        assert ours._metadata == theirs._metadata, f"seed {seed}"
        assert all(same(ours[key], theirs[key]) for key in ours), f"seed {seed}"


@pytest.mark.slow
def test_pytorch_loads_what_the_miniature_saves() -> None:
    for seed in SEEDS[:60]:
        pair = random_pair(seed)
        pair.mine.load_state_dict(pair.theirs.state_dict())
        fresh = copy.deepcopy(pair.theirs)
        with torch.no_grad():
            for tensor in fresh.state_dict().values():
                tensor.zero_()
        fresh.load_state_dict(torch.load(saved(pair.mine.state_dict())))
        assert same(fresh.eval()(pair.batch), pair.theirs.eval()(pair.batch)), f"seed {seed}"


@pytest.mark.slow
def test_without_the_checkpoint_the_outputs_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Module, "load_state_dict", lambda *args, **kwargs: ([], []))
    differ = 0
    for seed in SEEDS[:60]:
        pair = random_pair(seed)
        pair.mine.load_state_dict(pair.theirs.state_dict())
        differ += not all(same(a, b) for a, b in outputs(pair))
    assert differ > 50


@pytest.mark.slow
def test_the_models_have_what_the_comparison_is_about() -> None:
    seen = dict.fromkeys(["buffers", "transient", "nested", "twice", "wide", "none"], 0)
    for seed in SEEDS:
        pair = random_pair(seed)
        theirs = pair.theirs
        state = theirs.state_dict()
        seen["buffers"] += any("running" in key for key in state)
        seen["transient"] += len(dict(theirs.named_buffers())) > sum("running" in k for k in state)
        seen["nested"] += any(key.count(".") > 2 for key in state)
        seen["twice"] += len({t.data_ptr() for t in state.values()}) < len(state)
        seen["wide"] += any(t.dtype == torch.float64 for t in state.values())
        seen["none"] += any(m.bias is None for m in theirs.modules() if isinstance(m, nn.Linear))
    assert min(seen.values()) > 10, seen


class Plain(nn.Module):
    pass


def values(choose: random.Random) -> tuple[Any, Any]:
    """Return a value to assign, for PyTorch's module and for the miniature."""
    tensor = torch.tensor([choose.random()])
    kind = choose.choice(["parameter", "module", "buffer", "transient", "tensor", "number", "none"])
    pairs: dict[str, Callable[[], tuple[Any, Any]]] = {
        "parameter": lambda: (nn.Parameter(tensor),) * 2,
        "module": lambda: (nn.Identity(), Module()),
        "buffer": lambda: (nn.Buffer(tensor),) * 2,
        "transient": lambda: (nn.Buffer(tensor, persistent=False),) * 2,
        "tensor": lambda: (tensor,) * 2,
        "number": lambda: (1, 1),
        "none": lambda: (None, None),
    }
    return pairs[kind]()


def attempt(target: Any, name: str, value: Any) -> type[BaseException] | None:
    try:
        setattr(target, name, value)
    except (TypeError, KeyError, AttributeError) as error:
        return type(error)
    return None


def test_names_find_the_same_tables_and_the_same_errors() -> None:
    failures: dict[type[BaseException] | None, int] = {}
    for seed in range(400):
        choose, theirs, mine = random.Random(seed), Plain(), Module()
        for _ in range(12):
            name, (value, other) = choose.choice("abc"), values(choose)
            result = attempt(theirs, name, value)
            assert result == attempt(mine, name, other), f"seed {seed}"
            failures[result] = failures.get(result, 0) + 1
        inside = theirs.__dict__
        for title, table in (("_parameters", mine.parameters), ("_buffers", mine.buffers)):
            assert dict(inside[title]) == table, f"seed {seed}"
        assert inside["_modules"].keys() == mine.children.keys()
        assert {n for n in "abc" if n in inside} == {n for n in "abc" if n in mine.__dict__}
        assert theirs.state_dict().keys() == mine.state_dict().keys(), f"seed {seed}"
        assert all(hasattr(theirs, n) == hasattr(mine, n) for n in "abc")
    assert failures[TypeError] > 100
    assert failures[KeyError] > 10


def test_assigning_before_init_raises_as_in_pytorch() -> None:
    class Theirs(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(torch.zeros(1))

    class Mine(Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(torch.zeros(1))

    for broken in (Theirs, Mine):
        with pytest.raises(AttributeError, match=r"__init__\(\)"):
            broken()


def spoil(state: Any, choose: random.Random) -> Any:
    """Return a copy of a state with names dropped, added and tensors resized."""
    versions, broken = state._metadata, copy.deepcopy(state)
    for key in list(broken):
        if choose.random() < 0.15:
            del broken[key]
        elif choose.random() < 0.1:
            broken[key] = torch.zeros(7, 7)
    for extra in ("0.more", "9.weight", "scale.x", "other"):
        if choose.random() < 0.2:
            broken[extra] = torch.zeros(1)
    broken._metadata = versions
    return broken


@pytest.mark.slow
def test_what_does_not_fit_is_reported_and_the_rest_is_loaded() -> None:
    raised = returned = 0
    for seed in SEEDS[:120]:
        choose, pair = random.Random(seed), random_pair(seed)
        broken = spoil(pair.theirs.state_dict(), choose)
        target = copy.deepcopy(pair.theirs)
        pair.mine.load_state_dict(target.state_dict())
        for tensor in broken.values():
            tensor.add_(1)
        for strict in (False, True):
            try:
                mine: Any = pair.mine.load_state_dict(broken, strict)
            except RuntimeError as error:
                mine = str(error).count(";") + 1
            try:
                theirs: Any = tuple(target.load_state_dict(broken, strict))
                assert mine == theirs, f"seed {seed}"
                returned += 1
            except RuntimeError as error:
                assert mine == _reported(str(error)), f"seed {seed}"
                raised += 1
            ours = pair.mine.state_dict()
            assert all(same(t, ours[k]) for k, t in target.state_dict().items()), f"seed {seed}"
    assert raised > 40
    assert returned > 40


def _reported(message: str) -> int:
    lines = message.split("\n\t")[1:]
    return sum(line.count('"') // 2 if "key(s)" in line else 1 for line in lines)


def test_assign_puts_the_given_memory_in_place() -> None:
    mine, weight, bias = Linear(2, 3), torch.rand(3, 2), torch.rand(3)
    before = mine.weight
    mine.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    assert mine.weight is not before
    assert mine.weight.data_ptr() == weight.data_ptr()
    assert isinstance(mine.bias, nn.Parameter)
    assert mine.bias.requires_grad


def test_a_state_of_version_one_gets_its_missing_counter() -> None:
    theirs, mine = nn.BatchNorm1d(2), BatchNorm(2)
    state: Any = theirs.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="no num_batches_tracked"):
        mine.load_state_dict(state)
    state._metadata[""]["version"] = 1
    assert mine.load_state_dict(state) == ([], [])


def test_convert_keeps_parameters_and_replaces_buffers_as_pytorch_does() -> None:
    theirs, mine = nn.BatchNorm1d(2), BatchNorm(2)
    for model in (theirs, mine):
        x = torch.rand(3, 2)
        model(x).sum().backward()
        weight, mean, count = model.weight, model.running_mean, model.num_batches_tracked
        gradient = weight.grad
        if isinstance(model, nn.Module):
            model.double()
        else:
            model.convert(lambda t: t.double() if t.is_floating_point() else t)
        assert model.weight is weight
        assert weight.grad is gradient
        assert weight.dtype == gradient.dtype == torch.float64
        assert model.running_mean is not mean
        assert model.num_batches_tracked is count


def test_hooks_run_and_replace_as_in_pytorch() -> None:
    theirs: nn.Module = nn.Sequential(nn.ReLU())
    mine = Sequential(ReLU())
    log: dict[str, list[str]] = {"theirs": [], "mine": []}

    def before(who: str, name: str, change: float) -> Callable[..., Any]:
        def hook(_: Any, args: tuple[Tensor]) -> Any:
            log[who].append(name)
            return args[0] + change if change else None

        return hook

    def after(who: str, name: str, change: float) -> Callable[..., Any]:
        def hook(_: Any, args: tuple[Tensor], result: Tensor) -> Any:
            log[who].append(f"{name} {args[0].tolist()}")
            return result * change if change else None

        return hook

    handles = [
        nn.modules.module.register_module_forward_pre_hook(before("theirs", "all", 2.0)),
        nn.modules.module.register_module_forward_hook(after("theirs", "all", 0.0)),
    ]
    EVERYWHERE["before"].append(before("mine", "all", 2.0))
    EVERYWHERE["after"].append(after("mine", "all", 0.0))
    try:
        for change in (0.0, -5.0):
            theirs.register_forward_pre_hook(before("theirs", f"pre {change}", change))
            mine.hooks["before"].append(before("mine", f"pre {change}", change))
            theirs.register_forward_hook(after("theirs", f"post {change}", change))
            mine.hooks["after"].append(after("mine", f"post {change}", change))
        x = torch.tensor([1.0, 9.0])
        assert same(theirs(x), mine(x))
    finally:
        for handle in handles:
            handle.remove()
        EVERYWHERE["before"].clear()
        EVERYWHERE["after"].clear()
    assert log["theirs"] == log["mine"]
    assert len(log["mine"]) == 8


def test_modules_come_in_the_order_of_pytorch() -> None:
    shared_theirs, shared_mine = nn.ReLU(), ReLU()
    theirs = TorchResidual(nn.Sequential(shared_theirs, nn.Sequential(nn.ReLU()), shared_theirs))
    mine = Residual(Sequential(shared_mine, Sequential(ReLU()), shared_mine))
    names = [type(part).__name__.removeprefix("Torch") for part in theirs.modules()]
    assert [type(part).__name__ for part in mine.modules()] == names


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wieght'"):
        _ = Linear(1, 1).wieght


def test_the_reader_keeps_sharing_and_views() -> None:
    whole = torch.arange(6.0)
    loaded = read(saved({"whole": whole, "odd": whole[1::2], "empty": torch.empty(0, 3)}))
    assert loaded["empty"].shape == (0, 3)
    assert loaded["odd"].tolist() == [1.0, 3.0, 5.0]
    loaded["whole"][1] = -1
    assert loaded["odd"][0] == -1


def test_the_reader_refuses_what_is_not_on_its_list() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear is not"):
        read(saved(nn.Linear(1, 1)))


def test_hooks_of_all_kinds_run_in_one_order() -> None:
    events = every_hook()
    assert len({event.what for event in events}) == len(events) == 23
    assert all(every_hook(seed) == events for seed in range(20))


def test_nothing_stays_registered() -> None:
    every_hook()
    model, x = nn.Identity(), torch.ones(1)
    entered = functions_entered(lambda: model(x))
    assert entered == ["_wrapped_call_impl", "_call_impl", "forward"]


def test_bytes_are_counted() -> None:
    keep: list[Tensor] = []
    counted = allocated(lambda: keep.append(torch.empty(1000).neg()))
    assert (counted.total, counted.kept, counted.peak) == (8000, 4000, 8000)


def test_own_memory_grows_with_written_tensors() -> None:
    before = own_memory()
    kept = torch.ones(2**24)
    assert own_memory() - before > 0.9 * kept.nbytes


def test_records_begin_where_they_are_said_to() -> None:
    file = saved({"x": torch.arange(3.0)})
    found = {record.name.rpartition("/")[2]: record for record in records(file)}
    begin = found["0"].offset
    assert file.getvalue()[begin : begin + 12] == torch.arange(3.0).numpy().tobytes()
    assert not any(record.compressed for record in found.values())


def test_they_stay_miniatures() -> None:
    for part in (module, checkpoint):
        source = part.__file__
        assert source is not None
        assert len(Path(source).read_text(encoding="utf-8").splitlines()) <= 150
