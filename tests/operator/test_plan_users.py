"""Decisions about DisqueUsers: what is set on brokers, what the Secret of the cluster keeps, what the status says."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any

import pytest

from disque_operator import names, users
from disque_operator.actions import Apply, WriteStatus
from disque_operator.apivalues import Json
from disque_operator.declared import REMEMBERED_S
from disque_operator.members import ClusterView
from disque_operator.observed import Declared, Kept, password_hash
from disque_operator.resources.common import CONFIG_FILE
from disque_operator.userspec import UserFields
from disqued.core.access.rules import Rules
from disqued.core.access.rules import changed as applied
from disqued.node import ROOMS
from support.kubeworld.values import (
    at_rest,
    broker,
    broker_of,
    changed,
    decided,
    planned,
    seen,
    short,
    stateful_set,
    unreachable,
)

PERMISSIONS = frozenset({"@all", "@producer", "@consumer", "@inspect", "addjob", "config", "config|get", "info"})
SECRET = "shop-disque-user"
HASH = password_hash("s3cret")
RULES = f"on #{HASH} ~mail:* +@producer"


def resource(name: str = "shop", *, uid: str = "", status: Json | None = None, **spec: Any) -> Json:
    fields = {"clusterRef": {"name": "mail"}, "queues": ["mail:*"], "allow": ["@producer"], **spec}
    metadata = {"name": name, "namespace": "prod", "uid": uid or f"uid-{name}", "generation": 1}
    return {"kind": names.USER_KIND, "metadata": metadata, "spec": fields, "status": status or {}}


def password(text: str = "s3cret", user: str = "shop", **labels: str) -> Json:
    """Return the Secret with a password."""
    metadata = {"name": names.user_secret(user), "labels": {names.USER_LABEL: user} | labels}
    return {"kind": "Secret", "metadata": metadata, "data": {"password": b64encode(text.encode()).decode()}}


def declared(view: ClusterView, *several: Json, secret: Json | None = None, **fields: Any) -> ClusterView:
    """Return the view with DisqueUsers, on brokers that know rules."""
    for ordinal in range(3):
        known = broker_of(view, ordinal)
        view = broker(view, ordinal, permissions=known.permissions or PERMISSIONS)
    return seen(view, users=tuple(Declared(one, secret) for one in several), **fields)


def everywhere(view: ClusterView, **rules: str) -> ClusterView:
    """Return the view with users on all brokers."""
    for ordinal in range(3):
        view = broker(view, ordinal, users=rules)
    return view


def status_of(view: ClusterView, name: str = "shop") -> Json:
    """Return the status that the plan writes, or the present one."""
    written = [action for action in planned(view).actions if isinstance(action, WriteStatus)]
    found = {action.resource["metadata"]["name"]: action.status for action in written}
    present = {one.resource["metadata"]["name"]: one.resource["status"] for one in view.observed.users}
    status: Json = (present | found)[name]
    return status


def ready(view: ClusterView, name: str = "shop") -> tuple[str, str]:
    condition = status_of(view, name)["conditions"][0]
    return condition["status"], condition["reason"]


def kept_after(view: ClusterView) -> dict[str, Any]:
    """Return what the Secret of the cluster keeps after the plan."""
    return {name: (entry.rules, entry.removed_at) for name, entry in users.decide(view, "x", "").kept.items()}


def acl(view: ClusterView) -> list[str]:
    return [text for text in decided(view) if " ACL " in text]


def claimed(view: ClusterView) -> ClusterView:
    """Return the view after the Secret has noted whose user it is."""
    return seen(view, kept_users=users.decide(view, "x", "").kept)


def config_file(view: ClusterView) -> str:
    """Return the configuration file in the Secret that the plan applies."""
    [secret] = [
        action.manifest
        for action in planned(view).actions
        if isinstance(action, Apply) and action.manifest["metadata"]["name"] == names.auth_secret(view.spec.name)
    ]
    return b64decode(secret["data"][CONFIG_FILE]).decode()


# --- a new user -------------------------------------------------------------------------------------------------------


def test_password_is_generated_first_and_differs_for_each_user() -> None:
    view = declared(at_rest(), resource(), resource("other"))
    applied_secrets = [
        action.manifest
        for action in planned(view).actions
        if isinstance(action, Apply) and names.USER_LABEL in action.manifest["metadata"]["labels"]
    ]
    assert [one["metadata"]["name"] for one in applied_secrets] == [SECRET, "other-disque-user"]
    passwords = {b64decode(one["data"]["password"]).decode() for one in applied_secrets}
    assert len(passwords) == 2
    assert all(len(one) == 40 for one in passwords)
    assert applied_secrets[0]["metadata"]["ownerReferences"][0]["uid"] == "uid-shop"
    assert acl(view) == []
    assert ready(view) == ("False", "Applying")


def test_user_is_noted_then_set_on_all_brokers_and_then_kept_for_their_restarts() -> None:
    new = declared(at_rest(), resource(), secret=password())
    assert acl(new) == [], "first it is noted whose user it is"
    assert "user shop" not in config_file(new)
    view = claimed(new)
    assert acl(view) == [f"mail-{ordinal}: ACL SETUSER shop reset {RULES}" for ordinal in range(3)]
    assert kept_after(view) == {"shop": ("", "")}, "a broker that rejects the line could not start"
    there = everywhere(view, shop=RULES)
    assert acl(there) == []
    assert kept_after(there) == {"shop": (RULES, "")}
    assert f"user shop {RULES}\n" in config_file(there)
    assert "requirepass" in config_file(there)
    assert ready(there) == ("False", "Applying"), "a broker that restarts now would not have it"
    stored = seen(there, kept_users=users.decide(there, "x", "").kept)
    assert ready(stored) == ("True", "Applied")
    assert status_of(stored)["secretName"] == SECRET


def test_nothing_is_done_for_a_user_at_rest() -> None:
    view = claimed(everywhere(claimed(declared(at_rest(), resource(), secret=password())), shop=RULES))
    written = {**resource(), "status": status_of(view)}
    rest = seen(view, users=(Declared(written, users_secret(view)),))
    assert users.decide(rest, "x", "").decision.actions == ()


def users_secret(view: ClusterView) -> Json:
    """Return the Secret of the user as it was applied."""
    [action] = [
        action
        for action in planned(view).actions
        if isinstance(action, Apply) and action.manifest["metadata"]["name"] == SECRET
    ]
    return action.manifest


def test_broker_that_lost_the_user_gets_it_again() -> None:
    view = kept(everywhere(declared(at_rest(), resource(), secret=password()), shop=RULES))
    view = broker(view, 1, users={})
    assert acl(view) == [f"mail-1: ACL SETUSER shop reset {RULES}"]
    assert kept_after(view) == {"shop": (RULES, "")}


def kept(view: ClusterView, **fields: Any) -> ClusterView:
    entry = replace(Kept("uid-shop", False, RULES), **fields)
    return seen(view, kept_users={"shop": entry})


def test_member_that_does_not_answer_delays_nothing() -> None:
    """It reads the user from the Secret when it starts."""
    view = unreachable(kept(everywhere(declared(at_rest(), resource(), secret=password()), shop=RULES)), 2)
    assert ready(view) == ("True", "Applied")


def test_changed_password_is_set_on_brokers_first() -> None:
    view = kept(everywhere(declared(at_rest(), resource(), secret=password("new")), shop=RULES))
    assert [text.split(" ")[4] for text in acl(view)] == ["reset"] * 3
    assert all(password_hash("new") in text for text in acl(view))
    assert kept_after(view) == {"shop": (RULES, "")}


@pytest.mark.parametrize(
    ("spec", "secret", "expected"),
    [
        ({"passwordSecret": {"name": "mine"}}, None, ("False", "SecretMissing")),
        ({"passwordSecret": {"name": "mine", "key": "pw"}}, password(), ("False", "SecretMissing")),
        ({"passwordSecret": {"name": "mine"}}, password(), ("False", "Applying")),
        ({}, password(**{names.USER_LABEL: "somebody"}), ("False", "SecretTaken")),
        ({"allow": ["@producers"]}, password(), ("False", "UnknownCommand")),
        ({"deny": ["config|put"]}, password(), ("False", "UnknownCommand")),
        ({"queues": "all"}, password(), ("False", "Invalid")),
        ({"authentication": "Certificate"}, None, ("False", "Applying")),
    ],
)
def test_user_that_cannot_be_set_says_why(spec: Json, secret: Json | None, expected: tuple[str, str]) -> None:
    view = declared(at_rest(), resource(**spec), secret=secret)
    assert ready(view) == expected
    assert bool(acl(claimed(view))) == (expected[1] == "Applying")


def test_former_rules_stay_while_new_ones_cannot_be_set() -> None:
    view = kept(everywhere(declared(at_rest(), resource(allow=["@nothing"]), secret=password()), shop=RULES))
    assert acl(view) == []
    assert kept_after(view) == {"shop": (RULES, "")}


def test_broker_of_an_earlier_release_gets_no_users() -> None:
    view = declared(at_rest(), resource(), secret=password())
    view = broker(view, 1, permissions=frozenset())
    assert ready(view) == ("False", "NoUsers")
    assert acl(view) == []


def test_aclfile_of_the_cluster_excludes_users() -> None:
    """A broker does not start with `user` lines and an aclfile."""
    view = changed(declared(at_rest(), resource(), secret=password()), config={"aclfile": "/etc/users"})
    assert ready(view) == ("False", "AclFile")


def test_certificate_names_a_user_without_a_password() -> None:
    view = declared(at_rest(), resource(authentication="Certificate", limits={"connections": 5}))
    assert acl(claimed(view))[0] == "mail-0: ACL SETUSER shop reset on ~mail:* +@producer %c=5"
    assert "secretName" not in status_of(view)


# --- several resources, and users of others ---------------------------------------------------------------------------


def test_older_of_two_resources_with_one_name_counts() -> None:
    view = declared(at_rest(), resource(), resource("second", userName="shop"), secret=password())
    assert ready(view) == ("False", "Applying")
    assert ready(view, "second") == ("False", "NameTaken")
    assert len(acl(claimed(view))) == 3


def test_user_that_exists_is_taken_over_only_on_request() -> None:
    foreign = everywhere(declared(at_rest(), resource(), secret=password()), shop="on nopass ~* +@all")
    assert ready(foreign) == ("False", "UserExists")
    assert kept_after(foreign) == {}
    assert acl(claimed(foreign)) == []
    adopted = everywhere(declared(at_rest(), resource(adopt=True), secret=password()), shop="on nopass ~* +@all")
    assert len(acl(claimed(adopted))) == 3


def test_users_are_recognised_after_the_secret_of_the_cluster_was_lost() -> None:
    before = {"conditions": [{"type": "Ready", "status": "True"}], "userName": "shop"}
    view = claimed(everywhere(declared(at_rest(), resource(status=before), secret=password()), shop=RULES))
    assert kept_after(view) == {"shop": (RULES, "")}


# --- deletion ---------------------------------------------------------------------------------------------------------


def test_user_of_a_deleted_resource_is_removed_after_that_is_noted() -> None:
    view = kept(everywhere(declared(at_rest()), shop=RULES, other="on"))
    assert acl(view) == []
    [(name, (rules, removed_at))] = kept_after(view).items()
    assert (name, rules) == ("shop", RULES)
    assert removed_at
    assert "user shop" not in config_file(view)
    noted = kept(view, removed_at=removed_at)
    assert acl(noted) == [f"mail-{ordinal}: ACL DELUSER shop" for ordinal in range(3)]


def test_deleted_user_is_looked_for_until_no_broker_can_have_read_it() -> None:
    """A pod that starts may read a Secret that is a minute old."""
    for age_s, there, remembered in ((1.0, False, True), (REMEMBERED_S, True, True), (REMEMBERED_S, False, False)):
        view = kept(declared(at_rest()), removed_at="2026-01-01T00:00:00Z", removed_s_ago=age_s)
        view = everywhere(view, shop=RULES) if there else view
        assert bool(kept_after(view)) == remembered
        assert bool(acl(view)) == there


def test_retained_user_stays_and_needs_adoption_by_a_new_resource() -> None:
    view = kept(everywhere(declared(at_rest()), shop=RULES), retain=True)
    assert acl(view) == []
    assert kept_after(view) == {"shop": (RULES, "")}
    again = kept(everywhere(declared(at_rest(), resource(uid="new"), secret=password()), shop=RULES), retain=True)
    assert ready(again) == ("False", "UserExists")


def test_secret_of_a_retained_user_survives_its_resource() -> None:
    view = declared(at_rest(), resource(deletionPolicy="Retain"), secret=password())
    assert "ownerReferences" not in users_secret(view)["metadata"]


def test_hibernating_cluster_keeps_its_users() -> None:
    view = kept(declared(at_rest(), resource(), secret=password()))
    view = stateful_set(seen(view, pods=(), brokers={}), replicas=0, hibernated_members=3)
    view = changed(view, hibernate=True)
    assert kept_after(view) == {"shop": (RULES, "")}
    assert all(
        "Secret mail-auth" not in short(action) or RULES in config_file(view) for action in planned(view).actions
    )


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"queues": []},
        {"enabled": False, "queues": ["*"], "allow": ["@all"]},
        {"allow": ["config|get", "config", "addjob", "config|get"], "deny": ["config"]},
        {"allow": ["@producer", "@all", "info"], "deny": ["@dangerous", "info"]},
        {"allow": ["info"], "deny": ["@all"]},
        {"queues": ["a", "b", "a"], "limits": {"commandsPerSecond": 10, "connections": 3}},
    ],
)
def test_rules_are_exactly_what_the_broker_describes(spec: Json) -> None:
    """Otherwise the operator would set them in every round."""
    fields = UserFields.model_validate({"clusterRef": {"name": "mail"}, **resource()["spec"], **spec})
    rules = users.rules_of(fields, ("s3cret",))
    described = applied(Rules(), rules.encode().split(b" "), ROOMS.catalogue).describe()
    assert described.decode() == rules


def test_passwords_are_in_no_command_and_no_kept_state() -> None:
    view = everywhere(declared(at_rest(), resource(), secret=password()), shop=RULES)
    assert "s3cret" not in json.dumps([entry.rules for entry in users.decide(view, "x", "").kept.values()])
    commands = acl(claimed(declared(at_rest(), resource(), secret=password())))
    assert len(commands) == 3
    assert all("s3cret" not in text for text in commands)
