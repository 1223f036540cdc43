"""The machine beside its naive model: both get the same entries, and everything that can be seen must be equal."""

from __future__ import annotations

from disqued.core.fates.fate import DELETED, DONE
from disqued.orderedqueue import commands
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.effects import Effects
from disqued.orderedqueue.machine import Machine, restore
from disqued.orderedqueue.options import QueueOptions, Settings
from orderedqueue.model import Model, Outcome

Step = tuple[int, int, int, int]
"""A random step: what to do, two numbers that choose how, and milliseconds since the step before."""
CONSUMERS = (b"c1", b"c2", b"c3")
AGENTS = (b"n1", b"n2")
KEYS = (b"", b"", b"k1", b"k2")
GROUPS = (b"", b"g1", b"g2", b"g3")


def outcome_of(effects: Effects) -> Outcome:
    """What effects say, with orders that have no meaning removed."""
    return Outcome(
        int(effects.code),
        int(effects.value),
        [
            (int(one.index), int(one.claim), one.consumer, int(one.until_ms), int(one.nacks), int(one.additional))
            for one in effects.assigned
        ],
        sorted((int(one.index), one.consumer) for one in effects.returned),
        sorted((int(one.index), int(one.outcome), one.consumer) for one in effects.ended),
        sorted((int(one.index), int(one.why), one.target) for one in effects.moves),
        [(int(one.index), int(one.code)) for one in effects.refused],
        list(effects.activated),
        list(effects.parted),
    )


def settings_from(a: int, b: int) -> Settings:
    settings = Settings()
    settings.limit = (20, 1, 2, 3)[a % 4]
    settings.limit_is_exact = a % 8 >= 4
    settings.drops_dead = b % 16 == 0
    settings.dead = (b"", b"q", b"elsewhere")[a % 3]
    settings.dead_expired = b % 2 == 1
    settings.max_length = (0, 0, 4)[b % 3]
    settings.max_bytes = (0, 0, 40)[a % 3]
    settings.drops_oldest = b % 4 == 3
    settings.pause = (0, 0, 0, 0, 1, 2)[(a + b) % 6]
    settings.consumer_timeout_ms = (60_000, 2_000)[b % 2]
    return settings


class Pair:
    """The machine, another one that is replaced by a restored snapshot now and then, and the model."""

    def __init__(self, options: QueueOptions, *, grouped: bool, snapshot_each: int) -> None:
        self.machine = Machine(options)
        self.restored = Machine(options)
        self.model = Model(options)
        self.grouped = grouped
        self.snapshot_each = snapshot_each
        self.index = 0
        self.now_ms = 1_000_000

    def run(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps):
            self.step(step)
            if number % self.snapshot_each == self.snapshot_each - 1:
                self.restored = restore(self.restored.snapshot())
            self.compare_states()

    def step(self, step: Step) -> None:
        kind, a, b, elapsed_ms = step
        self.now_ms += elapsed_ms
        self.index += 1 + (a % 7 == 0)
        model = self.model
        if kind == 0:
            expected = model.begin(self.index, self.now_ms)
            model.new_leader()
            found = self.machine.new_leader(self.index, self.now_ms)
            again = self.restored.new_leader(self.index, self.now_ms)
        else:
            model.begin(self.index, self.now_ms)
            data = self.command(kind, a, b)
            expected = model.finish()
            found = self.machine.apply(self.index, self.now_ms, data)
            again = self.restored.apply(self.index, self.now_ms, data)
        expected.returned.sort()
        expected.ended.sort()
        expected.moves.sort()
        assert outcome_of(found) == expected
        assert outcome_of(again) == expected

    def compare_states(self) -> None:
        machine, model = self.machine, self.model
        assert machine.digest() == self.restored.digest()
        assert machine.due_ms() == self.restored.due_ms()
        ready = sorted(job.index for job in model.in_state("ready"))
        assert machine.peek(1000) == ready
        assert machine.peek(-3) == ready[:-4:-1]
        assert machine.length == len(ready)
        assert machine.leased == len(model.in_state("leased"))
        assert machine.delayed == len(model.in_state("delayed"))
        assert sorted(int(move.index) for move in machine.moves()) == [
            job.index for job in sorted(model.in_state("moving"), key=lambda one: one.index)
        ]
        assert machine.count == len(model.jobs)
        assert machine.needed() == sorted(job.index for job in model.jobs)
        assert machine.first_needed() == min((job.index for job in model.jobs), default=0)
        assert machine.body_bytes == sum(job.size for job in model.in_state("ready"))
        for consumer in model.consumers:
            assert [int(job.index) for job in machine.leases(consumer.name)] == sorted(
                job.index for job in model.of(consumer)
            )
        self.compare_due()

    def compare_due(self) -> None:
        """The machine never asks for TIME later than something happens."""
        model = self.model
        times = [job.expires_ms for job in model.jobs if job.state != "moving"]
        times += [job.until_ms for job in model.jobs if job.state in {"leased", "delayed"}]
        due_ms = self.machine.due_ms()
        assert not times or 0 < due_ms <= min(times)
        is_late = any(at_ms <= self.now_ms for at_ms in times)  # the move of an expired job was cancelled
        assert due_ms == 0 or due_ms > self.now_ms or is_late

    def command(self, kind: int, a: int, b: int) -> bytes:
        """The data of a random command, which the model has run."""
        model = self.model
        if kind <= 9:
            add = self.random_add(a, b)
            body = bytes(a % 12)
            model.add(add, len(body))
            return add.encode(body)
        if kind <= 22:
            return self.command_on_jobs(kind, a, b)
        if kind <= 30:
            return self.command_on_consumers(kind, a, b)
        return self.rare_command(kind, a, b)

    def random_add(self, a: int, b: int) -> Add:
        add = Add((300, 1, 2, 0)[a % 4], (86_400, 86_400, 5, 20)[b % 4])
        if self.grouped:
            add.group = GROUPS[a // 4 % 4]
        add.key = KEYS[b // 4 % 4]
        add.window_s = 1 + a % 5 if add.key else 0
        add.until_done = bool(add.key) and b % 3 == 0
        add.delay_ms = (0, 0, 0, 0, 700)[a % 5]
        add.retain_s = (0, 3)[b % 2]
        add.max_length = (0, 0, 0, 0, 0, 5)[b % 6]
        add.moves = (0, 0, 0, 1)[a // 16 % 4]
        add.dead_since_ms = (0, 0, 0, 1)[b // 16 % 4]
        add.claim = (0, 0, 0, 0, 0, 0, 0, self.index + 3)[a // 64 % 8]
        add.nacks = (0, 0, 0, 0, 0, 0, 0, 1)[b // 64 % 8]
        return add

    def some_jobs(self, a: int, b: int) -> tuple[list[int], list[int] | None]:
        """Indexes of jobs, mostly of leased ones or of such that were, and maybe claims, mostly right ones."""
        jobs = self.model.in_state("leased") if a % 5 > 1 else self.model.jobs
        if a % 5 == 1:
            jobs = [job for job in jobs if job.claim > 0 and job.state != "leased"]
        if not jobs:
            return [1 + a % max(self.index, 1)], None
        picked = [jobs[(a + place) % len(jobs)] for place in range(min(1 + (a % 4 == 0), len(jobs)))]
        if b % 3 == 0:
            return [job.index for job in picked], None
        return [job.index for job in picked], [max(job.claim - (b % 7 == 0), 0) for job in picked]

    def command_on_jobs(self, kind: int, a: int, b: int) -> bytes:
        indexes, claims = self.some_jobs(a, b)
        if kind <= 15:
            ack = commands.Ack(indexes, claims)
            ack.keep_s = (0, 5)[a % 2]
            self.model.ack(ack)
            return ack.encode()
        if kind <= 20:
            nack = commands.Nack(indexes, claims)
            nack.delay_ms = (0, 0, 500, 6000)[b // 4 % 4]
            nack.uncounted = b % 5 == 0
            nack.rejected = a % 11 == 0
            nack.at_once = a % 6 == 0
            self.model.nack(nack)
            return nack.encode()
        claim = claims[0] if claims else 0
        renew = commands.Renew(indexes[0], claim, (0, 1500, 20_000)[a % 3], b"half" if b % 2 else b"")
        self.model.renew(renew)
        return renew.encode()

    def command_on_consumers(self, kind: int, a: int, b: int) -> bytes:
        name = CONSUMERS[a % 3]
        agent = AGENTS[b % 2]
        if kind <= 26:
            credit = commands.Credit(name, (1, 2, 3, 0, 10)[b % 5], ahead=b % 3 == 0)
            found = self.model.consumer(name)
            if found is not None and b % 2:
                credit.seen = max(found.assigned - a % 2, 0)
            self.model.credit(credit)
            return credit.encode()
        if kind <= 28:
            join = commands.Join(name, agent, named=a % 2 == 0)
            self.model.join(join)
            return join.encode()
        if kind == 29:
            part = commands.Part(name, away=b % 2 == 0)
            self.model.part(part)
            return part.encode()
        node = commands.Node(agent, up=b // 2 % 3 != 0)
        self.model.node(node)
        return node.encode()

    def rare_command(self, kind: int, a: int, b: int) -> bytes:
        model = self.model
        if kind <= 32:
            return commands.encode_time()
        if kind == 33:
            settings = settings_from(a, b)
            model.conf(settings)
            return commands.encode_conf(settings)
        if kind == 34:
            model.paused = (0, 0, 1, 2)[a % 4]
            return commands.encode_pause(model.paused)
        if kind == 35:
            purge = commands.Purge(
                b % 16, self.now_ms - a * 10 if a % 2 else 0, a % 3, 0 if b % 2 else max(self.index - 3, 0)
            )
            model.purge(purge)
            return purge.encode()
        if kind == 36:
            moving = model.in_state("moving") or model.jobs
            sent = commands.DeadSent(moving[a % len(moving)].index if moving else 1, b"D-1")
            model.dead_sent(sent)
            return sent.encode()
        indexes, _ = self.some_jobs(a, b)
        indexes = indexes if b % 2 else [job.index for job in model.jobs if job.state != "leased"][:2]
        if kind == 37:
            remove = commands.Remove(indexes, DELETED if a % 2 else DONE)
            model.remove(remove)
            return remove.encode()
        move = commands.MoveJobs(indexes, b"q" if a % 9 == 0 else b"other")
        model.move(move)
        return move.encode()
