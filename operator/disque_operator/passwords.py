"""Passwords: the password of the cluster, and its rotation without rejecting any client.

The brokers' Secret says which passwords brokers accept. Brokers read it when they start, and the operator applies
changes with CONFIG SET. Brokers accept a new password before clients can read it in their own Secret, which has only
the current password, and the previous one until clients have read it.

| observed | decision |
|---|---|
| there is no password yet | generate one, or use that of the user's Secret |
| the brokers' Secret was deleted, the clients' Secret exists | restore it with that password, which brokers accept |
| the clients' Secret was deleted, or never existed | create it (`children`) |
| `auth.rotation` or the password in the user's Secret changed | store the new one as next password, not for clients |
| all brokers accept the next password | it becomes the current one, and the current one the previous one |
| a broker accepts only one of two passwords | set that one as `requirepass`, then the other as `requirepass-former` |
| a broker accepts neither of two passwords | set `requirepass-former`, then the current one as `requirepass` |
| `auth.graceSeconds` are over, all brokers accept the current one | remove the previous one from the Secret |
| the Secret has one password and the grace period is over | `requirepass` gets it, `requirepass-former` becomes empty |
| another rotation while there are two passwords | wait, because brokers accept at most two |
| authentication is disabled | set `requirepass` to empty; the Secret keeps the password, but not in its file |
| the user's Secret does not exist | change nothing; do not create a cluster without a password |

A broker tells the hashes of the passwords that it accepts, not which of them is `requirepass`. The decisions depend on
that set only, and their commands reject no password of the Secret in between, whichever is `requirepass`. If only some
of them are executed, the next round continues from the set at that time. Both directives may then keep the same
password, which is harmless. Without `requirepass`, a broker ignores `requirepass-former`, so it need not be removed.

While a pod that may be running does not answer, both passwords stay in the Secret: it may know only one of them. A pod
that starts may read a Secret that is a minute old, so the password is kept even when authentication is disabled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from disque_operator.actions import Command
from disque_operator.apivalues import timestamp
from disque_operator.decisions import NOTHING, Decision, Note, problem, progress
from disque_operator.members import ClusterView, Member
from disque_operator.observed import Broker, Passwords, password_hash

_Change: TypeAlias = tuple[str, str]
"""A directive and its new value."""


@dataclass(frozen=True)
class PasswordDecision:
    """The desired content of the Secret, and what to do."""

    wanted: Passwords | None
    decision: Decision = NOTHING
    possible: bool = True
    """False if a password is required and there is none, so that no cluster must be created."""


def decide(view: ClusterView, fresh: str) -> PasswordDecision:
    """Decide the next step for passwords. `fresh` is a new random password."""
    if not view.spec.auth.enabled:
        return _off(view)
    wanted, notes = _wanted(view, fresh)
    if wanted is None:
        return PasswordDecision(None, Decision(notes=notes), possible=False)
    # Send only passwords that the Secret has: one that is only in memory could be lost with the operator
    stored = view.observed.passwords
    commands = tuple(_follow(view, stored)) if stored is not None and stored == wanted else ()
    if commands:
        notes += (progress("Password", "setting the password on brokers", "Applying"),)
    return PasswordDecision(wanted, Decision(commands, notes))


def _wanted(view: ClusterView, fresh: str) -> tuple[Passwords | None, tuple[Note, ...]]:
    """Return the desired content of the Secret, and notes; None while there is no password."""
    auth, stored = view.spec.auth, view.observed.passwords
    own = view.observed.own_password if auth.secret_name else fresh
    notes: tuple[Note, ...] = ()
    if not own:
        notes = (
            problem(
                "SecretMissing",
                f"the Secret {auth.secret_name} of spec.auth.secretName does not exist, or has no key password: create "
                f"it, for example with kubectl create secret generic {auth.secret_name} "
                f"--from-literal=password=… --namespace {view.spec.namespace}",
            ),
        )
    if stored is None and view.observed.client_passwords is not None:
        return view.observed.client_passwords, notes
    if stored is None:
        return (Passwords(own, None, auth.rotation, 0.0, timestamp(view.now_s)) if own else None), notes
    renewed = own and (own != stored.current if auth.secret_name else auth.rotation != stored.rotation)
    if stored.following is not None:
        wanted = _promoted(view, stored, own if auth.secret_name else None)
        text = "brokers accept the new password in addition, before clients get it"
        return wanted, (*notes, progress("PasswordRotation", text, "Running"))
    if renewed and own and stored.former is None:
        return replace(stored, following=own), notes
    if stored.former is not None and _former_is_removable(view, stored):
        return replace(stored, former=None), notes
    if stored.former is not None:
        notes += (progress("PasswordRotation", "the previous password remains valid for auth.graceSeconds", "Running"),)
    return stored, notes


def _promoted(view: ClusterView, stored: Passwords, own: str | None) -> Passwords:
    """Make the next password the current one when all brokers accept it. Until then the user may change it again."""
    following = own or stored.following
    if following == stored.current:
        return replace(stored, following=None)
    if following == stored.following and all(_accepts(member, following or "") for member in view.members):
        return Passwords(following or "", stored.current, view.spec.auth.rotation, 0.0, timestamp(view.now_s))
    return replace(stored, following=following)


def _former_is_removable(view: ClusterView, stored: Passwords) -> bool:
    if stored.rotated_s_ago < view.spec.auth.grace_s:
        return False
    return all(_accepts(member, stored.current) for member in view.members)


def _accepts(member: Member, password: str) -> bool:
    """Return whether the broker accepts a password, or will read it when it starts."""
    if member.broker is not None:
        return password_hash(password) in member.broker.password_hashes
    return member.pod.phase != "Running" or bool(member.pod.trouble)


def _follow(view: ClusterView, stored: Passwords) -> Iterator[Command]:
    """Yield commands that make brokers accept the passwords of the Secret."""
    other = stored.following or stored.former
    for member, broker in view.loaded:
        if other is None and stored.rotated_s_ago < view.spec.auth.grace_s and _accepts(member, stored.current):
            continue  # after a restored Secret, clients may still use a previous password that only brokers know
        changes = _alone(broker, stored.current) if other is None else _both(broker, stored.current, other)
        yield from (_set(member, broker, name, value) for name, value in changes)


def _alone(broker: Broker, password: str) -> tuple[_Change, ...]:
    """Return the changes after which a broker accepts only this password."""
    if broker.password_hashes == {password_hash(password)}:
        return ()
    if password_hash(password) not in broker.password_hashes:
        return (("requirepass", password),)  # which may end the login of the operator: the rest follows later
    return ("requirepass", password), ("requirepass-former", "")


def _both(broker: Broker, current: str, other: str) -> tuple[_Change, ...]:
    """Return the changes after which a broker accepts these two passwords."""
    accepted = [one for one in (current, other) if password_hash(one) in broker.password_hashes]
    if len(accepted) == 2:
        return ()
    if not accepted:
        return ("requirepass-former", other), ("requirepass", current)
    missing = other if accepted == [current] else current
    return ("requirepass", accepted[0]), ("requirepass-former", missing)


def _off(view: ClusterView) -> PasswordDecision:
    stored = view.observed.passwords or view.observed.client_passwords
    if stored is None:
        return PasswordDecision(None)
    commands = tuple(
        _set(member, broker, "requirepass", "") for member, broker in view.loaded if broker.password_hashes
    )
    notes = (progress("Password", "removing the password from brokers", "Applying"),) if commands else ()
    return PasswordDecision(stored, Decision(commands, notes))


def _set(member: Member, broker: Broker, name: str, value: str) -> Command:
    why = "the accepted passwords differ from the Secret"
    return Command(member.name, broker.node_id, ("CONFIG", "SET", name, value), why, secret=True)
