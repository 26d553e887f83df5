"""A store: one process keeps a table, all others ask it over sockets."""

from __future__ import annotations

import json
import socket
import socketserver
import threading


class Server(socketserver.ThreadingTCPServer):
    """The table, and a thread for each client. A request and its answer are a line of JSON."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.table: dict[str, str] = {}
        self.changed = threading.Condition()
        self.port = int(self.server_address[1])
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()


class _Answers(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        for line in self.rfile:
            what, key, *values = json.loads(line)
            with self.server.changed:
                answer = self._do(self.server.table, what, key, values)
                self.server.changed.notify_all()
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    def _do(self, table: dict[str, str], what: str, key: str, values: list[str]) -> str:
        if what == "get":  # the one request that waits
            self.server.changed.wait_for(lambda: key in table)
        elif what == "set":
            table[key] = values[0]
        elif what == "add":
            table[key] = str(int(table.get(key, "0")) + int(values[0]))
        elif table.get(key, "") == values[0]:  # compare_set: only if it is what the caller saw
            table[key] = values[1]
        return table.get(key, "")


class Client:
    """A connection to a `Server`."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.lines = self.socket.makefile("rb")

    def _ask(self, *words: str) -> str:
        self.socket.sendall(json.dumps(words).encode() + b"\n")
        return str(json.loads(self.lines.readline()))

    def get(self, key: str) -> str:
        """Wait until the key is there, and return its value."""
        return self._ask("get", key)

    def set(self, key: str, value: str) -> None:
        """Write a value."""
        self._ask("set", key, value)

    def add(self, key: str, number: int) -> int:
        """Add to a number that begins at 0, and return the sum."""
        return int(self._ask("add", key, str(number)))

    def compare_set(self, key: str, seen: str, new: str) -> str:
        """Write if the value is still the one seen; return the value that stands there then."""
        return self._ask("compare_set", key, seen, new)

    def close(self) -> None:
        """Hang up."""
        self.lines.close()
        self.socket.close()
