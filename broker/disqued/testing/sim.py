"""The simulator: a whole cluster in one process, in virtual time, repeatable from a seed.

    python -m disqued.testing.sim [--count 50]
    python -m disqued.testing.sim --seed 7
    python -m disqued.testing.sim --seeds 0..199 [--mix crashes] [--seconds 20] [--mutation NAME]

Without seeds, each day has new ones. All processors share the runs, and the report is in the order of the seeds.

Nodes run the real core; network, disks, clocks, random numbers and clients are simulated. A run has three phases: load
and faults, healing, and a time in which all jobs must be delivered, acknowledged and deleted. Then the checkers run.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Final

from disqued.config import Config, load
from disqued.core.host import disk
from disqued.testing import checkers, logcheckers, priorities, secretfaults, seeds
from disqued.testing.account import JobAccount
from disqued.testing.claimload import ClaimClients, has_claims
from disqued.testing.cluster import START_MS, Cluster, Hooks, Member
from disqued.testing.copyload import CopyClients, has_copies
from disqued.testing.failingload import FailingClients, has_failures
from disqued.testing.faults import Faults, bring_back, take_down
from disqued.testing.history import History
from disqued.testing.local import no_include
from disqued.testing.mixes import HARMLESS, MIXES, mix_of
from disqued.testing.mutations import MUTATIONS, Mutation
from disqued.testing.network import EndlessError, Network
from disqued.testing.patternload import PatternClients
from disqued.testing.purgeload import PurgeClients, has_purges
from disqued.testing.rare import Rarities
from disqued.testing.rateload import RateClients, has_rates
from disqued.testing.repairload import RepairRounds, has_repairs
from disqued.testing.resultload import ResultClients
from disqued.testing.scheduleload import ScheduleClients, has_schedules
from disqued.testing.settingsload import SettingsClient, SettingsWatch, has_settings
from disqued.testing.taskload import TaskClients, has_tasks
from disqued.testing.transitioncheck import TransitionCheck
from disqued.testing.workload import QUEUES, Observer, Producer, Worker, World

DEFAULT_SECONDS: Final = 12
SETTLE_S: Final = 240
"""How long after healing until all jobs must be gone."""
CHECK_EVERY_MS: Final = 500
VIOLATIONS_SHOWN: Final = 6
DISTANCES_MS: Final = (20, 60, 120)
LINK_BYTES: Final = 2400
"""Small, so that a narrow link is soon congested and may overflow."""
NODE_TIMEOUT_MS: Final = 2000
MOST_EVENTS: Final = 1_000_000
"""Ten times as many as the longest runs have."""
COMMAND_NS: Final = 1_000_000
"""Slow, so that the slices of a rewrite are short."""
LOADED_WITHIN_S: Final = 20
"""How long nodes may take to load their jobs after healing."""
_CONFIG: Final = f"cluster-node-timeout {NODE_TIMEOUT_MS}\n"
_MARKER_CONFIG: Final = "aof-restart-marker yes\n"
_LOG_CONFIG: Final = """\
appendonly yes
appendfsync {policy}
auto-aof-rewrite-min-size 3kb
auto-aof-rewrite-percentage 60
"""


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
    account: JobAccount[int] = field(default_factory=JobAccount)
    """By the numbers of the attempts."""
    heal_to_last_ms: int = 0
    rare: Counter[str] = field(default_factory=Counter)
    faults: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)


class Simulation:
    """One run."""

    def __init__(
        self, seed: int, mix: str | None = None, seconds: int = DEFAULT_SECONDS, mutation: Mutation | None = None
    ) -> None:
        self.seed = seed
        self.mix = mix or mix_of(seed)
        self.seconds = seconds
        chance = Random(f"world {seed}")  # noqa: S311 - repeatable chance is the point
        network = Network(START_MS, Random(f"network {seed}"))  # noqa: S311 - repeatable chance is the point
        network.capturing = False
        network.limit_bytes = LINK_BYTES
        network.congested_bytes = LINK_BYTES // 4
        network.most_events = MOST_EVENTS
        self._stops_at_violation = mutation is not None
        self.history = History()
        network.tap = self.history.digest_bytes
        self._load_watch = logcheckers.LoadWatch(self.history)
        hooks = Hooks(
            on_boot=mutation.change if mutation is not None else None,
            on_start=self._load_watch.before,
            on_serve=self._load_watch.serving,
        )
        drawn = MIXES[self.mix]
        self.history.lasting = drawn.lasting
        self._config_text = _CONFIG
        if drawn.configured and Random(f"marks {seed}").random() < 0.5:  # noqa: S311 - repeatable chance is the point
            self._config_text += _MARKER_CONFIG
        if drawn.logged:
            disks = Random(f"disks {seed}")  # noqa: S311 - repeatable chance is the point
            policy = disks.choice(("always", "always", "everysec", "everysec", "no"))
            self.history.policy = mutation.policy or policy if mutation is not None else policy
            self._config_text += _LOG_CONFIG.format(policy=self.history.policy)
            self._sync_ms = disks.choice((0, 5, 40))
            self._read_ms = disks.choice((0, 5, 300))
            self.history.hold_ms = 6 * self._sync_ms  # three syncs, each with its jitter
        self.cluster = Cluster(0, meet=False, config=self._config, network=network, hooks=hooks)
        self.world = World(self.cluster, self.history, chance, Random(f"options {seed}"))  # noqa: S311 - repeatable chance is the point
        self.world.prioritised = priorities.are_used(seed)
        self.faults = Faults(self.world, drawn.faults, HARMLESS)
        self.faults.settle_disk = self._settle_disk
        for _ in range(chance.choice((3, 3, 4, 5))):
            self._add(chance)
        self._rarities = Rarities(self.cluster, self.history)
        network.watchers.append(self._rarities.watch)
        if drawn.secret:
            network.watchers.append(secretfaults.SecretWatch(self.history))
        if drawn.logged:
            network.watchers.append(self._load_watch.watch)
        self._watch = checkers.Watch(self.cluster, self.history)
        self._patterns: PatternClients | None = None
        self._failing: FailingClients | None = None
        self._purges: PurgeClients | None = None
        self._copies: CopyClients | None = None
        self._tasks: TaskClients | None = None
        self._schedules: ScheduleClients | None = None
        self._settings = SettingsWatch(self.cluster, self.history) if has_settings(seed) else None

    def _config(self) -> Config:
        return load(self._config_text, (), no_include)

    def _settle_disk(self, member: Member) -> None:
        """Restore the disk of a member to its normal state."""
        files = member.host.disk
        files.repair()
        if self.history.policy:
            files.delay_ms = {disk.SYNC: self._sync_ms, disk.REPLACE: 2 * self._sync_ms, disk.READ: self._read_ms}
            files.jitter_ms = self._sync_ms

    def _add(self, chance: Random) -> Member:
        member = self.cluster.add(chance.getrandbits(40))
        if MIXES[self.mix].configured:
            member.host.config_text = self._config_text
        self._settle_disk(member)
        if MIXES[self.mix].secret:
            secretfaults.give(member)
        if self.history.policy:
            member.host.command_ns = COMMAND_NS
        if self.mix in {"clocks", "all"}:
            member.skew_ms = chance.choice((0, 400, -3000, 600_000))
            member.drift_ppm = chance.choice((0, 500, -500))
            member.jump()
        return member

    def run(self) -> Result:
        """Run all phases and the checks."""
        began_s = time.perf_counter()
        try:
            self._run_phases()
        except EndlessError as error:
            self.history.violate(self.world.now_ms, str(error))
        return self._result(time.perf_counter() - began_s)

    def _run_phases(self) -> None:
        cluster = self.cluster
        cluster.meet()
        if self.mix == "far":
            self._move_apart()
        members = len(cluster.members)
        chance = self.world.chance
        pause_ms = chance.choice((100, 200, 300))
        for home in range(1, members + 1):
            if chance.random() < 0.7 or home == 1:
                Producer(self.world, home, pause_ms, MIXES[self.mix].adds_at_once).start()
            for _ in range(chance.choice((0, 1, 2)) if home > 1 else 2):
                Worker(self.world, home).start()
        Observer(self.world, members).start()
        if self._settings is not None:
            SettingsClient(self.world, self.seed).start()
        if has_failures(self.seed):
            self._failing = FailingClients(self.world, self.seed)
            self._failing.start()
        if has_purges(self.seed):
            self._purges = PurgeClients(self.world, self.seed, self.mix)
            self._purges.start()
        if has_copies(self.seed):
            self._copies = CopyClients(self.world, self.seed)
            self._copies.start()
        if has_rates(self.seed) and not MIXES[self.mix].logged:
            RateClients(self.world, self.seed, self.mix).start()
        if has_claims(self.seed):
            ClaimClients(self.world, self.seed).start()
        if has_tasks(self.seed):
            self._tasks = TaskClients(self.world, self.seed)
            self._tasks.start()
        if has_schedules(self.seed):
            self._schedules = ScheduleClients(self.world, self.seed, calm=self.mix == "calm")
            self._schedules.start()
        if self.mix == "calm":
            self._patterns = PatternClients(self.world, 1, 2)
            self._patterns.start()
            ResultClients(self.world, self.seed, 2, 3, 1).start()
        self.faults.start(chance.choice((600, 1500)))
        self.pass_time(self.seconds)
        self._heal()
        self._settle()
        checkers.check_end(cluster, self.history)
        if self._failing is not None and not self._failing.checked and not self._seen_enough:
            self.history.violate(self.world.now_ms, "poison jobs did not become dead letters")
        if self._purges is not None and not self._purges.checked and not self._seen_enough:
            self.history.violate(self.world.now_ms, "the nodes do not agree about what was purged")
        if self._copies is not None:
            self._copies.check_end()
        if self._tasks is not None and not self._seen_enough:
            self._tasks.check_end()
        if self._patterns is not None:
            self._patterns.check_end()
        if self._schedules is not None and not self._seen_enough:
            self._schedules.check_end()
        if self.history.policy:
            self._check_files()
        if has_repairs(self.seed, self.mix) and not self._seen_enough:
            RepairRounds(self.cluster, self.history, self.seed, self.pass_time).run()

    def _move_apart(self) -> None:
        """Set a high latency between all nodes, the same in both directions."""
        members = self.cluster.members
        self.history.distance_ms = DISTANCES_MS[-1]
        for one in members:
            for other in members[: one.number - 1]:
                delay_ms = self.world.chance.choice(DISTANCES_MS)
                for sender, receiver in ((one, other), (other, one)):
                    self.cluster.network.path(sender, receiver).delay_ms = delay_ms

    @property
    def _seen_enough(self) -> bool:
        """Whether the mutation of this run was detected."""
        return self._stops_at_violation and bool(self.history.violations)

    def pass_time(self, seconds: float) -> None:
        """Let virtual time pass, with periodic checks of the nodes."""
        network = self.cluster.network
        end_ms = network.now_ms + int(seconds * 1000)
        while network.now_ms < end_ms and not self._seen_enough:
            check_ms = min(network.now_ms + CHECK_EVERY_MS, end_ms)
            while network.now_ms < check_ms:
                self.cluster.step(check_ms)
            for member in self.cluster.members:
                if member.running:
                    checkers.check_node(member, self.history)
                    priorities.check_attributes(member, self.history)
                    if self.history.policy and member.serving:
                        logcheckers.check_log(member, self.history)
            if self._purges is not None:
                self._purges.watch()
            checkers.note_met(self.cluster, self.history)
            if not self.history.faulty:
                self._watch.look()
            else:
                self.faults.supervise()

    def _heal(self) -> None:
        """Stop faults and producers, and start workers on all nodes. Nodes with files first crash once more."""
        history = self.history
        self.world.producing = False
        self.faults.stop()
        history.healed_ms = self.world.now_ms
        history.note(self.world.now_ms, "healed")
        self._load()
        self.faults.repair()
        self.pass_time(3)
        if history.policy:
            self._crash_and_finish()
        self.world.always_acks = True
        for member in self.cluster.members:
            for queue in QUEUES:
                member.tell("PAUSE", queue, "none")
            if history.policy:
                member.tell("CONFIG", "SET", "appendonly", "yes")
            Worker(self.world, member.number).start()
        self.faults.repair()

    def _crash_and_finish(self) -> None:
        """Kill a node that gave jobs to another one, and acknowledge what workers have there when it is back.

        Its file does not name the node that got these jobs.
        """
        world = self.world
        member, taker = world.chance.sample(self.cluster.members, 2)
        Producer(world, member.number, pause_ms=100).add_spare(3)
        self.pass_time(0.5)
        Worker(world, taker.number).take_spare()
        self.pass_time(0.5)
        take_down(self.faults, member, silent=False)
        bring_back(self.faults, member)
        self.pass_time(1)
        worker = Worker(world, member.number)
        for attempt in self.history.attempts:
            if attempt.deliveries and not attempt.acks_sent_ms and worker.has(member, attempt):
                worker.finish(attempt)

    def _load(self) -> None:
        """Wait until all nodes have loaded their jobs."""
        end_ms = self.world.now_ms + LOADED_WITHIN_S * 1000
        while not all(member.serving for member in self.cluster.members) and not self._seen_enough:
            if self.world.now_ms > end_ms:
                self.history.violate(self.world.now_ms, "a node does not finish loading")
                return
            self.pass_time(0.1)

    def _check_files(self) -> None:
        """Check the append-only files at the end."""
        self.pass_time(3)
        logcheckers.check_logs_idle(self.cluster, self.history)
        for member in self.cluster.members:
            member.tell("BGREWRITEAOF")
        self.pass_time(3)
        logcheckers.check_files(self.cluster, self.history)

    def _settle(self) -> None:
        """Wait until all jobs are gone."""
        network = self.cluster.network
        end_ms = network.now_ms + SETTLE_S * 1000
        whole_ms = network.now_ms + 40_000
        while network.now_ms < end_ms and not self._seen_enough:
            self.pass_time(1)
            settings = self._settings
            if settings is not None and not settings.checked:
                settings.look()
            if self._failing is not None:
                self._failing.look()
            if self._purges is not None:
                self._purges.look()
            done = checkers.leftovers(self.cluster) == 0
            agreed = all(part is None or part.checked for part in (settings, self._failing, self._purges))
            if done and ((self.cluster.is_whole() and agreed) or network.now_ms > whole_ms):
                break

    def _result(self, real_s: float) -> Result:
        history = self.history
        network = self.cluster.network
        return Result(
            seed=self.seed,
            mix=self.mix,
            violations=history.violations,
            digest=history.digest,
            events=network.events,
            real_s=real_s,
            virtual_s=(network.now_ms - START_MS) / 1000,
            account=history.account(),
            heal_to_last_ms=max(0, history.last_delivery_ms - history.healed_ms),
            rare=self._rarities.count(),
            faults=history.faults,
            trace=[f"{at_ms - START_MS:>8} {text}" for at_ms, text in history.trace],
        )


def simulate(seed: int, mix: str | None = None, seconds: int = DEFAULT_SECONDS, mutation: str | None = None) -> Result:
    """Simulate one run, with a mutation of the protocol if one is named."""
    if mutation is None:
        with TransitionCheck() as check:
            result = Simulation(seed, mix, seconds).run()
        result.violations += check.violations
        return result
    broken = MUTATIONS[mutation]
    with broken.applied():
        return Simulation(seed, mix or broken.mix, seconds, broken).run()


def report(result: Result, arguments: argparse.Namespace) -> str:
    """One line for a run without violations, all details for one with violations."""
    rate = int(result.events / result.real_s)
    line = (
        f"seed {result.seed} ({result.mix}): {'ok' if not result.violations else 'FAILED'}, "
        f"{len(result.account.attempted)} jobs, {result.events} events at {rate}/s, {result.virtual_s:.0f} s in "
        f"{result.real_s:.2f} s, last delivery {result.heal_to_last_ms} ms after healing, digest {result.digest[:12]}"
    )
    if not result.violations:
        return line
    given = {"--mix": arguments.mix, "--mutation": arguments.mutation, "--seconds": arguments.seconds}
    options = " ".join([f"{name} {value}" for name, value in given.items() if value is not None])
    command = f"python -m disqued.testing.sim --seed {result.seed} {options}"
    details = [
        *(result.trace[-arguments.trace :] if arguments.trace else []),
        line,
        *result.violations[:VIOLATIONS_SHOWN],
        f"faults: {result.faults}",
        f"jobs: {result.account}",
        f"commit {commit()}; to repeat: {command}",
    ]
    return "\n".join(details)


def commit() -> str:
    """The commit of the sources, if git knows it."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        command = ["git", "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()  # noqa: S603 - fixed
    return "unknown"


def main() -> int:
    """Run the requested seeds; returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m disqued.testing.sim", description="Simulate whole clusters.")
    parser.add_argument(
        "--seed", "--seeds", dest="seeds", type=seeds.parse, help="a number, or first..last; default: new ones each day"
    )
    parser.add_argument("--count", type=int, default=50, help="how many seeds of the day run without --seed")
    parser.add_argument("--processes", type=int, default=seeds.processors(), help="how many run at once")
    parser.add_argument("--mix", choices=sorted(MIXES), help="the mix of faults; default: chosen by the seed")
    parser.add_argument("--seconds", type=int, default=DEFAULT_SECONDS, help="how long faults are injected")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="break the protocol on purpose")
    parser.add_argument("--trace", type=int, default=0, help="how many events of a failed run are shown")
    arguments = parser.parse_args()
    chosen = arguments.seeds or seeds.of_day(datetime.now(tz=UTC).date(), arguments.count)
    print(f"seeds {chosen[0]}..{chosen[-1]}; to repeat: make sim SEED={chosen[0]}..{chosen[-1]}", flush=True)  # noqa: T201 - the report is the output
    failed = 0
    rare: Counter[str] = Counter()
    digest = blake2b(digest_size=6)
    run = partial(simulate, mix=arguments.mix, seconds=arguments.seconds, mutation=arguments.mutation)
    for result in seeds.results(chosen, run, arguments.processes):
        rare.update(result.rare)
        failed += bool(result.violations)
        digest.update(result.digest.encode())
        print(report(result, arguments), flush=True)  # noqa: T201 - the report is the output
    print("reached: " + ", ".join(f"{name} {count}" for name, count in sorted(rare.items())))  # noqa: T201 - the report is the output
    print(f"{len(chosen)} runs, {failed} failed, digest of all {digest.hexdigest()}")  # noqa: T201 - the report is the output
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
