"""The bus: members protect it in the mode of the spec, or in the one on the way to it that all of them can connect to.

A running cluster changes its mode in steps. Each is a new pod template, and pods are replaced one at a time. The mode
of the template follows from the modes of the pods: it is the nearest one to the spec with which a new pod can connect
to every pod that exists. So a change may begin, end or turn back at any time.

| pods | the spec wants TLS | the spec wants none |
|---|---|---|
| none | `yes` | `no` |
| all `no` | `optional` | `no` |
| `no` and `optional` | `optional` | `no` |
| all `optional` | `yes` | `no` |
| `optional` and `yes` | `yes` | `optional` |
| all `yes` | `yes` | `optional` |

| pods | the spec wants secret 1 | the spec wants none |
|---|---|---|
| none | 1 | none |
| some without a secret | 1, not required | none |
| all with secret 1, some or all do not require it | 1 | none |
| all require secret 0 | 0 and 1 | 0, not required |
| all require 0 and 1 | 1 | 0 and 1, not required |

Secrets are stored before a template names them. Each combination is a file of its own, so no pod reads an older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from disque_operator import names, pki
from disque_operator.busmode import PLAIN, BusMode, read_mode
from disque_operator.decisions import NOTHING, Decision, Note, problem, progress
from disque_operator.members import ClusterView


@dataclass(frozen=True)
class SecretRequest:
    """A new secret, and the entry that keeps it."""

    entry: str

    def made(self) -> dict[str, str]:
        """Make the secret and return the entry."""
        return {self.entry: pki.new_secret()}


@dataclass(frozen=True)
class BusDecision:
    """The mode for new pods."""

    mode: BusMode
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The entries of the Secret names.bus_secret."""
    decision: Decision = NOTHING
    request: SecretRequest | None = None
    """A secret to make first."""
    possible: bool = True
    """False if something is missing that pods need, so that no pod must be created or replaced."""


def decide(view: ClusterView) -> BusDecision:
    """Decide the mode for new pods."""
    spec, stored = view.spec, view.observed.bus_secrets
    generation = str(spec.cluster_secret.rotation)
    if spec.cluster_secret.enabled and generation not in stored:
        files = _files(stored, _used(view)) | {generation: ""}
        text = progress("BusMode", "the cluster secret is being made", "Healing")
        return BusDecision(PLAIN, files, Decision(notes=(text,)), SecretRequest(generation), possible=False)
    wanted = BusMode("yes" if spec.tls.enabled and spec.tls.bus else "no")
    if spec.cluster_secret.enabled:
        wanted = replace(wanted, secrets=(spec.cluster_secret.rotation,), required=True)
    mode = _nearest(wanted, {member.pod.bus for member in view.members})
    files = _files(stored, (*_used(view), mode, wanted))
    if not spec.tls.enabled and {mode.tls, *(member.pod.bus.tls for member in view.members)} != {"no"}:
        text = problem(
            "BusEncrypted",
            "members use TLS between each other, for which they need the certificate: set tls.enabled: true and "
            "tls.bus: false until no pod is left to replace, then tls.enabled: false",
        )
        return BusDecision(mode, files, Decision(notes=(text,)), possible=False)
    return BusDecision(mode, files, Decision(notes=tuple(_notes(wanted, mode))))


def _nearest(wanted: BusMode, found: Iterable[BusMode]) -> BusMode:
    """Return the mode nearest to the wanted one that can connect to all that are found."""
    encryption = (wanted, replace(wanted, tls="optional"))
    tls = next(one.tls for one in encryption if all(one.encrypts_like(other) for other in found))
    known = sorted({number for mode in found for number in mode.secrets})
    for secret, required in _secrets(wanted, known):
        mode = BusMode(tls, secret, required)
        if all(mode.connects(other) for other in found):
            return mode
    return replace(wanted, tls=tls)  # members that cannot connect to each other already: nothing keeps them together


def _secrets(wanted: BusMode, known: list[int]) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Yield what a pod may know and require, the nearest to what is wanted first."""
    yield wanted.secrets, wanted.required
    both = [tuple(sorted({*wanted.secrets, number})) for number in known if number not in wanted.secrets]
    if wanted.required:
        yield from ((secret, True) for secret in both)
        yield wanted.secrets, False
    yield from ((secret, False) for secret in both)
    yield tuple(known[:2]), False


def _used(view: ClusterView) -> tuple[BusMode, ...]:
    """Return the modes of the pods and of the present template, whose files must stay."""
    live = view.observed.children.get(("StatefulSet", names.stateful_set(view.spec.name)))
    containers = live["spec"]["template"]["spec"]["containers"] if live else []
    template = [read_mode(one.get("args") or ()) for one in containers if one["name"] == names.CONTAINER]
    return (*(member.pod.bus for member in view.members), *template)


def _files(stored: Mapping[str, str], modes: Iterable[BusMode]) -> dict[str, str]:
    """Return the files that these modes need, and each of their secrets alone, from which others are made."""
    found: dict[str, str] = {}
    for mode in modes:
        kept = {str(number): stored[str(number)] for number in mode.secrets if str(number) in stored}
        if mode.secrets and len(kept) == len(mode.secrets):
            found |= kept | {mode.file: "\n".join(kept.values())}
    return dict(sorted(found.items()))


def _notes(wanted: BusMode, mode: BusMode) -> Iterator[Note]:
    if mode.tls != wanted.tls:
        text = "members accept each other with and without TLS until all of them do"
        yield progress("BusMode", text, "Upgrading")
    if (mode.secrets, mode.required) != (wanted.secrets, wanted.required):
        text = "members accept each other with and without the cluster secret of the spec until all of them have it"
        yield progress("BusMode", text, "Upgrading")
