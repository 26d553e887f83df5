"""All-reduce over sockets: a rank sends to the next one only, and receives from the one before."""

from __future__ import annotations

import socket
from collections.abc import Callable

import torch

from miniatures.c10d_and_elastic.store import Client


class Ring:
    """One rank's two sockets; the ranks find each other at a store."""

    def __init__(self, store: Client, name: str, rank: int, size: int) -> None:
        self.rank, self.size, self.sent = rank, size, 0
        with socket.create_server(("127.0.0.1", 0)) as door:
            store.set(f"{name}/{rank}", str(door.getsockname()[1]))
            port = store.get(f"{name}/{(rank + 1) % size}")  # waits until it is there
            self.next = socket.create_connection(("127.0.0.1", int(port)))
            self.before, _ = door.accept()

    def close(self) -> None:
        """Close both sockets."""
        self.next.close()
        self.before.close()

    def all_reduce(
        self,
        values: torch.Tensor,
        combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.add,
    ) -> torch.Tensor:
        """Return the combination of all ranks' values; each rank gives equally many."""
        parts = list(values.flatten().tensor_split(self.size))
        for step in range(2 * (self.size - 1)):
            ours, theirs = (self.rank - step) % self.size, (self.rank - step - 1) % self.size
            received = self._exchange(parts[ours], parts[theirs])
            if step < self.size - 1:  # first round: add what comes in
                received = combine(parts[theirs], received)
            parts[theirs] = received  # second round: keep what comes in
        return torch.cat(parts).view(values.shape)

    def _exchange(self, ours: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        data = bytes(ours.contiguous().view(torch.uint8).numpy()) if ours.numel() else b""
        self.sent += len(data)
        if self.rank % 2 == 0:  # if all sent first, full buffers would hold all up for ever
            self.next.sendall(data)
        received = bytearray()
        missing = like.numel() * like.element_size()
        while missing:
            received += (piece := self.before.recv(missing))
            missing -= len(piece)
            if not piece:
                raise ConnectionError("the rank before has gone")
        if self.rank % 2 == 1:
            self.next.sendall(data)
        return torch.frombuffer(received, dtype=like.dtype) if received else like
