"""What callers of a definition notice when it changes: parameters, members, schemas."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import griffe

from insidetorch.drift.definitions import Found, names, own_name
from insidetorch.drift.meaning import plain_cpp, plain_python
from insidetorch.drift.trees import Tree
from insidetorch.locate.definition import Definition
from insidetorch.locate.normalise import normalise

_SILENT = re.compile(r"(?:^|[._])(?:override|final|deprecated|overload|no_type_check)\b")
_ASPECTS = {
    griffe.BreakageKind.PARAMETER_CHANGED_DEFAULT: "default",
    griffe.BreakageKind.PARAMETER_CHANGED_KIND: "kind",
}


def breakages(old_tree: Tree, old: Found, new_tree: Tree, new: Found) -> list[str]:
    """Return what breaks for those who call or derive from a definition, one line each.

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
    return _texts(was.signature, now.signature)


def _python(old: Found, new: Found) -> list[str] | None:
    """Return griffe's breakages and those it passes over, or None if it knows no such object."""
    mine, theirs = _module(old), _module(new)
    if mine is None or theirs is None:
        return None
    path = old.definition.symbol.rpartition(".")[0]
    prefix = f"{path}." if path else ""
    said = [_said(breakage) for breakage in griffe.find_breaking_changes(mine, theirs)]
    said += _passed_over(mine, theirs)
    return [f"{prefix}{one}" for one in dict.fromkeys(said)]


def _passed_over(old: griffe.Object, new: griffe.Object) -> Iterator[str]:
    """Yield what griffe does not look at: bases, decorators, order in enums, what ``**`` takes."""
    for name, was in old.members.items():
        now = new.members.get(name)
        if isinstance(was, griffe.Class) and isinstance(now, griffe.Class):
            bases = [[str(base) for base in one.bases] for one in (was, now)]
            if bases[0] != bases[1] and len(bases[0]) <= len(bases[1]):
                yield f"{_path(was)}: Base classes were changed: {_change(*bases)}"
            if any(base.rpartition(".")[2].endswith(("Enum", "Flag")) for base in bases[0]):
                yield from _reordered(_path(was), list(was.members), list(now.members))
            yield from _passed_over(was, now)
        elif isinstance(was, griffe.Function) and isinstance(now, griffe.Function):
            given = [parameter.name for parameter in now.parameters]
            kinds = {parameter.kind for parameter in now.parameters}
            for parameter in was.parameters:
                swallowed = parameter.name not in given and not parameter.name.startswith("*")
                if swallowed and griffe.ParameterKind.var_keyword in kinds:
                    yield f"{_path(was)}: Parameter went into **: {parameter.name}"
        else:
            continue
        marks = [[str(one.value) for one in each.decorators] for each in (was, now)]
        marks = [[one for one in each if not _SILENT.search(one)] for each in marks]
        if marks[0] != marks[1]:
            yield f"{_path(was)}: Decorators were changed: {_change(*marks)}"


def _reordered(path: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    both = [[name for name in one if name in old and name in new] for one in (old, new)]
    if both[0] != both[1]:
        yield f"{path}: order of values was changed: {_change(*both)}"


def _change(old: Sequence[str], new: Sequence[str]) -> str:
    return f"{', '.join(old) or 'none'} → {', '.join(new) or 'none'}"


def _path(found: griffe.Object) -> str:
    return found.path.removeprefix("m.")


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


def _said(breakage: griffe.Breakage) -> str:
    values = breakage.as_dict(full=True)
    what = breakage.kind.value
    path = str(values["object_path"]).removeprefix("m.")
    old, new = breakage.old_value, breakage.new_value
    if isinstance(old, griffe.Parameter) and isinstance(new, griffe.Parameter):
        aspect = _ASPECTS.get(breakage.kind, "name")
        given = (getattr(one, aspect) for one in (old, new))
        was, now = (getattr(value, "value", value) for value in given)
        change = f"{old.name}: {was} → {now}" if was != now else old.name
        return f"{path}: {what}: {change}"
    words = [word for word in (_value(old), _value(new)) if word]
    return f"{path}: {what}{': ' if words else ''}{' → '.join(dict.fromkeys(words))}"


def _value(value: object) -> str:
    if isinstance(value, griffe.Object | griffe.Alias | griffe.Parameter):
        return value.name
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "" if value is None else str(value)


def _schemas(old: Found, new: Found) -> list[str]:
    mine, theirs = _schema_lines(old), _schema_lines(new)
    return [
        f"{name}: schema removed: {schema}"
        if name not in theirs
        else f"{name}: schema was changed: {schema} → {theirs[name]}"
        for name, schema in mine.items()
        if theirs.get(name) != schema
    ]


def _schema_lines(found: Found) -> dict[str, str]:
    """Return entry → schema, white space aside."""
    heads = [
        line.split(":", 1)[1]
        for line in found.definition.lines
        if line.startswith(("- func:", "- name:", "  func:", "  name:"))
    ]
    schemas = [" ".join(head.split("#")[0].split()) for head in heads]
    return {schema.split("(")[0]: schema for schema in schemas}


def _cpp(old_tree: Tree, old: Found, new_tree: Tree, new: Found) -> list[str]:
    was, now = old.definition, new.definition
    signatures = (plain_cpp(normalise(one.signature, "cpp")) for one in (was, now))
    said = _texts(*signatures)
    values = [_enumerators(one) for one in (was, now)]
    said += _reordered(was.symbol, *values)
    said += [f"{was.symbol}: value was removed: {one}" for one in values[0] if one not in values[1]]
    prefix = f"{was.symbol}::"
    mine = _members(old_tree, was.file, prefix)
    theirs = _members(new_tree, now.file, f"{now.symbol}::")
    return said + [f"{prefix}{name}: member was removed" for name in mine if name not in theirs]


def _enumerators(definition: Definition) -> list[str]:
    """Return the names in a C++ enum, in order; of anything else, none."""
    tokens = normalise(definition.text, "cpp")
    body = re.match(r"(?:typedef )?enum [^{]*\{ (.*?),? \}", tokens)
    return [one.split()[0] for one in body[1].split(" , ") if one.split()] if body else []


def _members(tree: Tree, file: str, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in names(tree, file) if name.startswith(prefix)]


def _texts(old: str, new: str) -> list[str]:
    same = " ".join(old.split()) == " ".join(new.split())
    return [] if same else [f"signature was changed: {old} → {new}"]
