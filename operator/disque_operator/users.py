"""Users: the DisqueUsers of a cluster become users of all its brokers, and stay users when brokers restart.

The Secret `names.auth_secret` has a `user` line for each user in its configuration file, which brokers read when they
start, so a broker never serves without its users. Lines have hashes of passwords only. New rules are sent to the
brokers first: a line that a broker rejects would keep it from starting. Before that, the Secret notes whose user it is.

| observed | decision |
|---|---|
| a user without a password | generate one, in a Secret of its own |
| its own Secret does not exist, or has no password | change nothing, and say so |
| a command or category that a broker does not know | change nothing, and say so |
| a broker has a user of this name that this resource never set | change nothing, unless `adopt` |
| a new user | note its resource in the Secret, without rules |
| a broker that answers has other rules | ACL SETUSER |
| all brokers that answer have the rules | keep them in the Secret |
| the resource is deleted | `declared`, with ACL DELUSER |
| `spec.config` has an `aclfile` | change nothing: a broker does not start with both |
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from disque_operator import declared, names
from disque_operator.actions import Action, Apply, Command
from disque_operator.apivalues import Json, condition_of
from disque_operator.decisions import Decision
from disque_operator.declared import Named, Verdict
from disque_operator.members import ClusterView
from disque_operator.observed import Broker, Kept, password_hash
from disque_operator.resources import differs
from disque_operator.resources.users import user_secret
from disque_operator.userspec import UserFields

_User: TypeAlias = Named[UserFields]
_ALL: Final = "@all"
_READY: Final = Verdict(True, "Applied", "every member that answers accepts the user")


@dataclass(frozen=True)
class UserDecision:
    """What the Secret of the cluster keeps about users, and what to do."""

    kept: dict[str, Kept]
    decision: Decision


def decide(view: ClusterView, fresh: str, trusted: str) -> UserDecision:
    """Decide the next step for users.

    `fresh` is a new random password, from which those of users are derived. `trusted` are the authorities that sign the
    certificates of the brokers; empty without TLS.
    """
    counted, others = declared.named(view.observed.users, UserFields, "user_name")
    kept = dict(view.observed.kept_users)
    known = {name for _, broker in view.loaded for name in broker.users}
    secrets: list[Action] = []
    commands: list[Action] = []
    statuses: list[Action] = []
    for user in counted:
        verdict, rules, secret = _next(view, user, fresh, trusted)
        secrets += secret
        entry = view.observed.kept_users.get(user.name)
        mine = entry is not None and entry.uid == user.metadata["uid"] and not entry.removed_at
        if rules:
            changes = list(_set(view, user, rules)) if mine else []
            commands += changes
            former = entry.rules if entry is not None and not entry.removed_at else ""
            accepted = mine and not changes and bool(view.loaded)
            kept[user.name] = Kept(
                user.metadata["uid"], user.fields.deletion_policy == "Retain", rules if accepted else former
            )
            verdict = _READY if accepted and entry == kept[user.name] else verdict
        statuses += declared.status_of(view, user.declared, {"Ready": verdict}, _more(user))
    for other, verdict in others:
        statuses += declared.status_of(view, other, {"Ready": verdict}, {})
    present = {user.name: str(user.metadata["uid"]) for user in counted}
    gone = dict(declared.without_resources(view, view.observed.kept_users, present, known))
    commands += _delete(view, {name for name in gone if view.observed.kept_users[name].removed_at})
    kept = {name: kept[name] for name in present if name in kept} | gone
    return UserDecision(kept, Decision((*secrets, *commands, *statuses)))


def _more(user: _User) -> Json:
    more: Json = {"userName": user.name}
    if user.fields.authentication == "Certificate":
        return more
    own = user.fields.password_secret
    if own:
        return more | {"secretName": own.name}
    generated = names.user_secret(user.metadata["name"])
    return more | {"secretName": generated, "binding": {"name": generated}}


def _next(view: ClusterView, user: _User, fresh: str, trusted: str) -> tuple[Verdict, str, tuple[Apply, ...]]:
    """Return the verdict about a user, its rules if they can be set, and its Secret if that must be written."""
    reason = _refusal(view, user)
    if reason is not None:
        return reason, "", ()
    if user.fields.authentication == "Certificate":
        return _applying(view), rules_of(user.fields, ()), ()
    own = user.fields.password_secret
    key = own.key if own else "password"
    secret = user.declared.secret
    password = _value(secret, key)
    if own is not None:
        if not password:
            text = f"the Secret {own.name} does not exist, or has no key {key}: create it"
            return Verdict(False, "SecretMissing", text), "", ()
        return _applying(view), rules_of(user.fields, (password,)), ()
    if secret is not None and not _is_ours(secret, user):
        text = (
            f"the Secret {secret['metadata']['name']} does not belong to this resource: delete it, or name a Secret "
            "with the password in spec.passwordSecret"
        )
        return Verdict(False, "SecretTaken", text), "", ()
    manifest = user_secret(
        view.spec,
        user.declared.resource,
        user.name,
        password or derived(fresh, str(user.metadata["uid"])),
        trusted,
        owned=user.fields.deletion_policy == "Delete",
    )
    writes = (Apply(manifest, "the password of a user"),) if differs(manifest, secret) else ()
    if not password:
        return Verdict(False, "Applying", "a password is generated"), "", writes
    return _applying(view), rules_of(user.fields, (password,)), writes


def _refusal(view: ClusterView, user: _User) -> Verdict | None:
    """Return why a user cannot be set."""
    if "aclfile" in view.spec.config:
        text = "spec.config of the cluster has an aclfile, and brokers do not start with both: remove one of them"
        return Verdict(False, "AclFile", text)
    if not all(broker.permissions for _, broker in view.loaded):
        return Verdict(False, "NoUsers", "a broker of an earlier release has no users: upgrade the cluster first")
    unknown = [
        word
        for word in (*user.fields.allow, *user.fields.deny)
        if word != _ALL and any(word not in broker.permissions for _, broker in view.loaded)
    ]
    if unknown:
        text = f"the brokers know no command or category {unknown[0]}: correct spec.allow or spec.deny"
        return Verdict(False, "UnknownCommand", text)
    kept = view.observed.kept_users.get(user.name)
    ours = condition_of(user.status, "Ready").get("status") == "True" or (
        kept is not None and (kept.uid == user.metadata["uid"] or bool(kept.removed_at))
    )
    exists = kept is not None or any(user.name in broker.users for _, broker in view.loaded)
    if exists and not ours and not user.fields.adopt:
        text = f"the cluster has a user {user.name} that this resource did not make: set spec.adopt to take it over"
        return Verdict(False, "UserExists", text)
    return None


def _applying(view: ClusterView) -> Verdict:
    if not view.loaded:
        return Verdict(False, "NoMembers", "no member of the cluster answers")
    return Verdict(False, "Applying", "the user is set on the members of the cluster")


def rules_of(fields: UserFields, passwords: tuple[str, ...]) -> str:
    """Return the rules of a user exactly as brokers describe them (ACL LIST)."""
    words = ["on" if fields.enabled else "off"]
    words += [f"#{password_hash(one)}" for one in passwords]
    words += [f"~{pattern}" for pattern in dict.fromkeys(reversed(fields.queues))][::-1]
    words += _selectors(fields) or ["-@all"]
    if fields.limits.commands_per_second:
        words.append(f"%r={fields.limits.commands_per_second}")
    if fields.limits.connections:
        words.append(f"%c={fields.limits.connections}")
    return " ".join(words)


def _selectors(fields: UserFields) -> list[str]:
    """Return the rules about commands, without those that a later one makes void."""
    found: list[str] = []
    for sign, name in [*(("+", one) for one in fields.allow), *(("-", one) for one in fields.deny)]:
        if name == _ALL:
            found = [f"+{_ALL}"] if sign == "+" else []
            continue
        below = f"{name}|"
        found = [one for one in found if one[1:] != name and not one[1:].startswith(below)]
        found.append(f"{sign}{name}")
    return found


def derived(fresh: str, uid: str) -> str:
    """Return a random password that differs for each user, from one random password for each round."""
    return sha256(f"{fresh} {uid}".encode()).hexdigest()[:40]


def _set(view: ClusterView, user: _User, rules: str) -> Iterator[Command]:
    words = ("ACL", "SETUSER", user.name, "reset", *rules.split(" "))
    for pod, broker in _brokers(view):
        if broker.users.get(user.name) != rules:
            yield Command(pod, broker.node_id, words, f"user {user.name} differs from its DisqueUser", secret=True)


def _delete(view: ClusterView, removed: set[str]) -> Iterator[Command]:
    for pod, broker in _brokers(view):
        for name in sorted(removed & broker.users.keys()):
            yield Command(pod, broker.node_id, ("ACL", "DELUSER", name), "its DisqueUser was deleted")


def _brokers(view: ClusterView) -> Iterator[tuple[str, Broker]]:
    return ((member.name, broker) for member, broker in view.loaded if not member.pod.terminating)


def _value(secret: Json | None, key: str) -> str:
    """Return a value of a Secret; empty if there is none, or if it is not text."""
    try:
        return b64decode(((secret or {}).get("data") or {}).get(key) or "").decode().rstrip("\n")
    except ValueError:
        return ""


def _is_ours(secret: Json, user: _User) -> bool:
    labels = secret["metadata"].get("labels") or {}
    return bool(labels.get(names.USER_LABEL) == user.metadata["name"])
