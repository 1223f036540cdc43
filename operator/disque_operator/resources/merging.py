"""Lays what a person wrote over a manifest, as a strategic merge patch does.

Objects are merged field by field, lists with keys entry by entry, all else is replaced. null takes a field away, but
not a list with keys.
"""

from __future__ import annotations

from typing import Any

from disque_operator.resources.lists import KEYS, key_of


def merge(base: Any, over: Any, field: str = "") -> Any:
    """`base` with `over` laid over it; `field` is the name of the field that they stand in. Changes neither."""
    if isinstance(base, dict) and isinstance(over, dict):
        return _merge_objects(base, over)
    if isinstance(over, dict):
        return _merge_objects({}, over)
    if isinstance(base, list) and field in KEYS:
        return _merge_lists(base, over or [], field)
    return over


def _merge_objects(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in base.items() if name not in over}
    laid = {name: merge(base.get(name), value, name) for name, value in over.items()}
    # In the order of the base, so that manifests read the same with and without a change
    together = kept | laid
    return {name: together[name] for name in dict.fromkeys([*base, *over]) if together.get(name) is not None}


def _merge_lists(base: list[Any], over: list[Any], field: str) -> list[Any]:
    entries = {key_of(field, entry): entry for entry in base}
    for entry in over:
        key = key_of(field, entry)
        entries[key] = merge(entries.get(key), entry)
    return list(entries.values())
