"""What callers of a definition notice when it changes: parameters, members, schemas."""

from __future__ import annotations

import logging
from pathlib import Path

import griffe

from insidetorch.drift.definitions import Found, names, own_name
from insidetorch.drift.trees import Tree
from insidetorch.locate.normalise import normalise


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
    """Return griffe's breakages, or None if griffe does not know such an object."""
    mine, theirs = _module(old), _module(new)
    if mine is None or theirs is None:
        return None
    path = old.definition.symbol.rpartition(".")[0]
    prefix = f"{path}." if path else ""
    found = (f"{prefix}{_said(b)}" for b in griffe.find_breaking_changes(mine, theirs))
    return list(dict.fromkeys(found))


def _module(found: Found) -> griffe.Module | None:
    """Return a module that holds one definition alone, as public under its old name."""
    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    code = found.definition.text
    try:
        module = griffe.visit("m", Path("m.py"), f"if 1:\n{code}" if code[:1].isspace() else code)
    except SyntaxError:
        return None
    for member in module.members.values():
        member.public = True
    return module if module.members else None


def _said(breakage: griffe.Breakage) -> str:
    values = breakage.as_dict(full=True)
    what = breakage.kind.value
    path = str(values["object_path"]).removeprefix("m.")
    old, new = _value(breakage.old_value), _value(breakage.new_value)
    change = f": {old} → {new}" if old and new else f": {old or new}" if old or new else ""
    return f"{path}: {what}{change}"


def _value(value: object) -> str:
    if isinstance(value, griffe.Object | griffe.Alias):
        return value.name
    if isinstance(value, griffe.Parameter):
        return value.name
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
        if line.startswith(("- ", "- func:"))
    ]
    schemas = [" ".join(head.split("#")[0].split()) for head in heads]
    return {schema.split("(")[0]: schema for schema in schemas}


def _cpp(old_tree: Tree, old: Found, new_tree: Tree, new: Found) -> list[str]:
    was, now = old.definition, new.definition
    said = _texts(normalise(was.signature, "cpp"), normalise(now.signature, "cpp"))
    prefix = f"{was.symbol}::"
    mine = _members(old_tree, was.file, prefix)
    theirs = _members(new_tree, now.file, f"{now.symbol}::")
    return said + [f"{prefix}{name}: member was removed" for name in mine if name not in theirs]


def _members(tree: Tree, file: str, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in names(tree, file) if name.startswith(prefix)]


def _texts(old: str, new: str) -> list[str]:
    same = " ".join(old.split()) == " ".join(new.split())
    return [] if same else [f"signature was changed: {old} → {new}"]
