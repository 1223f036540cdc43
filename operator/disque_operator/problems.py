"""What is wrong with a spec though the API server took it.

That is: values that only the broker's own parser can judge, consent that stands in an annotation, and objects that are
older than the rules of the schema. `problems` is what the condition SpecValid says. While there are any, nothing is
changed by the spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from disque_operator import names
from disque_operator.directives import FREE, OWNED, read
from disque_operator.quantities import amount
from disque_operator.resources.protected import protected
from disque_operator.spec import Json, Spec
from disqued.config.kinds import BadValueError, MemoryShare
from disqued.config.options import OPTION_OF

_NAME_OF: Final = {option.name for option in FREE}


@dataclass(frozen=True)
class Problem:
    """One thing that can not be done as it is asked for."""

    field: str
    """Where, as `spec.config.hz`."""
    text: str
    """What is wrong and what to write instead."""

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def problems(spec: Spec) -> tuple[Problem, ...]:
    """All that is wrong; empty when all is well."""
    checks = (_consent, _config, _amounts, _maxmemory, _kept, _pod_template)
    return tuple(problem for check in checks for problem in check(spec))


def _consent(spec: Spec) -> Iterator[Problem]:
    if spec.drain.on_timeout == "Force" and spec.annotations.get(names.ALLOW_JOB_LOSS) != "true":
        yield Problem(
            "spec.drain.onTimeout",
            f"Force drops the jobs that are left: say that this is wanted by the annotation {names.ALLOW_JOB_LOSS}: "
            '"true", or write Wait or Handoff',
        )


def _config(spec: Spec) -> Iterator[Problem]:
    for name, text in spec.config.items():
        trouble = _trouble_with(name, text)
        if trouble:
            yield Problem(f"spec.config.{name}", trouble)


def _trouble_with(name: str, text: str) -> str:
    if name in OWNED:
        return f"the operator sets it: {OWNED[name]}"
    if name not in _NAME_OF:
        return "is no directive of the broker: see docs/configuration.md, names are in lower case"
    try:
        read(OPTION_OF[name].kind, text)
    except BadValueError as error:
        return f"{text!r} is not accepted: {error}"
    return ""


def _amounts(spec: Spec) -> Iterator[Problem]:
    for kind in ("limits", "requests"):
        for name, text in (spec.resources.get(kind) or {}).items():
            if amount(text) is None:
                yield Problem(
                    f"spec.resources.{kind}.{name}", f"{text!r} is no quantity: write one such as 500m or 2Gi"
                )
    if amount(spec.storage.size) is None:
        yield Problem("spec.storage.size", f"{spec.storage.size!r} is no quantity: write one such as 10Gi")


def _maxmemory(spec: Spec) -> Iterator[Problem]:
    if spec.maxmemory == "auto":
        return
    try:
        share: MemoryShare = read(OPTION_OF["maxmemory"].kind, spec.maxmemory)
    except BadValueError as error:
        yield Problem("spec.maxmemory", f"{spec.maxmemory!r} is not accepted: {error}. Write auto, 75% or 1gb")
        return
    limit = amount((spec.resources.get("limits") or {}).get("memory"))
    if limit and share.of(int(limit)) > limit:
        yield Problem(
            "spec.maxmemory",
            f"{spec.maxmemory} is more than the memory limit of the container, {spec.resources['limits']['memory']}: "
            "write auto, or raise spec.resources.limits.memory by a third over it",
        )


def _kept(spec: Spec) -> Iterator[Problem]:
    """What an object from before the rules of the schema may ask for."""
    if not spec.storage.ephemeral:
        return
    if spec.persistence.appendonly:
        yield Problem("spec.persistence.appendonly", "storage.ephemeral keeps no files: write false")
    if spec.hibernate:
        yield Problem("spec.hibernate", "storage.ephemeral keeps no jobs while no pod runs: write false")


def _pod_template(spec: Spec) -> Iterator[Problem]:
    for part in ("metadata", "spec"):
        if not isinstance(spec.pod_template.get(part, {}), dict):
            yield Problem(f"spec.podTemplate.{part}", "is no object")
            return
    for name in ("containers", "initContainers", "volumes"):
        entries: Any = _pod_spec(spec).get(name)
        if entries is not None and not _are_named(entries):
            yield Problem(f"spec.podTemplate.spec.{name}", "is to be a list whose entries have a name each")
            return
    for path, instead in protected(spec):
        yield Problem(f"spec.podTemplate.{path}", f"the operator sets it: {instead}")


def _pod_spec(spec: Spec) -> Json:
    found: Json = spec.pod_template.get("spec") or {}
    return found


def _are_named(entries: object) -> bool:
    return isinstance(entries, list) and all(isinstance(entry, dict) and entry.get("name") for entry in entries)
