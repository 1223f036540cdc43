"""Compares live objects with manifests, ignoring what the API server does to objects.

The API server adds defaults, normalises quantities, omits empty and false fields, and may reorder lists that are maps.
None of that is a difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from disque_operator.apivalues import Json, amount
from disque_operator.resources.merging import key_of

_NOT_STORED: Final = ("apiVersion", "kind")
"""Fields that objects in lists do not have."""
_WHOLE: Final = ("NetworkPolicy",)
"""Kinds whose lists are compared as a whole."""
_COMPLETED: Final = ("ipFamilies",)
"""Lists to which the API server adds entries: the second family of `ipFamilyPolicy: PreferDualStack`."""
_AMOUNT: Final = re.compile(r"\.(limits|requests)\.[^.]+$|\.sizeLimit$")
_LEFT_OUT: Final = (
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "weight",
)
"""Fields that the API server omits if they are false or 0. The absence of any other field is a difference."""


def differs(manifest: Json, live: Json | None) -> str:
    """Return the first field that differs from the manifest, for example `spec.replicas`; empty if none does.

    Fields that are not in the manifest belong to others. Fields that were removed from the manifest are revealed by the
    annotation names.APPLIED.
    """
    if live is None:
        return "metadata"
    wanted = {name: value for name, value in manifest.items() if name not in _NOT_STORED}
    return _Comparison(keyed=manifest["kind"] not in _WHOLE).values(wanted, live, "", "").removeprefix(".")


@dataclass(frozen=True)
class _Comparison:
    """Walks a manifest and returns the path of the first difference. `name` is the field that holds a value."""

    keyed: bool
    """Whether lists that are maps are compared as maps."""

    def values(self, wanted: Any, live: Any, path: str, name: str) -> str:
        if isinstance(wanted, dict) and isinstance(live, dict):
            return self._objects(wanted, live, path)
        if isinstance(wanted, list) and isinstance(live, list):
            return self._lists(wanted, live, path, name)
        return "" if wanted == live or (_AMOUNT.search(path) and _are_equal_amounts(wanted, live)) else path

    def _objects(self, wanted: Json, live: Json, path: str) -> str:
        for name, value in wanted.items():
            below = f"{path}.{name}"
            if name in live:
                found = self.values(value, live[name], below, name)
            else:
                found = "" if _may_be_left_out(name, value) else below
            if found:
                return found
        return ""

    def _lists(self, wanted: list[Any], live: list[Any], path: str, name: str) -> str:
        if name in _COMPLETED:
            live = live[: len(wanted)]
        keys = [key_of(name, entry) for entry in wanted] if self.keyed else []
        if keys and all(keys):
            there = {key_of(name, entry): entry for entry in live}
            pairs = [(key, entry, there.get(key)) for key, entry in zip(keys, wanted, strict=True)]
        elif len(wanted) == len(live):
            pairs = [(str(number), *pair) for number, pair in enumerate(zip(wanted, live, strict=True))]
        else:
            return path
        found = (self.values(one, other, f"{path}[{shown}]", name) for shown, one, other in pairs)
        return next(filter(None, found), "")


def _may_be_left_out(name: str, value: object) -> bool:
    return value is None or value in ("", [], {}) or (name in _LEFT_OUT and not value)


def _are_equal_amounts(one: object, other: object) -> bool:
    return amount(one) is not None and amount(one) == amount(other)
