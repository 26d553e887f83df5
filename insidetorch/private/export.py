"""Export: packages of AOTInductor, promises about sizes, loops inside a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from insidetorch.private.aot import _CHECK
from insidetorch.private.name import Name

_COMPILE = Name("torch._inductor.aoti_compile_and_package")
_LOAD = Name("torch._inductor.aoti_load_package")
_WHILE = Name("torch._higher_order_ops.while_loop.while_loop")
_SCAN = Name("torch._higher_order_ops.scan.scan")
_ARCHIVE = Name("torch.export.pt2_archive._package.package_pt2")
_ASSERT = Name("torch._assert_async")
_REPORT = Name("torch.export._draft_export.DraftExportReport")
_PROFILES = Name("torch._library.fake_profile.unsafe_generate_fake_kernels")
_EFFECT = Name("torch._library.effects.EffectType")


def compile_package(program: Any, path: str, **settings: Any) -> str:
    """Compile an exported program ahead of time into a package at `path`, and return the path.

    `torch._inductor.aoti_compile_and_package`.

    :param settings: of Inductor, with ``__`` for a dot.
    """
    configs = {name.replace("__", "."): value for name, value in settings.items()}
    made: str = _COMPILE.get()(program, package_path=path, inductor_configs=configs)
    return made


def load_package(path: str) -> Any:
    """Return the compiled model of a package, to be called like a function.

    `torch._inductor.aoti_load_package`.
    """
    return _LOAD.get()(path)


def promise(condition: Any) -> None:
    """State a condition that the program may rely on and will check when it runs.

    `torch._check`.
    """
    _CHECK.get()(condition)


def loop_while(
    condition: Callable[..., Any], body: Callable[..., Any], state: tuple[Any, ...]
) -> Any:
    """Run `body` while `condition` holds, as one node of a graph.

    `torch._higher_order_ops.while_loop.while_loop`.
    """
    return _WHILE.get()(condition, body, state)


def scan_rows(combine: Callable[..., Any], start: Any, rows: Any) -> Any:
    """Carry a value over the rows of a tensor, as one node; return the last one and all outputs.

    `torch._higher_order_ops.scan.scan`.
    """
    return _SCAN.get()(combine, start, rows)


def archive(file: Any, programs: dict[str, Any]) -> None:
    """Write exported programs, by name, into one archive.

    `torch.export.pt2_archive._package.package_pt2`.
    """
    _ARCHIVE.get()(file, exported_programs=programs)


@dataclass(frozen=True)
class DraftReport:
    """What `draft_export` found: the kinds of its problems, in order, and operators' profiles."""

    problems: list[str]
    profiles: dict[str, Any]


def draft_report(program: Any) -> DraftReport:
    """Return the report that a program of `draft_export` carries.

    `torch.export._draft_export.DraftExportReport`, as the program's `_report`.
    """
    report = program._report
    assert isinstance(report, _REPORT.get())
    return DraftReport(
        [failure.failure_type.name for failure in report.failures], report.op_profiles
    )


def with_profiles(report: DraftReport, work: Callable[[], Any]) -> Any:
    """Run something while operators without a fake implementation have one from a draft's run.

    `torch._library.fake_profile.unsafe_generate_fake_kernels`.
    """
    with _PROFILES.get()(report.profiles):
        return work()


def mark_effect(operator: Any) -> bool:
    """Mark a custom operator as having an effect, or return False where a release cannot.

    `torch._library.effects.EffectType`.
    """
    if not _EFFECT.here() or not hasattr(operator, "register_effect"):
        return False
    operator.register_effect(_EFFECT.get().ORDERED)
    return True


def assert_tensor(condition: Any, message: str) -> None:
    """Assert a condition on values, as an operator that is recorded and raises when it runs.

    `torch._assert_async`.
    """
    _ASSERT.get()(condition, message)
