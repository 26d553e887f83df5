"""What callers of a definition notice when it changes: parameters, members, schemas."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import griffe

from insidetorch.drift.definitions import Found, names, own_name
from insidetorch.drift.meaning import plain_cpp, plain_python
from insidetorch.drift.trees import Tree
from insidetorch.locate.definition import Definition
from insidetorch.locate.normalise import normalise

_SILENT = re.compile(r"(?:^|[._])(?:override|final|deprecated|overload|no_type_check)\b")
_Kind = griffe.BreakageKind
_ASPECTS = {_Kind.PARAMETER_CHANGED_DEFAULT: "default", _Kind.PARAMETER_CHANGED_KIND: "kind"}
_WHY = {
    _Kind.PARAMETER_MOVED: "parameter moved",
    _Kind.PARAMETER_REMOVED: "parameter removed",
    _Kind.PARAMETER_CHANGED_KIND: "parameter passed otherwise",
    _Kind.PARAMETER_CHANGED_DEFAULT: "default changed",
    _Kind.PARAMETER_CHANGED_REQUIRED: "parameter required",
    _Kind.PARAMETER_ADDED_REQUIRED: "parameter required",
    _Kind.OBJECT_REMOVED: "member removed",
    _Kind.OBJECT_CHANGED_KIND: "another kind of object",
    _Kind.ATTRIBUTE_CHANGED_VALUE: "value changed",
    _Kind.CLASS_REMOVED_BASE: "base class changed",
}
_ORDER = "order of values changed"


@dataclass(frozen=True)
class Breakage:
    """One thing that callers notice.

    :param owner: what it is about: the function, the class, the member, in full.
    :param why: what kind of change it is, in a word or two.
    :param text: what changed, from what to what.
    :param name: the parameter, member or value that it is about; "" for the owner itself.
    :param at: the place of a parameter among those of the call, from 0; -1 for anything else, and
        for what is passed by name alone.
    """

    owner: str
    why: str
    text: str
    name: str = ""
    at: int = -1

    def __str__(self) -> str:
        return f"{self.owner}: {self.why}{': ' if self.text else ''}{self.text}"


def breakages(old_tree: Tree, old: Found, new_tree: Tree, new: Found) -> list[Breakage]:
    """Return what breaks for those who call or derive from a definition.

    Python is compared by griffe, which names the breakage; C++ and YAML by their signatures.
    """
    was, now = old.definition, new.definition
    if was.language == "yaml":
        return _schemas(old, new)
    if was.language == "cpp":
        return _cpp(old_tree, old, new_tree, new)
    same_name = own_name(was.symbol, "python") == own_name(now.symbol, "python") != ""
    if same_name and was.siblings == now.siblings == 1:
        found = _python(old, new)
        if found is not None:
            return found
    return _texts(was.symbol, was.signature, now.signature)


def _python(old: Found, new: Found) -> list[Breakage] | None:
    """Return griffe's breakages and those it passes over, or None if it knows no such object."""
    mine, theirs = _module(old), _module(new)
    if mine is None or theirs is None:
        return None
    path = old.definition.symbol.rpartition(".")[0]
    said = [_said(breakage) for breakage in griffe.find_breaking_changes(mine, theirs)]
    said += _passed_over(mine, theirs)
    prefix = f"{path}." if path else ""
    return [replace(one, owner=f"{prefix}{one.owner}") for one in dict.fromkeys(said)]


def _passed_over(old: griffe.Object, new: griffe.Object) -> Iterator[Breakage]:
    """Yield what griffe does not look at: bases, decorators, order in enums, what ``**`` takes."""
    for name, was in old.members.items():
        now = new.members.get(name)
        if isinstance(was, griffe.Class) and isinstance(now, griffe.Class):
            bases = [[str(base) for base in one.bases] for one in (was, now)]
            plain = [[base.rpartition(".")[2] for base in each] for each in bases]
            if plain[0] != plain[1] and len(bases[0]) <= len(bases[1]):
                yield Breakage(_path(was), "base class changed", _change(*bases))
            if any(base.endswith(("Enum", "Flag")) for base in plain[0]):
                yield from _reordered(_path(was), list(was.members), list(now.members))
            yield from _passed_over(was, now)
        elif isinstance(was, griffe.Function) and isinstance(now, griffe.Function):
            given = [parameter.name for parameter in now.parameters]
            kinds = {parameter.kind for parameter in now.parameters}
            for parameter in was.parameters:
                swallowed = parameter.name not in given and not parameter.name.startswith("*")
                if swallowed and griffe.ParameterKind.var_keyword in kinds:
                    yield Breakage(_path(was), "parameter went into **", parameter.name,
                                   parameter.name, _at(was, parameter.name))  # fmt: skip
        else:
            continue
        marks = [[str(one.value) for one in each.decorators] for each in (was, now)]
        marks = [[one for one in each if not _SILENT.search(one)] for each in marks]
        if marks[0] != marks[1]:
            yield Breakage(_path(was), "decorator changed", _change(*marks))


def _reordered(path: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Breakage]:
    both = [[name for name in one if name in old and name in new] for one in (old, new)]
    if both[0] != both[1]:
        yield Breakage(path, _ORDER, _change(*both))


def _change(old: Sequence[str], new: Sequence[str]) -> str:
    return f"{', '.join(old) or 'none'} → {', '.join(new) or 'none'}"


def _path(found: griffe.Object) -> str:
    return found.path.removeprefix("m.")


def _at(function: griffe.Function, name: str) -> int:
    """Return the place of a parameter in a call, or -1 where it is passed by name alone."""
    kinds = (griffe.ParameterKind.positional_only, griffe.ParameterKind.positional_or_keyword)
    names = [one.name for one in function.parameters if one.kind in kinds]
    own = [one for one in names if one not in ("self", "cls")]
    return own.index(name) if name in own else -1


def _module(found: Found) -> griffe.Module | None:
    """Return a module that holds one definition alone, as public under its old name."""
    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    try:
        module = griffe.visit("m", Path("m.py"), plain_python(found.definition.text))
    except SyntaxError:
        return None
    for member in module.members.values():
        member.public = True
    return module if module.members else None


def _said(breakage: griffe.Breakage) -> Breakage:
    path = str(breakage.as_dict(full=True)["object_path"]).removeprefix("m.")
    why = _WHY.get(breakage.kind, breakage.kind.value.lower())
    old, new = breakage.old_value, breakage.new_value
    given = [one for one in (old, new) if isinstance(one, griffe.Parameter)]
    if given:
        name, at = given[0].name, -1
        if isinstance(breakage.obj, griffe.Function) and isinstance(old, griffe.Parameter):
            at = _at(breakage.obj, name)
        text = name
        if len(given) == 2:
            aspect = _ASPECTS.get(breakage.kind, "name")
            values = (getattr(one, aspect) for one in given)
            was, now = (getattr(value, "value", value) for value in values)
            text = f"{name}: {was} → {now}" if was != now else name
        return Breakage(path, why, text, name, at)
    words = dict.fromkeys(word for word in (_value(old), _value(new)) if word)
    removed = breakage.kind is _Kind.OBJECT_REMOVED
    name = path.rpartition(".")[2] if removed or "value" in why else ""
    return Breakage(path, why, " → ".join(words) if not removed else "", name)


def _value(value: object) -> str:
    if isinstance(value, griffe.Object | griffe.Alias | griffe.Parameter):
        return value.name
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "" if value is None else str(value)


def _schemas(old: Found, new: Found) -> list[Breakage]:
    mine, theirs = _schema_lines(old), _schema_lines(new)
    found = []
    for name, schema in mine.items():
        if name not in theirs:
            found.append(Breakage(name.split(".")[0], "overload removed", schema))
        elif theirs[name] != schema:
            given = [_parameters(one) for one in (schema, theirs[name])]
            result = [one.partition("->")[2] for one in (schema, theirs[name])]
            added = [one for one in given[1] if one not in given[0]]
            harmless = given[1][: len(given[0])] == given[0] and result[0] == result[1]
            why = "schema changed"
            if harmless and all("=" in one for one in added if one != "*"):
                why = "argument added"
            elif sorted(given[0]) != sorted(given[1]):
                why = _default(given) or why
            found.append(Breakage(name.split(".")[0], why, f"{schema} → {theirs[name]}"))
    return found


def _parameters(schema: str) -> list[str]:
    inside = schema.partition("(")[2].rpartition("->")[0].rstrip(" )")
    return [one.strip() for one in re.split(r",(?![^\[(]*[\])])", inside) if one.strip()]


def _default(given: Sequence[Sequence[str]]) -> str:
    names = [[one.partition("=")[0] for one in each] for each in given]
    return "default changed" if names[0] == names[1] else ""


def _schema_lines(found: Found) -> dict[str, str]:
    """Return entry → schema, white space aside."""
    heads = [
        line.split(":", 1)[1]
        for line in found.definition.lines
        if line.startswith(("- func:", "- name:", "  func:", "  name:"))
    ]
    schemas = [" ".join(head.split("#")[0].split()) for head in heads]
    return {schema.split("(")[0]: schema for schema in schemas}


def _cpp(old_tree: Tree, old: Found, new_tree: Tree, new: Found) -> list[Breakage]:
    was, now = old.definition, new.definition
    signatures = (plain_cpp(normalise(one.signature, "cpp")) for one in (was, now))
    said = _texts(was.symbol, *signatures)
    values = [_enumerators(one) for one in (was, now)]
    said += _reordered(was.symbol, *values)
    gone = [one for one in values[0] if one not in values[1]]
    said += [Breakage(was.symbol, "value removed", one, one) for one in gone]
    mine = _members(old_tree, was.file, f"{was.symbol}::")
    theirs = _members(new_tree, now.file, f"{now.symbol}::")
    return said + [
        Breakage(f"{was.symbol}::{name}", "member removed", "", name.rpartition("::")[2])
        for name in mine
        if name not in theirs
    ]


def _enumerators(definition: Definition) -> list[str]:
    """Return the names in a C++ enum, in order; of anything else, none."""
    tokens = normalise(definition.text, "cpp")
    body = re.match(r"(?:typedef )?enum [^{]*\{ (.*?),? \}", tokens)
    return [one.split()[0] for one in body[1].split(" , ") if one.split()] if body else []


def _members(tree: Tree, file: str, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in names(tree, file) if name.startswith(prefix)]


def _texts(owner: str, old: str, new: str) -> list[Breakage]:
    was, now = (" ".join(one.split()) for one in (old, new))
    if was == now:
        return []
    bare = [re.sub(r"\s*=\s*[^,()<>]+(?=[,)>])", "", one) for one in (was, now)]
    why = "default changed" if bare[0] == bare[1] else "signature changed"
    return [Breakage(owner, why, f"{was} → {now}")]
