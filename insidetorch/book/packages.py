"""The installed packages that can change a chapter's outputs, with their versions.

Those that the toolkit declares, those that run the cells, those that reached code imports, and
what all these need in turn. What only renders the book, such as Sphinx, is not among them.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import insidetorch

ALWAYS = ("ipykernel", "nbclient", "triton")
"""What runs the cells, and what torch uses where it is installed."""
OWN_FACTS = frozenset({"torch", "insidetorch"})
"""Torch counts with its release and commit; the toolkit as code."""


@dataclass(frozen=True)
class Installed:
    """Where to look up what is installed.

    :param version: version of a distribution, or None if it is not installed.
    :param requires: requirements of an installed distribution.
    :param owners: distributions that bring a top-level module.
    :param declared: requirements of the toolkit.
    """

    version: Callable[[str], str | None]
    requires: Callable[[str], Sequence[str]]
    owners: Callable[[str], Sequence[str]]
    declared: Callable[[], Sequence[str]]


def versions(imported: Iterable[str], installed: Installed | None = None) -> dict[str, str]:
    """Return name → version of the distributions that count.

    :param imported: top-level modules that reached code imports; those nobody installed are left
        out.
    """
    here = installed or HERE
    others = [name for name in imported if name not in sys.stdlib_module_names]
    owners = (owner for name in others for owner in here.owners(name))
    waiting = [*ALWAYS, *_names(here.declared()), *map(_normal, owners)]
    found: dict[str, str] = {}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        version = here.version(name)
        if version is not None:
            found[name] = version
            waiting += _names(here.requires(name))
    return {name: found[name] for name in sorted(found) if name not in OWN_FACTS}


def installed() -> list[str]:
    """Return what runs here: the version of Python, and each installed package with its version."""
    folders = Path(sysconfig.get_path("purelib")).glob("*.dist-info")
    return [sys.version, *sorted(path.name for path in folders)]


def _names(requirements: Iterable[str]) -> list[str]:
    return [name for text in requirements if (name := _needed(text))]


@cache
def _needed(requirement: str) -> str:
    """Return the name of a required distribution; empty if it is not needed here."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return ""
    holds = parsed.marker is None or parsed.marker.evaluate({"extra": ""})
    return _normal(parsed.name) if holds else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def _requires(name: str) -> Sequence[str]:
    return tuple(metadata.requires(name) or ())


@cache
def _owners(module: str) -> Sequence[str]:
    # To ask which distribution has a module opens the list of files of each of them.
    return (module,) if _version(module) is not None else tuple(_every_owner().get(module, ()))


@cache
def _every_owner() -> Mapping[str, Sequence[str]]:
    return metadata.packages_distributions()


@cache
def _declared() -> Sequence[str]:
    checkout = Path(insidetorch.__file__).parent.parent / "pyproject.toml"
    if checkout.is_file():
        project = tomllib.loads(checkout.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == "insidetorch":
            return tuple(project.get("dependencies", ()))
    return _requires("insidetorch") if _version("insidetorch") is not None else ()


HERE = Installed(_version, _requires, _owners, _declared)
