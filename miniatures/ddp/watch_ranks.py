"""A few processes that form a gloo group and run functions that a notebook defines."""

from __future__ import annotations

import io
import marshal
import os
import pickle
import select
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from insidetorch.processes import environment

_WORK = "from miniatures.ddp.watch_ranks import _work; _work()"


class RankError(RuntimeError):
    """What went wrong on which rank; `codes` holds the exit status of each process, or None."""

    def __init__(self, text: str, codes: list[int | None]) -> None:
        super().__init__(text)
        self.codes = codes


class Ranks:
    """`count` processes in one gloo group; call it with a function of the rank.

    The processes start with the first call and stay for the next. Each call sends the function,
    by value if a notebook defined it, and returns the list of what it returned on each rank. After
    a failure or a call that takes longer than `limit` seconds the processes are ended, and the
    next call starts new ones. They also end when this object is closed or collected, and when the
    process that made them is gone. They meet over a file, so no port is taken.
    """

    def __init__(self, count: int = 2, limit: float = 600) -> None:
        self.count, self.limit = count, limit
        self.processes: list[subprocess.Popen[bytes]] = []
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __call__(self, function: Callable[..., Any], *values: Any, **options: Any) -> list[Any]:
        """Run `function(rank, *values, **options)` on every rank; return the results by rank."""
        if not self.processes:
            self._start()
        try:
            call = _pickled((function, values, options))
            for process in self.processes:
                with suppress(BrokenPipeError):  # `_answers` says which rank is gone
                    _send(_pipe(process.stdin), call)
            answers = self._answers()
        except BaseException:
            self.close()
            raise
        failed = [f"rank {rank}: {text}" for rank, (good, text) in enumerate(answers) if not good]
        if failed:
            self.close()
            raise RankError("; ".join(failed), [0] * self.count)
        return [value for _, value in answers]

    def _start(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="ranks-")
        for rank in range(self.count):
            store = str(Path(self.folder.name) / "store")
            command = [sys.executable, "-c", _WORK, str(rank), str(self.count), store]
            with Path(self.folder.name, f"stderr{rank}").open("wb") as said:
                process = subprocess.Popen(
                    [*command, str(self.limit)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    env=environment(*sys.path, **loopback()),
                )
            self.processes.append(process)

    def _answers(self) -> list[tuple[bool, Any]]:
        end, found = monotonic() + self.limit, dict[int, tuple[bool, Any]]()
        while len(found) < self.count:
            waiting = [rank for rank in range(self.count) if rank not in found]
            pipes = [_pipe(self.processes[rank].stdout) for rank in waiting]
            ready = select.select(pipes, [], [], max(0, end - monotonic()))[0]
            if not ready:
                raise RankError(self._late(waiting, found), self._codes())
            for pipe in ready:
                rank = waiting[pipes.index(pipe)]
                answer = _receive(pipe)
                if answer is None:
                    status = self.processes[rank].wait(60)
                    raise RankError(f"rank {rank} is gone, exit status {status}", self._codes())
                found[rank] = pickle.loads(answer)
                if not found[rank][0]:  # the others may wait for this rank for ever
                    end = min(end, monotonic() + 5)
        return [found[rank] for rank in range(self.count)]

    def _late(self, waiting: list[int], found: dict[int, tuple[bool, Any]]) -> str:
        failed = [f"rank {rank}: {text}" for rank, (good, text) in found.items() if not good]
        late = f"no answer from rank {', '.join(map(str, waiting))}"
        return "; ".join([*failed, late if failed else f"{late} in {self.limit:g} s"])

    def _codes(self) -> list[int | None]:
        return [process.poll() for process in self.processes]

    def said(self, rank: int = 0) -> str:
        """Return what a rank has written to standard error so far."""
        return Path(self.folder.name, f"stderr{rank}").read_text() if self.folder else ""

    def close(self) -> None:
        """End the processes, wait for them, and remove their folder."""
        processes, self.processes = self.processes, []
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(BrokenPipeError):  # of a call that was not sent
                    _pipe(pipe).close()
        if self.folder:
            self.folder.cleanup()
            self.folder = None


def loopback() -> dict[str, str]:
    """Return the setting that has gloo talk within this machine, whatever its host name is."""
    names = {"lo", "lo0"} & {name for _, name in socket.if_nameindex()}
    return dict.fromkeys(["GLOO_SOCKET_IFNAME"] if names else [], min(names, default=""))


@contextmanager
def local_interface() -> Iterator[None]:
    """Apply `loopback` to this process inside the ``with`` block."""
    before = os.environ.get("GLOO_SOCKET_IFNAME")
    os.environ.update(loopback())
    try:
        yield
    finally:
        os.environ.pop("GLOO_SOCKET_IFNAME", None)
        if before is not None:
            os.environ["GLOO_SOCKET_IFNAME"] = before


def _pipe(pipe: Any) -> BinaryIO:
    assert pipe is not None
    return pipe  # type: ignore[no-any-return]


def _send(pipe: BinaryIO, data: bytes) -> None:
    pipe.write(len(data).to_bytes(8, "little") + data)
    pipe.flush()


def _receive(pipe: BinaryIO) -> bytes | None:
    size = pipe.read(8)
    return pipe.read(int.from_bytes(size, "little")) if len(size) == 8 else None


class _ByValue(pickle.Pickler):
    """Pickles functions that no module can be imported for, with the globals they use.

    The result of a collective that nobody has read yet is awaited first: pickle would take the
    bytes as they are (source: `torch/distributed/_functional_collectives.py`).
    """

    def reducer_override(self, value: Any) -> Any:
        if hasattr(value, "trigger_wait"):
            return value.trigger_wait().__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        if not isinstance(value, types.FunctionType) or value.__module__ != "__main__":
            return NotImplemented
        code, scope = value.__code__, value.__globals__
        names = [name for name in _names(code) if name in scope and scope[name] is not value]
        modules = {name: scope[name].__name__ for name in names if _is_module(scope[name])}
        used = {name: scope[name] for name in names if name not in modules}
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        plain = (value.__name__, value.__defaults__, value.__kwdefaults__)
        return _rebuild, (marshal.dumps(code), *plain, modules, used, cells)


def _is_module(value: object) -> bool:
    return isinstance(value, types.ModuleType)


def _names(code: types.CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _rebuild(
    code: bytes, name: str, defaults: Any, kwdefaults: Any, modules: Any, used: Any, cells: Any
) -> types.FunctionType:
    from importlib import import_module

    scope = {"__builtins__": __builtins__, "__name__": "__main__", **used}
    scope |= {name: import_module(path) for name, path in modules.items()}
    closure = tuple(types.CellType(value) for value in cells)
    made = types.FunctionType(marshal.loads(code), scope, name, defaults, closure)
    made.__kwdefaults__ = kwdefaults
    scope[name] = made
    return made


def _pickled(value: Any) -> bytes:
    out = io.BytesIO()
    _ByValue(out).dump(value)
    return out.getvalue()


def _work() -> None:
    """Serve calls in a process of its own: a loop that ends when the other end of stdin is gone."""
    rank, count, store, limit = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls = _watched_input()
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store, count),  # type: ignore[attr-defined]
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=limit),
    )
    while (data := calls()) is not None:
        try:
            torch.manual_seed(rank)
            function, values, options = pickle.loads(data)
            answer = _pickled((True, function(rank, *values, **options)))
        except Exception as error:
            answer = _pickled((False, f"{type(error).__name__}: {error}"))
        _send(answers, answer)


def _watched_input() -> Callable[[], bytes | None]:
    """Read calls on a thread, which ends the process at once when their sender is gone."""
    from queue import Queue

    waiting: Queue[bytes] = Queue()
    source = os.fdopen(os.dup(0), "rb")

    def read() -> None:
        while (data := _receive(source)) is not None:
            waiting.put(data)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return waiting.get
