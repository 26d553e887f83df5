"""What callers of a definition notice when it changes: parameters, members, schemas."""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

import griffe

from insidetorch.drift.definitions import Found, names
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
    if was.file.endswith(".py") and now.file.endswith(".py") and was.symbol and now.symbol:
        found = _python(old_tree, old, new_tree, new)
        if found is not None:
            return found
    return _texts(was.signature, now.signature)


def _python(old_tree: Tree, old: Found, new_tree: Tree, new: Found) -> list[str] | None:
    """Return griffe's breakages, or None if griffe does not know the object."""
    mine = _object(old_tree, old.definition.file, old.definition.symbol)
    theirs = _object(new_tree, new.definition.file, new.definition.symbol)
    if mine is None or theirs is None:
        return None
    return list(dict.fromkeys(_said(b) for b in griffe.find_breaking_changes(mine, theirs)))


def _object(tree: Tree, file: str, symbol: str) -> griffe.Object | None:
    module = _module(tree, file)
    try:
        found = module[symbol] if module is not None else None
    except KeyError:
        return None
    return found if isinstance(found, griffe.Object) else None


@lru_cache(maxsize=256)
def _module(tree: Tree, file: str) -> griffe.Module | None:
    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    try:
        return griffe.visit(name, filepath=Path(file), code=tree.text(file) or "")
    except SyntaxError:
        return None


def _said(breakage: griffe.Breakage) -> str:
    values = breakage.as_dict(full=True)
    what = breakage.kind.value
    path = str(values["object_path"])
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
