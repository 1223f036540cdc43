"""The simulator of ordered queues: whole nodes in virtual time, repeatable from a seed.

    python -m disqued.testing.orderedsim --seed 7
    python -m disqued.testing.orderedsim --seeds 0..199 [--mix crashes] [--seconds 8] [--mutation NAME]

Nodes run the real core; network, disks, clocks, random numbers and clients are simulated, as in `sim`. A run has four
phases: load and faults; healing, after which every queue must have a leader soon; a time in which all jobs must be
delivered and acknowledged; and rest, in which the replicas must be equal and nodes must send nothing for ordered queues
but BEAT. `orderedtruth` checks every entry that a replica applies, `orderedload` every reply, and `orderedcheckers`
the histories at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Final

from disqued.client import ResponseError
from disqued.config import Config, load
from disqued.core.host import disk
from disqued.node import Node
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.exchange import node_of
from disqued.ordered.replica import Replica
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.raftlog.tuning import LogTuning
from disqued.testing import orderedcheckers, seeds
from disqued.testing.cluster import START_MS, Cluster, Hooks, Member
from disqued.testing.faults import Faults
from disqued.testing.history import History
from disqued.testing.local import Reply, no_include
from disqued.testing.network import EndlessError, Network, Sent
from disqued.testing.orderedload import GROUPS, OrderedAdmin, OrderedLoad, OrderedProducer, OrderedWorker, QueueLoad
from disqued.testing.orderedmixes import HARMLESS, MIXES, mix_of
from disqued.testing.orderedmutations import MUTATIONS, Mutation
from disqued.testing.orderedtruth import Truth
from disqued.testing.ordereduses import QUEUE as SHORT
from disqued.testing.ordereduses import ShortClients
from disqued.testing.sim import commit
from disqued.testing.workload import World

DEFAULT_SECONDS: Final = 8
LED_WITHIN_S: Final = 15
"""How long after healing until every queue has a leader."""
DRAINED_WITHIN_S: Final = 150
"""How long after healing until all jobs are acknowledged. Consumers of SINGLE queues that disappear without PART, as
those of a node that restarts at once, are removed after 60 seconds."""
QUIET_WITHIN_S: Final = 100
"""How long until nodes are idle once there are no clients."""
QUIET_S: Final = 5
NODE_TIMEOUT_MS: Final = 2000
MOST_EVENTS: Final = 2_000_000
VIOLATIONS_SHOWN: Final = 6
LATE_COMMAND_MS: Final = 15_000
"""Longer than a node repeats a command that is not answered."""
STEP_MS: Final = 250
_BUSY: Final = frozenset({"RAFT", "RAFTSNAP", "PROPOSE", "PROPOSED", "DELIVER", "CATALOG", "CATALOGASK", "FOUND"})
"""The messages of ordered queues that idle nodes do not send."""
_LOGGED: Final = {
    "replica damaged": "is damaged and out of service",
    "damaged replica began again": "was damaged and begins from nothing",
}
"""What is counted by lines in the logs of nodes."""


@dataclass
class Result:
    """The result of a run."""

    seed: int
    mix: str
    violations: list[str]
    digest: str
    events: int
    real_s: float
    virtual_s: float
    jobs: int = 0
    deliveries: int = 0
    entries: int = 0
    elections: int = 0
    restores: int = 0
    drained_ms: int = 0
    """How long after healing all jobs were acknowledged."""
    rare: Counter[str] = field(default_factory=Counter)
    faults: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


class OrderedSimulation:
    """One run."""

    def __init__(
        self, seed: int, mix: str | None = None, seconds: int = DEFAULT_SECONDS, mutation: Mutation | None = None
    ) -> None:
        self.seed = seed
        self.mix = mix or mix_of(seed)
        self.seconds = seconds
        self._stops_at_violation = mutation is not None
        chance = Random(f"ordered world {seed}")  # noqa: S311 - repeatable chance is the point
        network = Network(START_MS, Random(f"ordered network {seed}"))  # noqa: S311 - repeatable chance is the point
        network.capturing = False
        network.most_events = MOST_EVENTS
        self.history = History()
        network.tap = self.history.digest_bytes
        self.truth = Truth(self._violate, lambda: network.now_ms)
        self._log_tuning = LogTuning(
            segment_bytes=chance.choice((8192, 32_768, 64 << 20)),
            cache_bytes=chance.choice((16_384, 64 << 20)),
            near_bytes=1024,
            far_bytes=8192,
            shared_bytes=32768,
        )
        self.cluster = Cluster(0, meet=False, config=_config, network=network, hooks=Hooks(on_boot=self._boot))
        self.world = World(self.cluster, self.history, chance, chance)
        self.faults = Faults(self.world, MIXES[self.mix], HARMLESS)
        self.faults.settle_disk = self._settle_disk
        self._sync_ms = chance.choice((0, 2, 10, 40))
        self._read_ms = chance.choice((0, 1, 10))
        for _ in range(chance.choice((3, 3, 4, 5))):
            self._add(chance)
        self.load = OrderedLoad(self.world, self.truth, chance)
        self._short = ShortClients(self.load, seed, len(self.cluster.members))
        self._busy: Counter[str] = Counter()
        """Frames of ordered queues, by kind."""
        network.watchers.append(self._count)
        self._workers: list[OrderedWorker] = []
        self._drained_ms = 0

    @property
    def _now_ms(self) -> int:
        return self.cluster.network.now_ms

    @property
    def _seen_enough(self) -> bool:
        """Whether the mutation of this run was detected."""
        return self._stops_at_violation and bool(self.history.violations)

    def _violate(self, text: str) -> None:
        self.history.violate(self._now_ms, text)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _boot(self, node: Node) -> None:
        self.truth.watch(node)
        room(node).hosting.log_tuning = self._log_tuning

    def _settle_disk(self, member: Member) -> None:
        """Restore the disk of a member to its normal state."""
        files = member.host.disk
        files.repair()
        files.delay_ms = {disk.SYNC: self._sync_ms, disk.READ: self._read_ms}
        files.jitter_ms = self._sync_ms

    def _add(self, chance: Random) -> None:
        member = self.cluster.add(chance.getrandbits(40))
        self._settle_disk(member)
        if self.mix in {"clocks", "all"}:
            member.skew_ms = chance.choice((0, 400, -3000))
            member.drift_ppm = chance.choice((0, 500, -500))
            member.jump()

    def _count(self, sent: Sent) -> None:
        if sent.kind in _BUSY:
            self._busy[sent.kind] += 1

    # --- the phases ---------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run all phases and the checks."""
        began_s = time.perf_counter()
        try:
            self._run_phases()
        except EndlessError as error:
            self._violate(str(error))
        except Exception as error:  # noqa: BLE001 - a node that raises has failed the run, and the seed must be reported
            where = traceback.extract_tb(error.__traceback__)[-4:]
            self._violate(f"{error!r} in {' < '.join(f'{one.name}:{one.lineno}' for one in reversed(where))}")
        return self._result(time.perf_counter() - began_s)

    def _run_phases(self) -> None:
        self.cluster.meet()
        self._declare()
        self._start_clients()
        self.faults.start(self.world.chance.choice((500, 1200)))
        self.pass_time(self.seconds)
        self._heal()
        self._drain()
        self._rest()
        self._check_histories()

    def _ask(self, *words: bytes | str | int) -> Reply:
        """The reply to an administrator at the first node."""
        client = self.cluster.members[0].client()
        client.send(*words)
        self.cluster.until(lambda: not client.silent, within_s=30)
        return client.next_reply()

    def _declare(self) -> None:
        """Found the catalog, and make the queues."""
        members = self.cluster.members
        founders = [member.id for member in members[: len(members) // 2 * 2 - 1 or 3]]
        self._expect_ok("CLUSTER", "ORDERED", "INIT", *founders)
        self.cluster.until(lambda: all(room(member.node).has_catalog for member in members))
        self.cluster.run(milliseconds=300)
        some = members[-3:] if len(members) > 3 else members[-1:]
        self.load.queues = [
            QueueLoad("plain"),
            QueueLoad("single", ("SINGLE", "PREFETCH", 1), single=True, prefetch=1),
            QueueLoad("keyed", groups=GROUPS),
            QueueLoad("alone", ("ON", members[0].id)),
            QueueLoad("some", ("ON", *[member.id for member in some])),
        ]
        for queue in [*self.load.queues, QueueLoad(SHORT)]:
            self._expect_ok("QNEW", queue.name, "ORDERED", *queue.declared)

    def _expect_ok(self, *words: bytes | str | int) -> None:
        reply = self._ask(*words)
        if isinstance(reply, ResponseError) or reply != b"OK":
            raise AssertionError(f"{words[:3]} is answered with {reply!r}")

    def _start_clients(self) -> None:
        chance = self.world.chance
        queues = self.load.queues
        count = len(self.cluster.members)
        pause_ms = chance.choice((60, 150, 300))
        for queue in queues:
            for home in chance.sample(range(1, count + 1), chance.choice((1, 1, 2))):
                OrderedProducer(self.load, queue, home, pause_ms).start()
        for home in range(1, count + 1):
            for _ in range(chance.choice((1, 2, 3))):
                chosen = chance.sample(queues, chance.choice((1, 1, 2)))
                self._workers.append(OrderedWorker(self.load, chosen, home))
        for worker in self._workers:
            worker.start()
        OrderedAdmin(self.load, chance.randint(1, count)).start()
        self._short.start()

    def pass_time(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let virtual time pass; with `until`, stop when that holds, and return whether it does."""
        network = self.cluster.network
        end_ms = network.now_ms + int(seconds * 1000)
        while network.now_ms < end_ms and not self._seen_enough:
            if until is not None and until():
                return True
            pause_ms = min(network.now_ms + STEP_MS, end_ms)
            while network.now_ms < pause_ms:
                self.cluster.step(pause_ms)
        return until is None or self._seen_enough or until()

    def _heal(self) -> None:
        """Stop faults and producers, and restart the nodes whose logs have failed. Then queues must have leaders."""
        self.world.producing = False
        self.history.note(self._now_ms, "healed")
        self.history.healed_ms = self._now_ms
        self.faults.stop()
        self.faults.repair()
        self.pass_time(0.5)
        for member in self.cluster.members:
            if room(member.node).hosting.why_stopped:
                self.history.rare["log failed"] += 1
                member.restart()
        self.pass_time(0.5)
        self.faults.repair()
        if not self.pass_time(LED_WITHIN_S, self._are_led):
            missing = [str(self.truth.group(group)) for group in self._groups() if self._leader(group) is None]
            self._violate(f"no leader {LED_WITHIN_S} s after healing: {', '.join(missing)}")

    def _groups(self) -> list[int]:
        """The catalog, and the groups of all queues in it that have not lost everything."""
        catalogs = [room(member.node).catalog for member in self.cluster.members]
        newest = max(catalogs, key=lambda catalog: int(catalog.version))
        return [0, *(int(queue.group) for queue in newest.by_group.values() if not self._is_lost(queue))]

    def _is_lost(self, queue: OrderedQueue) -> bool:
        """Whether a queue had one replica, and the node of that lost its log, or can no longer read it."""
        if len(queue.replicas) > 1:
            return False
        only = queue.replicas[0]
        there = next(room(member.node) for member in self.cluster.members if member.id == node_of(only))
        rotten = self.mix == "rot" and int(queue.group) not in there.exchange.replicas
        return rotten or there.hosting.identity != only

    def _replicas(self, group: int) -> list[Replica]:
        found = [room(member.node).exchange.replicas.get(group) for member in self.cluster.members]
        return [replica for replica in found if isinstance(replica, Replica)]

    def _leader(self, group: int) -> Replica | None:
        return next((replica for replica in self._replicas(group) if replica.raft.is_confirmed), None)

    def _are_led(self) -> bool:
        return all(self._leader(group) is not None for group in self._groups())

    # --- the end ------------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Take and acknowledge all jobs."""
        for worker in self._workers:
            worker.retire()
        self.world.always_acks = True
        admin = OrderedAdmin(self.load, 1)
        self._workers = []
        for queue in self.load.queues:
            admin.free(queue)
            # A PAUSE that was not answered may take effect later than the first of these.
            self.world.later(LATE_COMMAND_MS, partial(admin.free, queue))
        for member in self.cluster.members:
            self._workers += [
                OrderedWorker(self.load, [queue], member.number, careful=True) for queue in self.load.queues
            ]
        for worker in self._workers:
            worker.start()
        if self.pass_time(DRAINED_WITHIN_S, self._is_drained):
            self._drained_ms = self._now_ms - self.history.healed_ms
            return
        left = [f"{queue.name} {self._count_of(queue)}" for queue in self.load.queues if self._count_of(queue)]
        self._violate(f"jobs left {DRAINED_WITHIN_S} s after healing: {left}, unknown adds {self.load.unfinished}")

    def _count_of(self, queue: QueueLoad) -> int:
        group = self.truth.of_queue(queue.name.encode())
        return 0 if group is None or group.machine is None else int(group.machine.count)

    def _is_drained(self) -> bool:
        return self.load.unfinished == 0 and not any(self._count_of(queue) for queue in self.load.queues)

    def _rest(self) -> None:
        """Nothing is left to do: replicas become equal, and nodes idle."""
        for worker in self._workers:
            worker.retire()
        if not self.pass_time(QUIET_WITHIN_S, self._are_equal):
            for group in self._groups():
                applied = [int(replica.applied) for replica in self._replicas(group)]
                if len(set(applied)) > 1:
                    self._violate(f"replicas of {self.truth.group(group)} stay behind: {applied}")
                elif not self._is_complete(group):
                    self._violate(f"{self.truth.group(group)} has lost a replica, and {len(applied)} are left")
        end_ms = self._now_ms + QUIET_WITHIN_S * 1000
        while not self._seen_enough:
            before = Counter(self._busy)
            self.pass_time(QUIET_S)
            if self._busy == before:
                return
            if self._now_ms > end_ms:
                self._violate(f"nodes are not idle: {dict(self._busy - before)} frames in {QUIET_S} s")
                return

    def _are_equal(self) -> bool:
        """Whether all replicas have applied the same; their digests were compared by then."""
        for group in self._groups():
            replicas = self._replicas(group)
            last = {int(replica.raft.last) for replica in replicas}
            if len(last) > 1 or {int(replica.applied) for replica in replicas} != last or not self._is_complete(group):
                return False
        return True

    def _is_complete(self, group: int) -> bool:
        """Whether the replicas that the catalog names are in service and vote."""
        leader = self._leader(group)
        if leader is None:
            return False
        catalog = room(self.cluster.members[0].node).catalog
        wanted = catalog.by_group[group].replicas if group in catalog.by_group else catalog.members
        voters = [replica.raft.replica for replica in self._replicas(group)]
        return sorted(wanted) == sorted(voters) == list(leader.raft.members.voters) and not leader.raft.members.learners

    def _check_histories(self) -> None:
        for queue in self.load.queues if not self._seen_enough else ():
            group = self.truth.of_queue(queue.name.encode())
            seen = queue.seen
            seen.drained = self._drained_ms > 0
            if group is not None:
                for index in group.ended:
                    if group.is_at_most_once(index):
                        seen.removed[_number(group.bodies[index])] = 0
            for delivery in seen.delivered:
                seen.causes[delivery.number].append(0)  # the truth knows the causes exactly
            assigned = queue.assigned(self.truth)
            found = [
                *orderedcheckers.check_total(seen),
                *orderedcheckers.check_keys(seen),
                *orderedcheckers.check_real_time(seen),
                *orderedcheckers.check_strict_order(seen),
                *orderedcheckers.check_claims(seen),
                *orderedcheckers.check_acknowledged(seen),
                *orderedcheckers.check_consumers(assigned),
                *orderedcheckers.check_strict_order(assigned),
            ]
            for text in found:
                self._violate(f"{queue.name}: {text}")
        searched = self._short.check()
        self.history.rare["history searched" if searched else "history not searched"] += 1

    def _result(self, real_s: float) -> Result:
        history = self.history
        network = self.cluster.network
        lines = [text for member in self.cluster.members for _, text in member.host.log_lines]
        for name, text in _LOGGED.items():
            history.rare[name] += sum(text in line for line in lines)
        return Result(
            seed=self.seed,
            mix=self.mix,
            violations=history.violations,
            digest=history.digest,
            events=network.events,
            real_s=real_s,
            virtual_s=(network.now_ms - START_MS) / 1000,
            jobs=sum(queue.last_number for queue in self.load.queues),
            deliveries=sum(len(queue.seen.delivered) for queue in self.load.queues),
            entries=self.truth.entries,
            elections=self.truth.elections,
            restores=self.truth.restores,
            drained_ms=self._drained_ms,
            rare=history.rare,
            faults=history.faults,
            trace=[f"{at_ms - START_MS:>8} {text}" for at_ms, text in history.trace],
        )


def _number(body: bytes) -> int:
    return int(body.rpartition(b" ")[2])


def _config() -> Config:
    return load(f"cluster-node-timeout {NODE_TIMEOUT_MS}\n", (), no_include)


def room(node: Node) -> OrderedRoom:
    """The ordered room of a node."""
    return ordered_of(node.state)


def simulate(seed: int, mix: str | None = None, seconds: int = DEFAULT_SECONDS, mutation: str | None = None) -> Result:
    """Simulate one run, with a mutation of the nodes if one is named."""
    if mutation is None:
        return OrderedSimulation(seed, mix, seconds).run()
    broken = MUTATIONS[mutation]
    with broken.applied():
        return OrderedSimulation(seed, mix or broken.mix, seconds, broken).run()


def report(result: Result, arguments: argparse.Namespace) -> str:
    """One line for a run without violations, all details for one with violations."""
    line = (
        f"seed {result.seed} ({result.mix}): {'ok' if not result.violations else 'FAILED'}, {result.jobs} jobs, "
        f"{result.deliveries} deliveries, {result.entries} entries, {result.elections} elections, {result.restores} "
        f"snapshots, {result.events} events, {result.virtual_s:.0f} s in {result.real_s:.2f} s, drained "
        f"{result.drained_ms} ms after healing, digest {result.digest[:12]}"
    )
    if not result.violations:
        return line
    given = {"--mix": arguments.mix, "--mutation": arguments.mutation, "--seconds": arguments.seconds}
    options = " ".join([f"{name} '{value}'" for name, value in given.items() if value is not None])
    details = [
        *(result.trace[-arguments.trace :] if arguments.trace else []),
        line,
        *result.violations[:VIOLATIONS_SHOWN],
        f"faults: {result.faults}",
        f"commit {commit()}; to repeat: python -m disqued.testing.orderedsim --seed {result.seed} {options}",
    ]
    return "\n".join(details)


def main() -> int:
    """Run the requested seeds; returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m disqued.testing.orderedsim", description="Simulate clusters with ordered queues."
    )
    parser.add_argument("--seed", "--seeds", dest="seeds", type=seeds.parse, default="0..9", help="a number, or A..B")
    parser.add_argument("--processes", type=int, default=seeds.processors(), help="how many run at once")
    parser.add_argument("--mix", choices=sorted(MIXES), help="the mix of faults; default: chosen by the seed")
    parser.add_argument("--seconds", type=int, default=DEFAULT_SECONDS, help="how long faults are injected")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="break the nodes on purpose")
    parser.add_argument("--trace", type=int, default=0, help="how many events of a failed run are shown")
    arguments = parser.parse_args()
    began_s = time.perf_counter()
    failed = 0
    rare: Counter[str] = Counter()
    digest = blake2b(digest_size=6)
    run = partial(simulate, mix=arguments.mix, seconds=arguments.seconds, mutation=arguments.mutation)
    for result in seeds.results(arguments.seeds, run, arguments.processes):
        rare.update(result.rare)
        failed += bool(result.violations)
        digest.update(result.digest.encode())
        print(report(result, arguments), flush=True)  # noqa: T201 - the report is the output
    rate = len(arguments.seeds) / (time.perf_counter() - began_s)
    print("reached: " + ", ".join(f"{name} {count}" for name, count in sorted(rare.items())))  # noqa: T201 - the report is the output
    print(f"{len(arguments.seeds)} runs at {rate:.2f}/s, {failed} failed, digest of all {digest.hexdigest()}")  # noqa: T201 - the report is the output
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
