"""Run in each rank: what a group asks of its store, where bytes go, what a missing rank does."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from insidetorch import private
from miniatures.c10d_and_elastic.ring import Ring
from miniatures.c10d_and_elastic.store import Client, Server

_TCP_INFO, _RECEIVED = 11, 128  # of Linux: an option, and where tcpi_bytes_received stands


class Noted(dist.Store):  # type: ignore[misc, name-defined]
    """A store that writes down what it is asked, and hands it on."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.log = list[tuple[float, str, str]]()

    def _note(self, what: str, key: str) -> None:
        self.log.append((time.monotonic(), what, key))

    def set(self, key: str, value: Any) -> Any:
        """Write a value."""
        self._note("set", key)
        return self.inner.set(key, value)

    def get(self, key: str) -> Any:
        """Wait for a key and read it."""
        self._note("get", key)
        return self.inner.get(key)

    def add(self, key: str, number: int) -> Any:
        """Add to a counter."""
        self._note("add", key)
        return self.inner.add(key, number)

    def check(self, keys: list[str]) -> Any:
        """Tell whether the keys are there."""
        return self.inner.check(keys)

    def wait(self, keys: list[str], *timeout: timedelta) -> Any:
        """Wait for keys."""
        for key in keys:
            self._note("wait", key)
        return self.inner.wait(keys, *timeout)

    def has_extended_api(self) -> bool:
        """Say no: so values are not appended to."""
        return False


class Ours(Noted):
    """The miniature's store behind PyTorch's interface."""

    def __init__(self, port: int) -> None:
        super().__init__(None)
        self.client = Client(port)

    def set(self, key: str, value: Any) -> None:
        """Write a value."""
        data = value.encode("latin1") if isinstance(value, str) else bytes(value)
        self.client.set(key, data.decode("latin1"))

    def get(self, key: str) -> bytes:
        """Wait for a key and read it."""
        return self.client.get(key).encode("latin1")

    def wait(self, keys: list[str], *timeout: timedelta) -> None:
        """Wait for keys."""
        for key in keys:
            self.client.get(key)


def meet_at(rank: int, port: int, size: int, late: float) -> list[tuple[float, str, str]]:
    """Leave the default group, and make another at a TCPStore; rank 2 comes `late` seconds later.

    :returns: what this rank asked of the store.
    """
    dist.barrier()
    dist.destroy_process_group()
    if rank == 2:
        time.sleep(late)
    minute = timedelta(seconds=60)
    table = dist.TCPStore("127.0.0.1", port, size, rank == 0, minute, wait_for_workers=False)  # type: ignore[attr-defined]
    store = Noted(table)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    dist.barrier()
    return list(store.log)


def meet_again(rank: int, path: str) -> None:
    """Leave the default group, and make another through a new file."""
    size = dist.get_world_size()
    dist.barrier()
    dist.destroy_process_group()
    store = dist.FileStore(path, size)  # type: ignore[attr-defined]
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60)
    )


def on_our_store(rank: int, port: int) -> list[float]:
    """Let gloo meet at the miniature's store, and sum the ranks."""
    group = dist.ProcessGroupGloo(Ours(port), rank, dist.get_world_size(), timedelta(seconds=60))
    numbers = torch.tensor([float(rank), 1.0])
    group.allreduce([numbers]).wait()  # type: ignore[attr-defined]
    return numbers.tolist()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def _sockets() -> dict[tuple[Any, Any], int]:
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if not str(entry.readlink()).startswith("socket:"):
                continue
            end = socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:
            continue
        with end:
            try:
                here, there = end.getsockname()[:2], end.getpeername()[:2]
                info = end.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
            except (OSError, ValueError):
                continue
            if end.type == socket.SOCK_STREAM and len(info) >= _RECEIVED + 8:
                found[here, there] = int(struct.unpack_from("Q", info, _RECEIVED)[0])
    return found


COLLECTIVES: dict[str, Callable[[torch.Tensor, int, int], Any]] = {
    "all_reduce": lambda x, rank, n: dist.all_reduce(x),
    "broadcast": lambda x, rank, n: dist.broadcast(x, 0),
    "all_gather": lambda x, rank, n: dist.all_gather([torch.empty_like(x) for _ in range(n)], x),
    "reduce": lambda x, rank, n: dist.reduce(x, 0),
    "gather": lambda x, rank, n: dist.gather(
        x, None if rank else [torch.empty_like(x) for _ in range(n)]
    ),
    "scatter": lambda x, rank, n: dist.scatter(
        x, None if rank else [torch.empty_like(x) for _ in range(n)]
    ),
    "reduce_scatter": lambda x, rank, n: dist.reduce_scatter_tensor(x[: len(x) // n].clone(), x),
    "all_to_all": lambda x, rank, n: dist.all_to_all_single(torch.empty_like(x), x),
}
"""Collectives on a tensor, a rank and the world size; the root is rank 0."""


def bytes_sent(rank: int, name: str, numbers: int) -> list[int]:
    """Run a collective on float32 numbers, and return how many bytes went to each rank.

    The kernel counts them, socket by socket.
    """
    size, x = dist.get_world_size(), torch.ones(numbers)
    dist.barrier()
    time.sleep(0.02)
    before = _sockets()
    COLLECTIVES[name](x, rank, size)
    after = _sockets()
    everybody: list[Any] = [None] * size
    received = {ends: count - before[ends] for ends, count in after.items() if ends in before}
    dist.all_gather_object(everybody, received)
    row = [0] * size
    for here, there in after:
        for other, theirs in enumerate(everybody):
            row[other] += theirs.get((there, here), 0)
    return row


def said(work: Callable[[], Any]) -> str:
    """Run something, and return what it raised, or ""."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def group_of(seconds: float = 60, **options: Any) -> Any:
    """Make a group of all ranks whose collectives give up after some seconds.

    To form it they have a minute, on a busy machine too.
    """
    group = dist.new_group(timeout=timedelta(seconds=max(60, seconds)), **options)
    private.set_time_out(group, seconds)
    return group


def recorded(rank: int) -> list[tuple[int, str, tuple[int, ...], str]]:
    """Return the Flight Recorder's records of the group that this rank used last.

    :returns: for each its number, what it was, the shape, and the function that called.
    """
    entries = private.flight_records()["entries"]
    group, found = entries[-1]["process_group"], []
    for entry in entries:
        if entry["process_group"] == group:
            lines = [one for one in entry["frames"] if "torch" not in one["filename"]]
            shape = tuple(entry["input_sizes"][0]) if entry["input_sizes"] else ()
            name = entry["profiling_name"].removeprefix("gloo:")
            number = entry["collective_seq_id"]
            found.append((number, name, shape, lines[0]["name"] if lines else ""))
    return found


def beside(
    rank: int, folder: str, size: int, program: Callable[[int, Any], Any], limit: float = 20
) -> tuple[int, Any]:
    """Run a program in a child of this rank, in a gloo group of the children alone.

    :param program: gets the rank and the group; what it returns comes back, unless it is killed.
    :returns: the signal that ended the child, or 0, and what the program returned, or None.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            store = dist.FileStore(f"{folder}/children", size)  # type: ignore[attr-defined]
            group = dist.ProcessGroupGloo(store, rank, size, timedelta(seconds=limit))
            os.write(write, pickle.dumps(program(rank, group)))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        data = answers.read()
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status), pickle.loads(data) if data else None


def one_dies(rank: int, group: Any) -> tuple[float, str]:
    """Sum twice; before the second sum the last rank is killed."""
    numbers = torch.ones(3)
    group.allreduce([numbers]).wait()
    if rank == group.size() - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers[0].item(), said(lambda: group.allreduce([numbers]).wait())


def one_dies_then_broadcast(rank: int, group: Any) -> str:
    """Sum, then let the last rank be killed, and broadcast a little from rank 0 a moment later.

    :returns: "" if this rank's broadcast returned, or that its connection closed.
    """
    group.allreduce([torch.ones(3)]).wait()
    if rank == group.size() - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1)
    options = dist.BroadcastOptions()
    options.rootRank = options.rootTensor = 0
    text = said(lambda: group.broadcast([torch.ones(2)], options).wait())
    return "closed" if "closed" in text or "reset" in text else text


def gather_flat(whole: torch.Tensor, own: torch.Tensor) -> None:
    """Gather into one tensor, under the name that this release does not warn of."""
    getattr(dist, "all_gather_single", dist.all_gather_into_tensor)(whole, own)


def functional() -> tuple[str, str]:
    """Sum by a functional collective: the types of its result, and of a sum with that."""
    total = private.functional_sum(torch.ones(1))
    return type(total).__name__, type(total + 1).__name__


def by_rpc(rank: int, path: str) -> dict[str, Any] | None:
    """Multiply on another rank, and run a backward pass that crosses the border and back."""
    import torch.distributed.autograd as across
    from torch.distributed import rpc

    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    if rank > 1:
        return None
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{path}", num_worker_threads=2)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)  # type: ignore[no-untyped-call]
    found: dict[str, Any] | None = None
    if rank == 0:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with across.context() as context:
            there = rpc.remote("worker1", torch.mul, args=(x, 3))
            y = rpc.rpc_sync("worker1", torch.add, args=(there.to_here(), 1))
            across.backward(context, [y.sum()])  # type: ignore[attr-defined]
            found = {
                "owner of the RRef": there.owner_name(),
                "result": y.tolist(),
                "grad_fn of the result": y.grad_fn.name(),
                "gradient in the context": across.get_gradients(context)[x].tolist(),  # type: ignore[attr-defined]
                "x.grad": x.grad,
            }
    rpc.shutdown()
    return found


def differences(results: Sequence[Any]) -> bool:
    """Tell whether ranks ended with different results."""
    return any(result != results[0] for result in results)


def ring_states(digits: Sequence[int]) -> list[list[list[int]]]:
    """Run the miniature's ring on threads, and return each rank's parts before and after steps.

    :param digits: what each rank gives, the same number in each of its parts.
    :returns: for each moment, for each rank, its parts.
    """
    size, taken = len(digits), dict[int, list[int]]()

    class Watched(Ring):
        def _exchange(self, ours: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
            received = super()._exchange(ours, like)
            taken[self.rank].append(int(received.item()))
            return received

    def one(rank: int) -> None:
        taken[rank] = []
        store = Client(server.port)
        ring = Watched(store, "ring", rank, size)
        ring.all_reduce(torch.full((size,), digits[rank]))
        ring.close()
        store.close()

    server = Server()
    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.close()
    states = [[[digits[rank]] * size for rank in range(size)]]
    for step in range(2 * (size - 1)):
        now = [list(parts) for parts in states[-1]]
        for rank in range(size):
            part = (rank - step - 1) % size
            now[rank][part] = taken[rank][step] + (now[rank][part] if step < size - 1 else 0)
        states.append(now)
    return states
