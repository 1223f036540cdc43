"""Updates: which image a cluster runs, and when pods are replaced that nobody asked to be replaced.

An operator upgrade brings another default image, and often another pod template. Neither is a reason to restart the
brokers of every cluster at once. The StatefulSet remembers the image that was chosen (annotation names.IMAGE), and
whether pods wait to be replaced (names.UPDATE):

| what changed | the StatefulSet | pods are replaced |
|---|---|---|
| the spec, including `spec.image` | gets the new template at once | at once, as `rollout` says |
| the default image, and the spec has none | keeps the chosen image until the update starts | when the update starts |
| the template, because the operator is another release | gets the new template at once | when the update starts |
| the image, and `versions` refuses it | keeps the chosen image | not at all |

An update starts in `spec.upgrade.window`, when the cluster passes the disruption check, and when no cluster of the
operator is being updated or comes first by namespace and name (`turns`). An update that has started continues when the
window closes, because two versions in one cluster are worse than a late restart. It ends when all pods are replaced
and the cluster passes the disruption check; the next cluster waits for that.

Whatever happens to a pod in the meantime, it starts from the template that the StatefulSet has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from disque_operator import resources, versions, windows
from disque_operator.busmode import BusMode
from disque_operator.decisions import Note, Turn, problem
from disque_operator.disruption import Disruption, blocker
from disque_operator.members import ClusterView

WAITING: Final = "waiting"
RUNNING: Final = "running"

_WAITS_FOR_TURN: Final = "OtherCluster"


@dataclass(frozen=True)
class Update:
    """The decision: what the StatefulSet gets, and what to report."""

    image: str
    state: str = ""
    """The annotation names.UPDATE."""
    available_image: str = ""
    """The image to which the cluster will be updated; empty if it has it."""
    turn: Turn = "none"
    notes: tuple[Note, ...] = ()


def turn_of(view: ClusterView) -> Turn:
    """Return the turn of a cluster for which nothing new is decided."""
    return "taken" if view.stateful_set is not None and view.stateful_set.update == RUNNING else "none"


def decide(view: ClusterView, bus: BusMode) -> Update:
    """Decide the image and the state of the update. `bus` is the mode for new pods."""
    spec, stateful_set = view.spec, view.stateful_set
    target = spec.image or view.observed.default_image
    if stateful_set is None:
        return Update(spec.image or str(view.observed.status.get("image") or "") or target)
    present = stateful_set.chosen_image or stateful_set.image
    refused = _refusal(view, target) if target != present else ""
    asked_image = spec.image is not None and not refused
    image = target if asked_image else present
    state, is_outdated = _state(view, image, bus)
    notes = tuple(_refused(view, target, refused))
    pending = image != target and not refused
    if state == RUNNING:  # with a newer image if there is one: the present one may be why it does not end
        return Update(target if pending else image, state, "", "taken", notes + _busy(True))
    if not (pending or state == WAITING):
        return Update(image, notes=notes + _busy(is_outdated))
    what = f"an update to image {target}" if pending else "a restart with the pod template of this operator"
    waits = _waits(view, what, is_outdated=is_outdated and state != WAITING)
    if waits is not None:
        turn: Turn = "wanted" if waits.reason == _WAITS_FOR_TURN else "none"
        return Update(image, state, target if pending else "", turn, (*notes, waits))
    return Update(target if pending else image, RUNNING, "", "taken", notes + _busy(True))


def _state(view: ClusterView, image: str, bus: BusMode) -> tuple[str, bool]:
    """Return the state of the update before one may start, and whether pods have an older template."""
    stateful_set = view.stateful_set
    assert stateful_set is not None  # `decide` checks it
    present = stateful_set.chosen_image or stateful_set.image
    template = resources.template_digest(view.spec, image, bus, view.observed.platform)
    changed = template != stateful_set.template_digest
    asked = image != present or stateful_set.spec_digest not in {"", resources.spec_digest(view.spec, bus)}
    is_outdated = changed or _has_older_pods(view)
    state = stateful_set.update
    if state == RUNNING:
        return "" if not is_outdated and not blocker(_at_rest(view)) else RUNNING, is_outdated
    if changed:
        return "" if asked else WAITING, is_outdated
    return state if is_outdated else "", is_outdated


def _has_older_pods(view: ClusterView) -> bool:
    stateful_set = view.stateful_set
    assert stateful_set is not None  # as above
    return not stateful_set.up_to_date or any(one.pod.revision != stateful_set.revision for one in view.members)


def _at_rest(view: ClusterView) -> Disruption:
    return Disruption(view, soak_s=view.spec.upgrade.soak_s, copies=True)


def _waits(view: ClusterView, what: str, *, is_outdated: bool) -> Note | None:
    """Return why an update has to wait; None if it may start now."""
    window = view.spec.upgrade.window
    if is_outdated:
        return _later("RolloutInProgress", f"{what} waits for the end of the present rollout")
    if window is not None and not windows.is_open(window, view.now_s):
        return _later("WindowClosed", f"{what} waits for {windows.next_opening(window, view.now_s)}")
    if reason := blocker(_at_rest(view)):
        return _later("NotHealthy", f"{what} waits: {reason}")
    if view.observed.waits_for:
        return _later(_WAITS_FOR_TURN, f"{what} waits: {view.observed.waits_for} is updated first")
    return None


def _later(reason: str, message: str) -> Note:
    return Note("Updated", reason, message, "Running", holds=False)


def _busy(is_outdated: bool) -> tuple[Note, ...]:
    if not is_outdated:
        return ()
    return (_later("RollingOut", "pods are being replaced"),)


def _refusal(view: ClusterView, target: str) -> str:
    brokers = [member.broker for member in view.members if member.broker is not None]
    present = [broker.version for broker in brokers if broker.version]
    known = present or str(view.observed.status.get("version") or "").split(", ")
    file_format = max((broker.file_format for broker in brokers), default=0)
    return versions.refusal(known, versions.tag_of(target), file_format)


def _refused(view: ClusterView, target: str, refused: str) -> Iterator[Note]:
    if not refused:
        return
    way_out = "" if view.spec.image else ". Set spec.image to choose a release"
    text = f"image {target} is not used: {refused}{way_out}"
    yield problem("VersionRefused", text)
    yield Note("Updated", "VersionRefused", text, "Degraded", holds=False)
