"""The simulator of Raft groups: one group under faults in virtual time, repeatable from a seed.

    python -m disqued.testing.raftsim [--seed 0..999] [--mutation NAME] [--processes N]

A run has two phases. First a few seconds with load and faults: loss, delay, duplication and reordering of messages,
partitions of one or both directions, crashes that lose unsynced writes, slow and stuck disks, forced elections,
transfers, changes of the members, snapshots, and nodes that return with an empty disk under a new identity. Then
everything is repaired, and within a bounded time the group must have a leader, all members must have applied
everything, and the group must become idle: no message and no deadline. `RaftChecks` checks every event.

The exit status is 1 if a run failed, and with a mutation if no run did.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from disqued.raft.members import Members
from disqued.raft.message import Message
from disqued.testing import seeds
from disqued.testing.raftchecks import Violation
from disqued.testing.raftcluster import GROUP, Member, RaftCluster, short_times
from disqued.testing.raftmutations import MUTATIONS, RaftMutation

FAULTS_MS: Final = 4000
HEALED_MS: Final = 8000
"""How long after the repair until all members must have applied everything."""
NAMES: Final = "abcdef"
MOST_MEMBERS: Final = 5
MIXES: Final[dict[str, str]] = {
    "crashes": "propose 8, read 3, crash 5, crash all 1, rivals 2, slow disk 2, compact 1",
    "network": "propose 8, read 4, partition 4, one way 3, heal 4, loss 3, campaign 1, rivals 2",
    "disks": "propose 9, slow disk 4, stuck disk 3, crash 3, partition 2, heal 2, rivals 6, loss 1",
    "members": "propose 4, read 1, members 10, partition 2, heal 4, crash 2, transfer 1, rivals 2, overthrow 5",
    "overthrow": "propose 6, read 6, overthrow 8, heal 6, crash 1, slow disk 1",
    "late disks": "propose 8, overthrow 8, heal 6, slow disk 3, stuck disk 4, loss 1",
    "empty": "propose 8, read 2, members 6, empty 4, partition 2, heal 2, crash 1, rivals 2",
    "snapshots": "propose 10, compact 5, partition 3, heal 4, crash 3, slow disk 1, members 2",
    "transfers": "propose 8, read 4, transfer 6, loss 2, crash 1, campaign 3, slow disk 2",
    "elections": "propose 5, read 4, rivals 6, crash 4, crash all 1, partition 4, heal 3, slow disk 1",
    "all": "propose 12, read 4, crash 3, crash all 1, campaign 2, rivals 2, slow disk 2, stuck disk 1, partition 2, "
    "one way 1, heal 3, loss 2, members 4, empty 1, transfer 2, compact 3",
}
"""The faults of a run, and how often each comes, relative to the others."""


@dataclass
class Result:
    """The result of a run."""

    seed: int
    mix: str
    violation: str
    events: int
    elections: int
    committed: int
    actions: Counter[str] = field(default_factory=Counter)


class RaftRun(RaftCluster):
    """One run."""

    def __init__(self, seed: int, mutation: RaftMutation | None = None) -> None:
        chance = Random(f"raft {seed}")  # noqa: S311 - repeatable chance is the point
        self.chance = chance
        mixes = mutation.mixes if mutation is not None and mutation.mixes else tuple(MIXES)
        self.mix = mixes[seed % len(mixes)]
        self._same_identity = mutation is not None and mutation.same_identity
        self.actions: Counter[str] = Counter()
        self._loss = chance.choice((0.0, 0.0, 0.02, 0.1))
        self._twice = chance.choice((0.0, 0.05))
        self._delay_ms = chance.choice((2, 5, 40))
        self._sync_ms = chance.choice((1, 5, 30))
        self._disks: dict[str, int] = {}
        tuning = short_times()
        tuning.message_bytes = chance.choice((1, 100, 4000))
        tuning.window_messages = chance.choice((1, 4, 16))
        tuning.memory_bytes = chance.choice((200, 2000, 100_000))
        tuning.fetch_entries = chance.choice((1, 8))
        tuning.gather_entries = chance.choice((0, 4, 64))
        super().__init__("abc" if chance.random() < 0.7 else "abcde", tuning, seed)
        self.through_codec = seed % 4 == 0
        self._proposed = 0
        self._faulty = True
        for member in self.members.values():
            member.group.eager_commit = chance.random() < 0.5
        weights = [words.rpartition(" ") for words in MIXES[self.mix].split(", ")]
        self._kinds = [kind for kind, _, _ in weights]
        self._weights = [int(weight) for _, _, weight in weights]

    # --- what chance decides ------------------------------------------------------------------------------------------

    def delays(self, message: Message) -> tuple[int, ...]:
        """Lose, delay, duplicate and reorder messages."""
        del message
        if not self._faulty:
            return (1,)
        chance = self.chance
        if chance.random() < self._loss:
            return ()
        delay_ms = 1 + int(chance.random() * self._delay_ms)
        if chance.random() < self._twice:
            return (delay_ms, 1 + int(chance.random() * 8 * self._delay_ms))
        return (delay_ms,)

    def sync_ms(self, member: Member) -> int:
        """Let disks be slow."""
        if not self._faulty:
            return 1
        return 1 + int(self.chance.random() * self._disks.get(member.name, self._sync_ms))

    def snapshot_ms(self) -> int:
        """Let snapshots take some time."""
        return 1 + int(self.chance.random() * 100)

    def elected(self, member: Member) -> None:
        """Let some leaders change the members as soon as they are elected, or lose the leadership soon after."""
        if not self._faulty:
            return
        if "members" in self._kinds and self.chance.random() < 0.3:
            self._next_members(member)
        if "overthrow" in self._kinds and self.chance.random() < 0.4:
            self.at(self.now_ms + self.chance.choice((1, 2, 4, 8)), self._overthrow_again)

    def _overthrow_again(self) -> None:
        if self._faulty:
            self.act_overthrow()

    # --- phases -------------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Run both phases. Raises Violation."""
        end_ms = self.now_ms + FAULTS_MS
        self._act(end_ms)
        self.run_until(lambda: self.now_ms >= end_ms, FAULTS_MS + 1)
        self._repair()
        if not self.run_until(self._has_converged, HEALED_MS):
            raise Violation(f"liveness: after the repair, the members do not agree: {self.describe()}")
        self.propose(b"last")
        if not self.run_until(self._has_converged, 2000):
            raise Violation(f"liveness: a proposal is not applied everywhere: {self.describe()}")
        self.run(2000)
        self.recording = True
        self.run(500)
        busy = [member.name for member in self._members() if member.group.deadline_ms()]
        replicas = [member.replica for member in self._members()]
        sent = [message for message in self.sent if message.sender in replicas and message.to in replicas]
        if busy or sent:
            raise Violation(f"the group is not idle: deadlines of {busy}, {sent[:3]}")

    def _repair(self) -> None:
        self._faulty = False
        self.heal()
        for name, member in self.members.items():
            if member.disk_held:
                self.release_disk(name)
            if not member.up:
                self.start(name)

    def _members(self) -> list[Member]:
        """The living members by the newest leader's log."""
        leader = self.leader
        replicas = () if leader is None else leader.group.members.all
        return [member for member in self.members.values() if member.replica in replicas]

    def _has_converged(self) -> bool:
        leader = self.leader
        if leader is None or not leader.group.is_confirmed or leader.group.committed != leader.group.last:
            return False
        return all(
            member.up and member.applied == leader.applied and member.digest == leader.digest
            for member in self._members()
        )

    def describe(self) -> str:
        """Return the state of all members, for reports."""
        return "; ".join(
            f"{member.name} role {member.group.role} term {member.group.term} applied {member.applied} "
            f"of {member.group.last} leader {member.group.leader!r} members {member.group.members}"
            for member in self.members.values()
        )

    # --- actions ------------------------------------------------------------------------------------------------------

    def _act(self, end_ms: int) -> None:
        if self.now_ms >= end_ms:
            return
        self.at(self.now_ms + self.chance.choice((1, 10, 40, 90, 200)), partial(self._act, end_ms))
        kind = self.chance.choices(self._kinds, self._weights)[0]
        if _ACTIONS[kind](self):
            self.actions[kind] += 1

    def _pick(self, condition: Callable[[Member], bool]) -> Member | None:
        found = [member for member in self.members.values() if condition(member)]
        return self.chance.choice(found) if found else None

    def act_propose(self) -> bool:
        """Propose a few commands at one that takes itself for the leader."""
        member = self._pick(lambda member: member.is_leader)
        if member is None:
            return False
        for _ in range(self.chance.choice((1, 1, 2, 5))):
            self._proposed += 1
            member.group.propose(b"command %d" % self._proposed, self.now_ms)
        self.work(member)
        return True

    def act_read(self) -> bool:
        """Read at one that takes itself for the leader."""
        member = self._pick(lambda member: member.is_leader)
        return member is not None and bool(self.read(member.name))

    def act_campaign(self) -> bool:
        """Let a replica campaign, whether it has a leader or not."""
        member = self._pick(lambda member: member.up)
        if member is None:
            return False
        member.group.campaign(self.now_ms)
        self.work(member)
        return True

    def act_rivals(self) -> bool:
        """Let several replicas campaign at once, and the others believe that there is no leader."""
        living = [member for member in self.members.values() if member.up]
        for member in living:
            member.liveness.deny(member.group.leader, GROUP, member.group.term)
        for member in living:
            if self.chance.random() < 0.5:
                member.group.campaign(self.now_ms)
            else:
                member.group.tick(self.now_ms)
            self.work(member)
        return True

    def act_overthrow(self) -> bool:
        """Separate the leader from the others, and let these elect another one at once."""
        leader = self.leader
        if leader is None:
            return False
        self.heal()
        self.partition(leader.name)
        return self.act_rivals()

    def act_crash(self) -> bool:
        """Crash a node; it starts again later."""
        member = self._pick(lambda member: member.up)
        if member is None:
            return False
        self._crash(member)
        return True

    def act_crash_all(self) -> bool:
        """Crash all nodes."""
        for member in self.members.values():
            if member.up:
                self._crash(member)
        return True

    def _crash(self, member: Member) -> None:
        keep = self.chance.randrange(len(member.disk.pending) + 1) if self.chance.random() < 0.5 else 0
        self.crash(member.name, keep)
        self.at(self.now_ms + self.chance.choice((5, 5, 30, 200)), partial(self._restart, member))

    def _restart(self, member: Member) -> None:
        if not member.up:
            self.start(member.name)

    def act_partition(self) -> bool:
        """Separate some nodes from the others."""
        names = [name for name in self.members if self.chance.random() < 0.4]
        self.partition(*names)
        return bool(names)

    def act_one_way(self) -> bool:
        """Block one direction between two nodes."""
        one, other = self.chance.sample(list(self.members), 2)
        self.blocked[one, other] = True
        return True

    def act_heal(self) -> bool:
        """Connect all nodes."""
        self.heal()
        return True

    def act_loss(self) -> bool:
        """Change how many messages are lost and how long they take."""
        self._loss = self.chance.choice((0.0, 0.05, 0.3))
        self._delay_ms = self.chance.choice((2, 5, 40, 150))
        return True

    def act_slow_disk(self) -> bool:
        """Make the syncs of a node slow, or fast again."""
        member = self.chance.choice(list(self.members.values()))
        self._disks[member.name] = self.chance.choice((1, 20, 120, 300))
        return True

    def act_stuck_disk(self) -> bool:
        """Let no sync of a node finish for a while."""
        member = self.chance.choice(list(self.members.values()))
        if member.disk_held:
            return False
        self.hold_disk(member.name)
        self.at(self.now_ms + self.chance.choice((100, 500)), partial(self.release_disk, member.name))
        return True

    def act_compact(self) -> bool:
        """Write a snapshot."""
        member = self._pick(lambda member: member.up)
        if member is None:
            return False
        self.compact(member.name)
        return True

    def act_transfer(self) -> bool:
        """Transfer the leadership."""
        leader = self._pick(lambda member: member.is_leader)
        if leader is None:
            return False
        return self.transfer(leader.name, self.chance.choice(list(self.members))) == ""

    def act_empty(self) -> bool:
        """Let a node lose its disk, if the group has no lost replica among its members."""
        leader = self.leader
        if leader is None or not leader.group.is_confirmed or leader.group.committed != leader.group.last:
            return False
        members = leader.group.members
        living = [member.replica for member in self.members.values()]
        if len(members.voters) < 3 or any(replica not in living for replica in members.all):
            return False
        member = self._pick(lambda member: member.up)
        if member is None:
            return False
        self.crash(member.name)
        self.empty(member.name, same_identity=self._same_identity)
        self.start(member.name)
        return True

    def act_members(self) -> bool:
        """Take the next step to other members: remove a lost replica, promote, add or remove one."""
        leader = self._pick(lambda member: member.is_leader)
        return leader is not None and self._next_members(leader)

    def _next_members(self, leader: Member) -> bool:
        members = leader.group.members
        living = [member.replica for member in self.members.values()]
        lost = [replica for replica in members.all if replica not in living]
        if lost:
            return self.change(leader.name, members.without(lost[0])) == ""
        if members.learners and self.chance.random() < 0.7:
            return self.change(leader.name, members.with_voter(self.chance.choice(members.learners))) == ""
        if len(members.all) < MOST_MEMBERS and self.chance.random() < 0.7:
            return self._add_learner(leader, members)
        if len(members.voters) > 3 and self.chance.random() < 0.2:
            fewer = Members(tuple(self.chance.sample(members.voters, len(members.voters) // 2)), members.learners)
            return self.change(leader.name, fewer) == ""  # refused: more than one voter changes
        if len(members.voters) > 2:
            return self.change(leader.name, members.without(self.chance.choice(members.all))) == ""
        return False

    def _add_learner(self, leader: Member, members: Members) -> bool:
        new = self._pick(lambda member: member.replica not in members.all)
        if new is None and len(self.members) < len(NAMES):
            new = self.add(NAMES[len(self.members)])
        return new is not None and self.change(leader.name, members.with_learner(new.replica)) == ""


_ACTIONS: Final[dict[str, Callable[[RaftRun], bool]]] = {
    "propose": RaftRun.act_propose,
    "read": RaftRun.act_read,
    "campaign": RaftRun.act_campaign,
    "rivals": RaftRun.act_rivals,
    "overthrow": RaftRun.act_overthrow,
    "crash": RaftRun.act_crash,
    "crash all": RaftRun.act_crash_all,
    "partition": RaftRun.act_partition,
    "one way": RaftRun.act_one_way,
    "heal": RaftRun.act_heal,
    "loss": RaftRun.act_loss,
    "slow disk": RaftRun.act_slow_disk,
    "stuck disk": RaftRun.act_stuck_disk,
    "compact": RaftRun.act_compact,
    "transfer": RaftRun.act_transfer,
    "empty": RaftRun.act_empty,
    "members": RaftRun.act_members,
}


def run_seed(seed: int, mutation: str = "") -> Result:
    """Run one seed, with a mutation if one is named."""
    broken = MUTATIONS[mutation] if mutation else None
    with broken.applied() if broken is not None else contextlib.nullcontext():
        run = RaftRun(seed, broken)
        violation = ""
        try:
            run.play()
        except AssertionError as error:
            violation = f"{type(error).__name__}: {error}"
        checks = run.checks
        return Result(seed, run.mix, violation, run.events, checks.elections, checks.committed, run.actions)


def main(arguments: list[str] | None = None) -> int:
    """Run the seeds and report. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m disqued.testing.raftsim", description="Simulate Raft groups.")
    parser.add_argument("--seed", type=seeds.parse, default=range(200), help="7 or 0..199")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), default="", help="break the core on purpose")
    parser.add_argument("--processes", type=int, default=seeds.processors())
    options = parser.parse_args(arguments)
    began_s = time.perf_counter()
    failed = events = elections = committed = 0
    actions: Counter[str] = Counter()
    for result in seeds.results(options.seed, partial(run_seed, mutation=options.mutation), options.processes):
        events += result.events
        elections += result.elections
        committed += result.committed
        actions += result.actions
        if result.violation:
            failed += 1
            print(f"seed {result.seed} ({result.mix}): {result.violation}")  # noqa: T201 - the report
            if options.mutation:
                break
    took_s = time.perf_counter() - began_s
    count = len(options.seed)
    print(  # noqa: T201 - the report
        f"{count} seeds in {took_s:.1f} s ({count / took_s:.0f}/s): {failed} failed, {events} events, "
        f"{elections} elections, {committed} entries committed; {dict(sorted(actions.items()))}"
    )
    return int(failed == 0) if options.mutation else int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
