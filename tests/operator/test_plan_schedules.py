"""Decisions about DisqueSchedules: schedules on brokers, changes by others, deletion."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator import names, schedules
from disque_operator.actions import WriteStatus
from disque_operator.apivalues import Json, condition_of
from disque_operator.members import ClusterView
from disque_operator.observed import Declared, Kept
from disque_operator.schedulespec import ScheduleFields
from support.kubeworld.values import at_rest, broker, decided, planned, seen, unreachable

SPEC: Json = {"clusterRef": {"name": "mail"}, "when": "0  3 * * *", "queue": "reports", "body": "sales"}


def resource(name: str = "nightly", *, status: Json | None = None, generation: int = 1, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "prod", "uid": f"uid-{name}", "generation": generation}
    return {"kind": names.SCHEDULE_KIND, "metadata": metadata, "spec": SPEC | spec, "status": status or {}}


def shown(**spec: Any) -> dict[str, str]:
    return ScheduleFields.model_validate(SPEC | spec).shown


def declared(view: ClusterView, *several: Json) -> ClusterView:
    return seen(view, schedules=tuple(Declared(one) for one in several))


def known(view: ClusterView, *found: dict[str, str] | None, name: str = "nightly") -> ClusterView:
    """Return the view with a schedule on each broker; None for a broker that does not know SCHEDULE."""
    for ordinal, one in enumerate(found):
        view = broker(view, ordinal, schedules={} if one is None else {name: one})
    return view


def commands(view: ClusterView) -> list[str]:
    return [text for text in decided(view) if ": SCHEDULE " in text]


def ready(view: ClusterView) -> tuple[str, str]:
    [written] = [action.status for action in planned(view).actions if isinstance(action, WriteStatus)]
    found = condition_of(written, "Ready")
    return found["status"], found["reason"]


def test_schedule_is_set_on_one_member_and_ready_when_all_have_it() -> None:
    view = known(declared(at_rest(), resource()), {}, {}, {})
    assert commands(view) == [
        "mail-0: SCHEDULE nightly SET 0  3 * * * reports sales MISSED skip STRICT yes",
    ]
    assert ready(view) == ("False", "Applying")
    assert ready(known(view, shown(), shown(), {})) == ("False", "Applying")
    done = known(view, shown(), shown(), shown())
    assert commands(done) == []
    assert ready(done) == ("True", "Applied")


def test_all_fields_become_words_of_the_command() -> None:
    options = "REPLICATE 2 RETRY 5 TTL 60 MAXLEN 1 PRIORITY -1 RETAIN 9"
    spec: Json = {
        "when": "0 3 * * *",
        "timeZone": "Europe/Berlin",
        "missed": "Once",
        "strict": False,
        "paused": True,
        "job": {"ttlSeconds": 60, "retrySeconds": 5, "priority": -1, "replicate": 2, "maxlen": 1, "retainSeconds": 9},
    }
    view = known(declared(at_rest(), resource(**spec)), {}, {}, {})
    assert commands(view) == [
        f"mail-0: SCHEDULE nightly SET 0 3 * * * reports sales TZ Europe/Berlin MISSED once STRICT no {options}",
        "mail-0: SCHEDULE nightly PAUSE",
    ]


@pytest.mark.parametrize(("change", "command"), [({"paused": "yes"}, "RESUME"), ({"body": "other"}, "SET")])
def test_changes_by_others_are_undone(change: dict[str, str], command: str) -> None:
    applied = resource(status={"appliedGeneration": 1})
    view = known(declared(at_rest(), applied), shown(), shown() | change, shown())
    [text] = commands(view)
    assert text.startswith(f"mail-1: SCHEDULE nightly {command}")
    assert ready(view) == ("False", "Applying")


def test_schedule_is_not_ready_before_every_member_has_had_it() -> None:
    view = unreachable(known(declared(at_rest(), resource()), shown(), shown(), shown()), 2)
    assert ready(view) == ("False", "Applying")


def test_members_without_schedules_are_named() -> None:
    view = known(declared(at_rest(), resource()), shown(), None, shown())
    assert ready(view) == ("False", "MembersTooOld")
    assert commands(view) == []


def test_of_two_resources_for_one_schedule_the_older_one_counts() -> None:
    view = known(declared(at_rest(), resource(), resource("other", scheduleName="nightly")), *[shown()] * 3)
    statuses = [action.status for action in planned(view).actions if isinstance(action, WriteStatus)]
    assert [condition_of(status, "Ready")["reason"] for status in statuses] == ["Applied", "NameTaken"]


def test_schedule_of_a_deleted_resource_is_removed_unless_it_is_retained() -> None:
    view = seen(known(at_rest(), *[shown()] * 3), kept_schedules={"nightly": Kept("uid-nightly", False)})
    assert commands(view) == []
    noted = schedules.decide(view).kept
    assert noted["nightly"].removed_at
    assert commands(seen(view, kept_schedules=noted)) == ["mail-0: SCHEDULE nightly DEL"]
    retained = {"nightly": Kept("uid-nightly", True)}
    assert commands(seen(view, kept_schedules=retained)) == []
    assert schedules.decide(seen(view, kept_schedules=retained)).kept == retained


def test_deletion_policy_is_kept_for_when_the_resource_is_gone() -> None:
    view = known(declared(at_rest(), resource(deletionPolicy="Retain")), *[shown()] * 3)
    assert schedules.decide(view).kept == {"nightly": Kept("uid-nightly", True)}
