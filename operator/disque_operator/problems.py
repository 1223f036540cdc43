"""What is wrong with a spec that the API server accepted; reported in the condition SpecValid.

The API server cannot check values that only the broker's parser understands, consent that is given by an annotation,
and objects that were created before the rules of the definition changed. A spec with problems is not applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from disque_operator import names
from disque_operator.apivalues import Json, amount
from disque_operator.directives import FREE, OWNED, read
from disque_operator.resources.privileges import privileges
from disque_operator.resources.protected import protected
from disque_operator.spec import Spec
from disque_operator.windows import zone_problem
from disqued.config.kinds import BadValueError, MemoryShare
from disqued.config.options import OPTION_OF

_FREE_NAMES: Final = {option.name for option in FREE}


@dataclass(frozen=True)
class Problem:
    """A field that cannot be applied."""

    field: str
    """Path of the field, for example `spec.config.hz`."""
    text: str
    """What is wrong, and what to do."""

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def problems(spec: Spec, *, privileged: bool = False) -> tuple[Problem, ...]:
    """Return everything that is wrong; empty if nothing is. `privileged`: pods may have privileges."""
    checks = (_invalid, _consent, _config, _amounts, _maxmemory, _window, _outdated, _pod_template)
    found = tuple(problem for check in checks for problem in check(spec))
    return found if privileged or found else tuple(_privileges(spec))


def _invalid(spec: Spec) -> Iterator[Problem]:
    for path, text in spec.invalid:
        yield Problem(path, text)


def _consent(spec: Spec) -> Iterator[Problem]:
    if spec.drain.on_timeout == "Force" and spec.annotations.get(names.ALLOW_JOB_LOSS) != "true":
        yield Problem(
            "spec.drain.onTimeout",
            f"Force drops the remaining jobs: confirm with the annotation {names.ALLOW_JOB_LOSS}: "
            '"true", or use Wait or Retain',
        )


def _config(spec: Spec) -> Iterator[Problem]:
    for name, text in spec.config.items():
        problem = _directive_problem(name, text)
        if problem:
            yield Problem(f"spec.config.{name}", problem)


def _directive_problem(name: str, text: str) -> str:
    if name in OWNED:
        return f"only the operator sets it: {OWNED[name]}"
    if name not in _FREE_NAMES:
        return "is not a directive of the broker: use a name from docs/configuration.md, in lower case"
    try:
        read(OPTION_OF[name].kind, text)
    except BadValueError as error:
        return f"invalid value {text!r}: {error}"
    return ""


def _amounts(spec: Spec) -> Iterator[Problem]:
    for kind in ("limits", "requests"):
        for name, text in (spec.resources.get(kind) or {}).items():
            if amount(text) is None:
                yield Problem(
                    f"spec.resources.{kind}.{name}", f"{text!r} is not a quantity: use one such as 500m or 2Gi"
                )
    if amount(spec.storage.size) is None:
        yield Problem("spec.storage.size", f"{spec.storage.size!r} is not a quantity: use one such as 10Gi")


def _maxmemory(spec: Spec) -> Iterator[Problem]:
    if spec.maxmemory == "auto":
        return
    try:
        share: MemoryShare = read(OPTION_OF["maxmemory"].kind, spec.maxmemory)
    except BadValueError as error:
        yield Problem("spec.maxmemory", f"invalid value {spec.maxmemory!r}: {error}. Use auto, 75% or 1gb")
        return
    limit = amount((spec.resources.get("limits") or {}).get("memory"))
    if limit and share.of(int(limit)) > limit:
        yield Problem(
            "spec.maxmemory",
            f"{spec.maxmemory} exceeds the memory limit of the container, {spec.resources['limits']['memory']}: "
            "use auto, or set spec.resources.limits.memory to at least a third more than this",
        )


def _window(spec: Spec) -> Iterator[Problem]:
    window = spec.upgrade.window
    if window is not None and (text := zone_problem(window.time_zone)):
        yield Problem("spec.upgrade.window.timeZone", text)
    zone = spec.backup.time_zone if spec.backup else None
    if zone is not None and (text := zone_problem(zone)):
        yield Problem("spec.backup.timeZone", text)


def _outdated(spec: Spec) -> Iterator[Problem]:
    """Check what an object from before a change of the definition may contain."""
    if not spec.storage.ephemeral:
        return
    if spec.persistence.appendonly:
        yield Problem("spec.persistence.appendonly", "storage.ephemeral keeps no files: set it to false")
    if spec.hibernate:
        yield Problem("spec.hibernate", "storage.ephemeral keeps no jobs while no pod runs: set it to false")
    if spec.ordered.enabled:
        yield Problem("spec.ordered.enabled", "ordered queues are on volumes, and storage.ephemeral has none")


def _pod_template(spec: Spec) -> Iterator[Problem]:
    for part in ("metadata", "spec"):
        if not isinstance(spec.pod_template.get(part, {}), dict):
            yield Problem(f"spec.podTemplate.{part}", "must be an object")
            return
    for name in ("containers", "initContainers", "volumes"):
        entries: Any = _pod_spec(spec).get(name)
        if entries is not None and not _are_named(entries):
            yield Problem(f"spec.podTemplate.spec.{name}", "must be a list of objects with a name")
            return
    for path, instead in protected(spec):
        yield Problem(f"spec.podTemplate.{path}", f"only the operator sets it: {instead}")


def _privileges(spec: Spec) -> Iterator[Problem]:
    for path, why in privileges(spec):
        yield Problem(
            f"spec.podTemplate.{path}",
            f"not allowed, because {why}. Remove it, or ask the administrator of the operator (option pod-templates)",
        )


def _pod_spec(spec: Spec) -> Json:
    found: Json = spec.pod_template.get("spec") or {}
    return found


def _are_named(entries: object) -> bool:
    return isinstance(entries, list) and all(isinstance(entry, dict) and entry.get("name") for entry in entries)
