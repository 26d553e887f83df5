"""The machine that CUDA cells run on: the one place where the recorder looks at a device."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from importlib import metadata

from insidetorch import facts


@dataclass(frozen=True)
class Machine:
    """Where CUDA cells ran.

    :param gpus: name of each GPU.
    :param capability: compute capability of the first, e.g. ``9.0``.
    :param memory: bytes of memory of the smallest.
    :param driver: version of NVIDIA's driver; empty if it could not be asked.
    :param cuda: version of CUDA that torch was built with.
    :param torch: release of torch, with its local part.
    :param torch_commit: commit of pytorch/pytorch it was built from.
    :param python: version of Python.
    :param os: name of the operating system.
    :param cpu: name of the processor.
    :param triton: version of Triton; empty if there is none.
    :param cudnn: version of cuDNN as torch gives it; empty if there is none.
    :param clocks: the most that the first GPU may run at; empty if unknown.
    :param power: its power limit; empty if unknown.
    """

    gpus: tuple[str, ...]
    capability: str
    memory: int
    driver: str
    cuda: str
    torch: str
    torch_commit: str
    python: str
    os: str
    cpu: str
    triton: str = ""
    cudnn: str = ""
    clocks: str = ""
    power: str = ""

    @property
    def gpu(self) -> str:
        """The GPUs in words, e.g. ``2 × NVIDIA H200``."""
        names = list(dict.fromkeys(self.gpus))
        return ", ".join(
            f"{count} × {name}" if (count := self.gpus.count(name)) > 1 else name for name in names
        )


def machine() -> Machine | None:
    """Return this machine, or None if torch finds no CUDA device on it."""
    import torch

    if not torch.cuda.is_available():
        return None
    devices = range(torch.cuda.device_count())
    found = facts.torch_facts()
    driver, clock, memory_clock, power = _asked(
        "driver_version,clocks.max.sm,clocks.max.mem,power.limit"
    )
    return Machine(
        gpus=tuple(torch.cuda.get_device_name(index) for index in devices),
        capability=".".join(map(str, torch.cuda.get_device_capability(0))),
        memory=min(torch.cuda.get_device_properties(index).total_memory for index in devices),
        driver=driver,
        cuda=str(torch.version.cuda or ""),
        torch=str(torch.__version__),
        torch_commit=found.commit if found else "",
        python=platform.python_version(),
        os=_system(),
        cpu=facts.cpu_name(),
        triton=_triton(),
        cudnn=str(torch.backends.cudnn.version() or ""),  # type: ignore[no-untyped-call]
        clocks=f"{clock}, memory {memory_clock}" if clock and memory_clock else clock,
        power=power,
    )


def answers() -> bool:
    """Tell whether the device still works; after some errors a process cannot use it any more."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _asked(facts: str) -> list[str]:
    """Ask the driver for facts of the first GPU; what it does not tell is empty."""
    command = ["nvidia-smi", f"--query-gpu={facts}", "--format=csv,noheader"]
    unknown = [""] * len(facts.split(","))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return unknown
    told = [part.strip() for part in (done.stdout.splitlines() or [""])[0].split(",")]
    if done.returncode or len(told) != len(unknown):
        return unknown
    return ["" if part.startswith("[") else part for part in told]


def _triton() -> str:
    for name in ("triton", "pytorch-triton"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
