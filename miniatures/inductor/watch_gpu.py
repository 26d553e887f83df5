"""What Inductor decides for a GPU that is not there, beside what it decides for the CPU."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

import torch

from miniatures.inductor.watch import Stages, stages

COUNT = "@triton.jit"


@dataclass(frozen=True)
class Written:
    """What was written for a pretended GPU.

    :param kernels: how many Triton kernels.
    :param reasons: what the scheduler gave as reasons against fusions, each once, in order.
    :param code: the module.
    """

    kernels: int
    reasons: tuple[str, ...]
    code: str


def for_gpu(programs: dict[str, tuple[Any, ...]]) -> dict[str, Written]:
    """Have Inductor write code for an H100 that is not there, all programs in one process.

    :param programs: for each name, the text of a lambda and the shapes of its arguments.
    :raises subprocess.CalledProcessError: Inductor refuses one of them.
    """
    from insidetorch.processes import environment, run

    jobs = [
        {"name": "f", "source": f"f = {text}", "shapes": shapes, "dtype": "float32"}
        for text, *shapes in programs.values()
    ]
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        done = run(
            [sys.executable, "-m", "miniatures.inductor.watch_gpu"],
            env=environment(*sys.path, TORCHINDUCTOR_CACHE_DIR=scratch),
            input=json.dumps(jobs),
        )
    done.check_returncode()
    answers = json.loads(done.stdout.splitlines()[-1])
    return {
        name: Written(code.count(COUNT), tuple(reasons), code)
        for name, (code, reasons) in zip(programs, answers, strict=True)
    }


@dataclass(frozen=True)
class Beside:
    """One program for both machines."""

    cpu: Stages
    gpu: Written

    def row(self, name: str) -> list[object]:
        """Return a row of a table: operators, loops and reasons, kernels and reasons."""
        loops = [group for group in self.cpu.groups if not self._is_memory(group)]
        here = [what for *_, what in self.cpu.decisions if what != "fused"]
        if any(nest[1] == "a library" for nest in self.cpu.nests):
            here.insert(0, "a library call")
        there = list(self.gpu.reasons)
        calls = self.gpu.code.count("extern_kernels.")
        if calls:
            there.insert(0, "a library call")
        count = self.gpu.kernels + calls
        return [name, len(self.cpu.graph), len(loops), _why(here, len(loops)),
                count, _why(there, count)]  # fmt: skip

    def _is_memory(self, group: list[int]) -> bool:
        return all(self.cpu.nests[number][1] == "only memory" for number in group)


def _why(reasons: list[str], count: int) -> str:
    short = {"intermediate nodes between node1 & node2": "another nest between"}
    if count < 2:
        return ""
    return ", ".join(dict.fromkeys(short.get(one, one) for one in reasons)) or "no pair to try"


def beside(programs: dict[str, tuple[Any, ...]]) -> dict[str, Beside]:
    """Take programs through Inductor for this CPU and for an H100 that is not there.

    :param programs: as `for_gpu` takes them.
    """
    there = for_gpu(programs)
    found = {}
    for name, (text, *shapes) in programs.items():
        function = eval(text, {"torch": torch})  # the text that the other process is given
        found[name] = Beside(stages(function, *map(torch.empty, shapes)), there[name])
    return found


def _write(job: dict[str, Any]) -> tuple[str, list[str]]:
    """Return what Inductor writes for a job, and the reasons against fusions; patches torch."""
    from unittest import mock

    from insidetorch.gpu.without_gpu_process import pretend, write
    from insidetorch.private.inductor import why_not_fused

    pretend()
    said: dict[str, None] = {}

    def reason(self: Any, text: str, *args: Any) -> None:
        said[text % args if args else text] = None

    with mock.patch.object(why_not_fused(), "__call__", reason):
        code = write(job)
    return code, list(said)


if __name__ == "__main__":
    sys.stdout.write(json.dumps([_write(job) for job in json.load(sys.stdin)]))
