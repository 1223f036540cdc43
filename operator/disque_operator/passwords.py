"""Passwords: the one that nodes take, the former one for a while, and how a new one gets everywhere.

The Secret says what is wanted; nodes follow it by CONFIG SET, and read it when they start. Cases:

| what is seen | what is done |
|---|---|
| no password yet | a fresh one, or that of the user's Secret |
| `auth.rotation` or the password in the user's Secret is new | into the Secret, the one until then as the former |
| a node does not take the current one | `requirepass-former`, then `requirepass`: it takes one of them all the time |
| `auth.graceSeconds` over, and all nodes take the current one | the former one goes out of the Secret |
| a node takes a former one, the Secret has none | `requirepass-former` empty |
| another rotation while there is a former one | waits: three passwords are not to be had |
| passwords switched off | `requirepass` empty everywhere; the Secret keeps it, its file for the nodes does not |
| the user's Secret is missing | nothing changes; without any password no cluster is begun |

A pod that does not answer and may be running holds the former password in the Secret: it may know no other one. And a
pod that starts may find the Secret as it was a minute ago, so a password that was switched off is kept as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from disque_operator.actions import Command
from disque_operator.members import Member, View
from disque_operator.observed import Node, Passwords
from disque_operator.steps import NOTHING, Note, Step, problem, progress
from disque_operator.times import timestamp

_SET: Final = ("CONFIG", "SET")


@dataclass(frozen=True)
class Decision:
    """What the Secret should say, and what has to be done."""

    wanted: Passwords | None
    step: Step = NOTHING
    possible: bool = True
    """False: a password is asked for and there is none, so nothing may be begun."""


def decide(view: View, fresh: str) -> Decision:
    """What comes next for the passwords."""
    if not view.spec.auth.enabled:
        return _off(view)
    wanted, notes = _wanted(view, fresh)
    if wanted is None:
        return Decision(None, Step(notes=notes), possible=False)
    # Nodes follow what the Secret says already: a password that is nowhere but in memory could be lost with us.
    stored = view.observed.passwords
    commands = tuple(_follow(view, stored)) if stored is not None and stored == wanted else ()
    if commands:
        notes += (progress("Password", "the nodes are told the password", "Healing"),)
    return Decision(wanted, Step(commands, notes))


def _wanted(view: View, fresh: str) -> tuple[Passwords | None, tuple[Note, ...]]:
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
    if renewed and own and stored.former is None:
        return Passwords(own, stored.current, auth.rotation, 0.0, timestamp(view.now_s)), notes
    if stored.former is not None and _former_may_go(view, stored):
        return replace(stored, former=None), notes
    if stored.former is not None:
        notes += (progress("PasswordRotation", "the former password is accepted for a while", "Running"),)
    return stored, notes


def _former_may_go(view: View, stored: Passwords) -> bool:
    if stored.rotated_s_ago < view.spec.auth.grace_s:
        return False
    return all(_needs_no_former(member) for member in view.members)


def _needs_no_former(member: Member) -> bool:
    """Whether the broker takes the current password, or will read it when it starts."""
    if member.node is not None:
        return member.node.knows_current
    return member.pod.phase != "Running" or bool(member.pod.trouble)


def _follow(view: View, stored: Passwords) -> Iterator[Command]:
    """What nodes have to be told so that they take what the Secret says."""
    for member, node in view.loaded:
        if not node.knows_current:
            former = stored.former if node.accepts != "none" else None
            if former is not None:
                yield _set(member, node, "requirepass-former", former)
            yield _set(member, node, "requirepass", stored.current)
        elif stored.former is None and node.accepts_former:
            yield _set(member, node, "requirepass-former", "")


def _off(view: View) -> Decision:
    stored = view.observed.passwords
    if stored is None:
        return Decision(None)
    commands = tuple(
        _set(member, node, name, "")
        for member, node in view.loaded
        if node.accepts != "none"
        for name in ("requirepass-former", "requirepass")
    )
    notes = (progress("Password", "the password is taken back", "Healing"),) if commands else ()
    return Decision(stored, Step(commands, notes))


def _set(member: Member, node: Node, name: str, value: str) -> Command:
    why = f"{name} follows the Secret"
    return Command(member.name, node.node_id, (*_SET, name, value), why, secret=True)
