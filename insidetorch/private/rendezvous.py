"""Rendezvous: torchelastic's decisions, taken step by step; c10d's own records."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import torch

from insidetorch.private.name import Name

_DYNAMIC = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"
_ACTION = Name(f"{_DYNAMIC}._Action")
_CONTEXT = Name(f"{_DYNAMIC}._RendezvousContext")
_EXECUTOR = Name(f"{_DYNAMIC}._DistributedRendezvousOpExecutor")
_EXIT = Name(f"{_DYNAMIC}._RendezvousExitOp")
_HOLDER = Name(f"{_DYNAMIC}._BackendRendezvousStateHolder")
_JOIN = Name(f"{_DYNAMIC}._RendezvousJoinOp")
_NODE = Name(f"{_DYNAMIC}._NodeDesc")
_ASSIGN = Name("torch.distributed.elastic.agent.server.SimpleElasticAgent._assign_worker_ranks")
_DUMP = Name("torch._C._distributed_c10d._dump_fr_trace")
_SET_TIME = Name("torch.distributed.distributed_c10d._set_pg_timeout")
_COALESCING = Name("torch.distributed.distributed_c10d._coalescing_manager")
_KNOWN = Name("torch.distributed._functional_collectives.traceable_collective_remaps")
_SUM = Name("torch.distributed._functional_collectives.all_reduce")


def flight_records(stacks: bool = True) -> dict[str, Any]:
    """Return what the Flight Recorder of this process holds.

    `torch._C._distributed_c10d._dump_fr_trace`.

    :param stacks: with the lines that called; the first time that takes seconds.
    """
    records: dict[str, Any] = pickle.loads(_DUMP.get()(includeStackTraces=stacks))
    return records


def set_time_out(group: object, seconds: float) -> None:
    """Let the collectives of a group that stands already give up after some seconds.

    `torch.distributed.distributed_c10d._set_pg_timeout`.
    """
    _SET_TIME.get()(timedelta(seconds=seconds), group)


def coalesced() -> AbstractContextManager[Any]:
    """Return a context whose collectives are started as one.

    `torch.distributed.distributed_c10d._coalescing_manager`.
    """
    manager: AbstractContextManager[Any] = _COALESCING.get()()
    return manager


def compiled_collectives() -> set[str]:
    """Return the names of the collectives that Dynamo rewrites.

    `torch.distributed._functional_collectives.traceable_collective_remaps`.
    """
    return {call.__name__ for call in _KNOWN.get()}


def functional_sum(tensor: torch.Tensor) -> torch.Tensor:
    """Sum over the default group, into a new tensor that waits at its first use.

    `torch.distributed._functional_collectives.all_reduce`.
    """
    import torch.distributed as dist

    total: torch.Tensor = _SUM.get()(tensor, "sum", dist.group.WORLD)
    return total


def worker_ranks(workers: Mapping[int, int]) -> dict[int, list[tuple[int, int]]]:
    """Return rank and world size of the workers of each agent, as torchelastic gives them.

    `torch.distributed.elastic.agent.server.SimpleElasticAgent._assign_worker_ranks`.

    :param workers: how many workers the agent of each node number has, from 0.
    """
    import torch.distributed as dist

    store, found = dist.HashStore(), dict[int, list[tuple[int, int]]]()  # type: ignore[attr-defined]

    def agent(number: int) -> None:
        spec = SimpleNamespace(role="trainer", local_world_size=workers[number])
        made = _ASSIGN.get()(None, store, number, len(workers), spec)
        found[number] = [(worker.global_rank, worker.world_size) for worker in made]

    threads = [threading.Thread(target=agent, args=(number,)) for number in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


class Rendezvous:
    """The dynamic rendezvous of torchrun over one store, each node moved by hand, one step a call.

    `torch.distributed.elastic.rendezvous.dynamic_rendezvous`: its join and exit operations, the
    executor that carries them out, and the holder that writes the state to the store.

    :param call_over: whether the last call, which begins when `least` nodes are in, is over at
        the next step; else it never is.
    """

    def __init__(self, least: int, most: int, call_over: bool) -> None:
        import torch.distributed as dist
        from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
            RendezvousSettings,
            RendezvousTimeout,
        )

        long, short = timedelta(hours=1), timedelta(microseconds=1)
        self._store = dist.HashStore()  # type: ignore[attr-defined]
        self._settings = RendezvousSettings(
            run_id="job",
            min_nodes=least,
            max_nodes=most,
            timeout=RendezvousTimeout(join=long, last_call=short if call_over else long),
            keep_alive_interval=long,
            keep_alive_max_attempt=3,
        )
        self._nodes = dict[str, tuple[Any, Any, Any]]()

    def _node(self, name: str) -> tuple[Any, Any, Any]:
        from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import (
            C10dRendezvousBackend,
        )

        if name not in self._nodes:
            node = _NODE.get()(name, 1, 0)
            backend = C10dRendezvousBackend(self._store, "job")
            holder = _HOLDER.get()(backend, self._settings, cache_duration=0)
            self._nodes[name] = node, holder, _EXECUTOR.get()(node, holder, self._settings)
        return self._nodes[name]

    def step(self, name: str, leave: bool = False) -> str:
        """Let a node take one step towards being inside, or out, and return what it did."""
        node, holder, executor = self._node(name)
        holder.sync()
        context = _CONTEXT.get()(node, holder.state, self._settings)
        operation = _EXIT.get()() if leave else _JOIN.get()()
        action = operation(context, time.monotonic() + 3600)
        actions = _ACTION.get()
        if action not in (actions.FINISH, actions.SYNC):
            executor._state = holder.state
            getattr(executor, f"_{action.name.lower()}")()
            holder.mark_dirty()
            holder.sync()
        return str(action.name)

    def silence(self, name: str) -> None:
        """Let the last sign of life of a node be long ago."""
        node, holder, _ = self._node(name)
        holder.sync()
        if node in holder.state.last_heartbeats:
            holder.state.last_heartbeats[node] = datetime.now(UTC) - timedelta(days=1)
            holder.mark_dirty()
            holder.sync()

    def seen(self, name: str) -> dict[str, Any]:
        """Return the state as a node sees it, nodes by name."""
        _, holder, _ = self._node(name)
        holder.sync()
        state = holder.state
        return {
            "round": state.round,
            "complete": state.complete,
            "inside": sorted(node.addr for node in state.participants),
            "waiting": sorted(node.addr for node in state.wait_list),
            "spare": sorted(node.addr for node in state.redundancy_list),
            "numbers": {node.addr: rank for node, rank in state.participants.items()},
        }
