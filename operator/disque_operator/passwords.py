"""Passwords: the one that clients are given, another one beside it for a while, and how a new one gets everywhere.

The Secret says what nodes are to take; they follow it by CONFIG SET, and read it when they start. Nodes take a new
password before clients can read it, and the former one until they have: no client is turned away by a rotation. Cases:

| what is seen | what is done |
|---|---|
| no password yet | a fresh one, or that of the user's Secret |
| `auth.rotation` or the password in the user's Secret is new | into the Secret as the next one, which no client reads |
| all nodes take the next one | it becomes the current one, the one until then the former |
| a node takes one of two only | the other one as its `requirepass-former`: which of the two is which is all the same |
| `auth.graceSeconds` over, and all nodes take the current one | the former one goes out of the Secret |
| the Secret has one only | `requirepass` is this one, then `requirepass-former` empty |
| another rotation while there are two | waits: three passwords are not to be had |
| passwords switched off | `requirepass` empty everywhere; the Secret keeps it, its file for the nodes does not |
| the user's Secret is missing | nothing changes; without any password no cluster is begun |

A pod that does not answer and may be running holds both passwords in the Secret: it may know no other one. And a
pod that starts may find the Secret as it was a minute ago, so a password that was switched off is kept as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from disque_operator.actions import Command
from disque_operator.apivalues import timestamp
from disque_operator.decisions import NOTHING, Decision, Note, problem, progress
from disque_operator.members import ClusterView, Member
from disque_operator.observed import Broker, Passwords

_SET: Final = ("CONFIG", "SET")


@dataclass(frozen=True)
class PasswordDecision:
    """What the Secret should say, and what has to be done."""

    wanted: Passwords | None
    decision: Decision = NOTHING
    possible: bool = True
    """False: a password is asked for and there is none, so nothing may be begun."""


def decide(view: ClusterView, fresh: str) -> PasswordDecision:
    """What comes next for the passwords."""
    if not view.spec.auth.enabled:
        return _off(view)
    wanted, notes = _wanted(view, fresh)
    if wanted is None:
        return PasswordDecision(None, Decision(notes=notes), possible=False)
    # Nodes follow what the Secret says already: a password that is nowhere but in memory could be lost with us.
    stored = view.observed.passwords
    commands = tuple(_follow(view, stored)) if stored is not None and stored == wanted else ()
    if commands:
        notes += (progress("Password", "the nodes are told the password", "Healing"),)
    return PasswordDecision(wanted, Decision(commands, notes))


def _wanted(view: ClusterView, fresh: str) -> tuple[Passwords | None, tuple[Note, ...]]:
    """What the Secret should say; None while there is no password."""
    auth, stored = view.spec.auth, view.observed.passwords
    own = view.observed.own_password if auth.secret_name else fresh
    notes: tuple[Note, ...] = ()
    if not own:
        notes = (
            problem(
                "SecretMissing",
                f"the Secret {auth.secret_name} that spec.auth.secretName names is missing, or has no key password: "
                f"create it, for instance with kubectl create secret generic {auth.secret_name} "
                f"--from-literal=password=… --namespace {view.spec.namespace}",
            ),
        )
    if stored is None:
        return (Passwords(own, None, auth.rotation, 0.0, timestamp(view.now_s)) if own else None), notes
    renewed = own and (own != stored.current if auth.secret_name else auth.rotation != stored.rotation)
    if stored.following is not None:
        wanted = _going_over(view, stored, own if auth.secret_name else None)
        told = "nodes take the new password beside the present one, before clients are given it"
        return wanted, (*notes, progress("PasswordRotation", told, "Running"))
    if renewed and own and stored.former is None:
        return replace(stored, following=own), notes
    if stored.former is not None and _former_may_go(view, stored):
        return replace(stored, former=None), notes
    if stored.former is not None:
        notes += (progress("PasswordRotation", "the former password is accepted for a while", "Running"),)
    return stored, notes


def _going_over(view: ClusterView, stored: Passwords, own: str | None) -> Passwords:
    """The next password becomes the current one when all nodes take it; the user may write another one until then."""
    following = own or stored.following
    if following == stored.current:
        return replace(stored, following=None)
    if following == stored.following and all(_takes(member, following or "") for member in view.members):
        return Passwords(following or "", stored.current, view.spec.auth.rotation, 0.0, timestamp(view.now_s))
    return replace(stored, following=following)


def _former_may_go(view: ClusterView, stored: Passwords) -> bool:
    if stored.rotated_s_ago < view.spec.auth.grace_s:
        return False
    return all(_takes(member, stored.current) for member in view.members)


def _takes(member: Member, password: str) -> bool:
    """Whether the broker takes a password, or will read it when it starts."""
    if member.broker is not None:
        return password in member.broker.takes
    return member.pod.phase != "Running" or bool(member.pod.trouble)


def _follow(view: ClusterView, stored: Passwords) -> Iterator[Command]:
    """What nodes have to be told so that they take what the Secret says, and never less than before."""
    other = stored.following or stored.former
    for member, broker in view.loaded:
        if other is None:
            yield from _alone(member, broker, stored.current)
        elif broker.requirepass in {stored.current, other}:
            missing = other if broker.requirepass == stored.current else stored.current
            if broker.requirepass_former != missing:
                yield _set(member, broker, "requirepass-former", missing)
        else:
            yield _set(member, broker, "requirepass-former", other)
            yield _set(member, broker, "requirepass", stored.current)


def _alone(member: Member, broker: Broker, password: str) -> Iterator[Command]:
    if broker.requirepass != password:
        yield _set(member, broker, "requirepass", password)
    if broker.requirepass_former:
        yield _set(member, broker, "requirepass-former", "")


def _off(view: ClusterView) -> PasswordDecision:
    stored = view.observed.passwords
    if stored is None:
        return PasswordDecision(None)
    commands = tuple(
        _set(member, broker, name, "")
        for member, broker in view.loaded
        for name, value in (("requirepass-former", broker.requirepass_former), ("requirepass", broker.requirepass))
        if value
    )
    notes = (progress("Password", "the password is taken back", "Healing"),) if commands else ()
    return PasswordDecision(stored, Decision(commands, notes))


def _set(member: Member, broker: Broker, name: str, value: str) -> Command:
    why = f"{name} follows the Secret"
    return Command(member.name, broker.node_id, (*_SET, name, value), why, secret=True)
