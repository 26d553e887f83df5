"""Tensors on many ranks: ranks in one process, and the groups that `fully_shard` gathers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from insidetorch.private.name import Name

_FSDP = "torch.distributed.fsdp._fully_shard"


def _fsdp_state() -> object:
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

    return FSDPState()


_LOCAL_MODE = Name("torch.distributed._local_tensor.LocalTensorMode")
_LOCAL_TENSOR = Name("torch.distributed._local_tensor.LocalTensor")
_STATE_OF = Name(f"{_FSDP}._fsdp_state._get_module_fsdp_state")
_GROUP_OF = Name(f"{_FSDP}._fsdp_state.FSDPState._fsdp_param_group", _fsdp_state)
_UNSHARD = Name(f"{_FSDP}._fsdp_param_group.FSDPParamGroup.unshard")
_WAIT = Name(f"{_FSDP}._fsdp_param_group.FSDPParamGroup.wait_for_unshard")
_FREE = Name(f"{_FSDP}._fsdp_param_group.FSDPParamGroup._to_sharded")
_POST_BACKWARD = Name(f"{_FSDP}._fsdp_param_group.FSDPParamGroup.post_backward")
_WATCHED = {"asks": _UNSHARD, "has": _WAIT, "frees": _FREE, "reduces": _POST_BACKWARD}
_PROPAGATE = Name(
    "torch.distributed.tensor._sharding_prop.ShardingPropagator.propagate_op_sharding_non_cached"
)


def local_ranks(count: int) -> Any:
    """Return a mode in which this process is `count` ranks at once, each with its own values.

    `torch.distributed._local_tensor.LocalTensorMode`.
    """
    return _LOCAL_MODE.get()(count)


def rank_values(tensor: Any) -> list[Any]:
    """Return what each rank has of a tensor made under `local_ranks`; a plain tensor alone.

    `torch.distributed._local_tensor.LocalTensor._local_tensors`.
    """
    if not isinstance(tensor, _LOCAL_TENSOR.get()):
        return [tensor]
    values: dict[int, Any] = tensor._local_tensors
    return [values[rank] for rank in sorted(values)]


def parameter_group(module: object) -> Any:
    """Return the group of parameters that `fully_shard` made for a module, or None.

    `FSDPState._fsdp_param_group`.
    """
    return _GROUP_OF.of(_STATE_OF.get()(module))


def group_bytes(group: Any) -> dict[str, int]:
    """Return what a group of `fully_shard` holds now, in bytes, by kind.

    `FSDPParam.all_gather_outputs`, `_sharded_param_data`, and the gradients.
    """
    held = dict.fromkeys(("shard", "gathered", "full gradient", "gradient shard"), 0)
    for param in group.fsdp_params:
        held["shard"] += param._sharded_param_data.nbytes
        for full in param.all_gather_outputs:
            held["gathered"] += full.untyped_storage().nbytes()
        whole = getattr(param, "_unsharded_param", None)
        grad, waits = None if whole is None else whole.grad, param.unsharded_accumulated_grad
        for full in {id(value): value for value in (grad, waits) if value is not None}.values():
            held["full gradient"] += full.nbytes  # in 2.15 both are one tensor
        part = param.sharded_param.grad
        held["gradient shard"] += 0 if part is None else part.to_local().nbytes
    return held


@contextmanager
def watch_groups(after: Callable[[str, Any], None]) -> Iterator[None]:
    """Call `after` with what a group of `fully_shard` has just done, and the group.

    What it does is ``asks`` (the all-gather is started), ``has`` (its parameters are whole),
    ``full`` (so are its gradients), ``frees`` or ``reduces``. `FSDPParamGroup.unshard`,
    `wait_for_unshard`, `_to_sharded`, `post_backward`.
    """

    def seen(what: str, plain: Any) -> Callable[..., Any]:
        def call(group: Any, *values: Any, **options: Any) -> Any:
            if what == "reduces":
                after("full", group)
            result = plain(group, *values, **options)
            after(what, group)
            return result

        return call

    with ExitStack() as undo:
        for what, name in _WATCHED.items():
            undo.enter_context(_instead(name, seen(what, name.get())))
        yield


@contextmanager
def _instead(method: Name, value: object) -> Iterator[None]:
    owner, _, attribute = method.path.rpartition(".")
    module, _, name = owner.rpartition(".")
    kind, plain = getattr(import_module(module), name), method.get()
    setattr(kind, attribute, value)
    try:
        yield
    finally:
        setattr(kind, attribute, plain)


@contextmanager
def count_propagations() -> Iterator[list[str]]:
    """Collect the operators for which DTensor works out placements, rather than look them up.

    `ShardingPropagator.propagate_op_sharding_non_cached`.
    """
    plain, found = _PROPAGATE.get(), list[str]()

    def propagate(self: Any, schema: Any) -> Any:
        found.append(str(schema.op))
        return plain(self, schema)

    with _instead(_PROPAGATE, propagate):
        yield found
