"""A naive model of the machine: plain lists, searched from the start each time. It says what the machine must do."""

from __future__ import annotations

from dataclasses import dataclass, field

from disqued.core.fates.fate import DEAD, DELETED, DONE, EXPIRED, MOVED
from disqued.orderedqueue import commands, effects
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.options import QueueOptions, Settings

FRESH = 1 << 62


@dataclass
class ModelJob:
    index: int
    created_ms: int
    add: Add
    size: int
    state: str = "ready"
    consumer: bytes = b""
    claim: int = 0
    until_ms: int = 0
    nacks: int = 0
    additional: int = 0
    blocks: bool = False
    why: int = 0
    target: bytes = b""

    @property
    def expires_ms(self) -> int:
        return self.created_ms + int(self.add.ttl_s) * 1000

    @property
    def attempts(self) -> int:
        return self.nacks + self.additional


@dataclass
class ModelConsumer:
    name: bytes
    agent: bytes
    turn: int
    seen_ms: int
    named: bool = False
    credit: int = 0
    ahead: bool = False
    assigned: int = 0
    away_ms: int = 0
    present: bool = True


@dataclass
class Outcome:
    """What an entry caused, in a form that can be compared."""

    code: int = effects.OK
    value: int = 0
    assigned: list[tuple[int, int, bytes, int, int, int]] = field(default_factory=list)
    returned: list[tuple[int, bytes]] = field(default_factory=list)
    ended: list[tuple[int, int, bytes]] = field(default_factory=list)
    moves: list[tuple[int, int, bytes]] = field(default_factory=list)
    refused: list[tuple[int, int]] = field(default_factory=list)
    activated: list[bytes] = field(default_factory=list)
    parted: list[bytes] = field(default_factory=list)


class Model:
    """The model of one queue."""

    def __init__(self, options: QueueOptions) -> None:
        self.options = options
        self.settings = Settings()
        self.paused = 0
        self.index = 0
        self.now_ms = 0
        self.last_claim = 0
        self.former_claims = 0
        self.joined = 0
        self.jobs: list[ModelJob] = []
        self.consumers: list[ModelConsumer] = []
        self.active: ModelConsumer | None = None
        self.down: set[bytes] = set()
        self.keys: dict[bytes, tuple[int, int, int]] = {}
        self.out = Outcome()

    # Questions

    def find(self, index: int) -> ModelJob | None:
        return next((job for job in self.jobs if job.index == index), None)

    def in_state(self, state: str) -> list[ModelJob]:
        return [job for job in self.jobs if job.state == state]

    def of(self, consumer: ModelConsumer) -> list[ModelJob]:
        return [job for job in self.jobs if job.state == "leased" and job.consumer == consumer.name]

    def consumer(self, name: bytes) -> ModelConsumer | None:
        return next((one for one in self.consumers if one.name == name and one.present), None)

    # Entries

    def begin(self, index: int, time_ms: int) -> Outcome:
        self.out = Outcome()
        self.index = index
        self.now_ms = max(self.now_ms, time_ms)
        for job in list(self.jobs):
            if job.state == "moving":
                continue
            if job.expires_ms <= self.now_ms:
                self.expire(job)
            elif job.state == "leased" and job.until_ms <= self.now_ms:
                self.give_back(job, "additional", 0)
            elif job.state == "delayed" and job.until_ms <= self.now_ms:
                job.state, job.blocks = "ready", False
        timeout_ms = int(self.settings.consumer_timeout_ms)
        overdue = [
            one
            for one in self.consumers
            if (one.away_ms and one.away_ms + timeout_ms <= self.now_ms)
            or (one is self.active and self.is_idle(one) and one.seen_ms + timeout_ms <= self.now_ms)
        ]
        for one in overdue:
            self.remove_consumer(one)
        self.keys = {key: entry for key, entry in self.keys.items() if entry[2] == 0 or entry[2] > self.now_ms}
        return self.out

    def is_idle(self, consumer: ModelConsumer) -> bool:
        return not consumer.away_ms and consumer.credit == 0 and not self.of(consumer)

    def finish(self) -> Outcome:
        if not (self.paused | int(self.settings.pause)) & 2:
            while self.assign_one():
                pass
        return self.out

    def assign_one(self) -> bool:
        prefetch = int(self.options.prefetch)
        able = [
            one
            for one in self.consumers
            if one.present and (one.credit > 0 or one.ahead) and (prefetch == 0 or len(self.of(one)) < prefetch)
            if not self.options.single or one is self.active
        ]
        ready = [job for job in self.in_state("ready") if self.may_be_assigned(job)]
        if not able or not ready:
            return False
        job = min(ready, key=lambda one: one.index)
        if job.expires_ms <= self.now_ms:
            self.expire(job)
            return True
        consumer = min(able, key=lambda one: one.turn)
        if int(job.add.retry_s) == 0 and consumer.credit == 0:
            return False
        claim = max(self.index, self.last_claim + 1, job.claim + 1)
        self.last_claim = job.claim = consumer.turn = claim
        consumer.credit -= consumer.credit > 0
        consumer.assigned += 1
        job.state, job.consumer = "leased", consumer.name
        retry_s = int(job.add.retry_s)
        job.until_ms = self.now_ms + retry_s * 1000 if retry_s else 0
        self.out.assigned.append((job.index, claim, consumer.name, job.until_ms, job.nacks, job.additional))
        if retry_s == 0:
            self.end(job, DONE)
        return True

    def may_be_assigned(self, job: ModelJob) -> bool:
        for other in self.jobs:
            same_key = job.add.group and other.add.group == job.add.group
            if same_key and other.state == "leased":
                return False
            if other.blocks and other.index < job.index and (same_key or self.options.single):
                return False
        return True

    # Verbs

    def end(self, job: ModelJob, outcome: int) -> None:
        name = job.consumer if job.state == "leased" else b""
        self.withdrawn(job)
        self.jobs.remove(job)
        self.keys = {key: entry for key, entry in self.keys.items() if entry[2] or entry[0] != job.index}
        self.out.ended.append((job.index, outcome, name))
        self.drop_absent()

    def withdrawn(self, job: ModelJob) -> None:
        """The consumer of a job, if it has one, does not have it any more."""
        for one in self.consumers:
            if job.state == "leased" and one.name == job.consumer:
                one.seen_ms = self.now_ms

    def drop_absent(self) -> None:
        self.consumers = [one for one in self.consumers if one.present or self.of(one)]

    def expire(self, job: ModelJob) -> None:
        if self.settings.dead_expired and not job.add.dead_since_ms and self.bury(job, effects.EXPIRED):
            return
        self.end(job, EXPIRED)

    def bury(self, job: ModelJob, why: int) -> bool:
        if self.settings.drops_dead:
            self.end(job, DEAD)
            return True
        target = self.settings.dead or self.options.name + b".dead"
        if target == self.options.name:
            return False
        self.begin_move(job, target, why)
        return True

    def begin_move(self, job: ModelJob, target: bytes, why: int) -> None:
        self.out.moves.append((job.index, why, target))
        self.withdrawn(job)
        job.state, job.blocks, job.why, job.target = "moving", False, why, target
        self.drop_absent()

    def give_back(self, job: ModelJob, counting: str, delay_ms: int) -> None:
        if counting == "nack":
            job.nacks += 1
        elif counting == "additional":
            job.additional += 1
        limit = int(self.settings.limit)
        is_last = counting and job.attempts >= limit and (self.settings.limit_is_exact or not job.add.dead_since_ms)
        if is_last and self.bury(job, effects.LIMIT):
            return
        self.withdrawn(job)
        if job.state == "leased":
            self.out.returned.append((job.index, job.consumer))
        job.blocks = delay_ms > 0 and (self.options.single or job.add.group != b"")
        job.state = "delayed" if delay_ms > 0 else "ready"
        job.until_ms = self.now_ms + delay_ms
        self.drop_absent()

    def remove_consumer(self, consumer: ModelConsumer) -> None:
        for job in self.of(consumer):
            self.give_back(job, "additional", 0)
        self.leave(consumer)
        self.activate()

    def leave(self, consumer: ModelConsumer) -> None:
        consumer.present, consumer.credit, consumer.assigned, consumer.away_ms = False, 0, 0, 0
        consumer.ahead = False
        self.out.parted.append(consumer.name)
        self.drop_absent()

    def activate(self) -> None:
        if not self.options.single or (self.active is not None and self.active.present):
            return
        self.active = next((one for one in self.consumers if one.present), None)
        if self.active is not None:
            self.active.seen_ms = self.now_ms
            self.former_claims = self.last_claim
            self.out.activated.append(self.active.name)

    # Commands

    def new_leader(self) -> None:
        for one in self.consumers:
            if one.credit or one.ahead:
                one.seen_ms = self.now_ms
            one.credit, one.ahead = 0, False

    def add(self, add: Add, size: int) -> None:
        settings = self.settings
        known = self.keys.get(bytes(add.key)) if add.key else None
        if known is not None:
            index, added_ms, until_ms = known
            if add.until_done:
                if self.find(index) is not None:
                    self.keys[add.key] = (index, added_ms, 0)
                    self.out.value = index
                    return
            elif until_ms == 0 or self.now_ms < added_ms + int(add.window_s) * 1000:
                self.out.value = index
                return
        waiting = self.in_state("ready")
        if 0 < add.max_length <= len(waiting):
            self.out.code = effects.MAXLEN
            return
        if (self.paused | int(settings.pause)) & 1:
            self.out.code = effects.PAUSED
            return
        if add.moves == 0:
            if 0 < settings.max_bytes < size or (not settings.drops_oldest and self.is_full(size)):
                self.out.code = effects.MAXLEN
                return
            if settings.drops_oldest:
                for job in sorted(waiting, key=lambda one: one.index)[:16]:
                    if self.is_full(size):
                        self.end(job, DELETED)
        job = ModelJob(self.index, self.now_ms, add, size)
        job.claim, job.nacks, job.additional = int(add.claim), int(add.nacks), int(add.additional)
        if add.delay_ms:
            job.state, job.until_ms = "delayed", self.now_ms + int(add.delay_ms)
        self.jobs.append(job)
        if add.key:
            until_ms = 0 if add.until_done else self.now_ms + int(add.window_s) * 1000
            self.keys[add.key] = (self.index, self.now_ms, until_ms)
        self.out.value = self.index

    def is_full(self, size: int) -> bool:
        waiting = self.in_state("ready")
        if 0 < self.settings.max_length <= len(waiting):
            return True
        return 0 < self.settings.max_bytes < sum(job.size for job in waiting) + size

    def refuse(self, indexes: list[int], index: int, code: int) -> None:
        self.out.refused.append((index, code))
        if len(indexes) == 1:
            self.out.code = code

    def is_stale(self, job: ModelJob, claim: int) -> bool:
        return claim not in {0, job.claim} or 0 < claim <= self.former_claims

    def ack(self, ack: commands.Ack) -> None:
        for place, index in enumerate(ack.indexes):
            claim = ack.claims[place] if ack.claims else 0
            job = self.find(index)
            if job is None:
                self.refuse(ack.indexes, index, effects.NO_JOB)
            elif self.is_stale(job, claim):
                self.refuse(ack.indexes, index, effects.STALE)
            elif ack.result is not None and not job.add.retain_s and not ack.keep_s:
                self.refuse(ack.indexes, index, effects.NOT_KEPT)
            else:
                self.end(job, DONE)
                self.out.value += 1

    def nack(self, nack: commands.Nack) -> None:
        for place, index in enumerate(nack.indexes):
            claim = nack.claims[place] if nack.claims else 0
            job = self.find(index)
            if job is None:
                self.refuse(nack.indexes, index, effects.NO_JOB)
            elif self.is_stale(job, claim):
                self.refuse(nack.indexes, index, effects.STALE)
            elif nack.rejected:
                self.reject(nack, job)
            elif not self.can_return(nack, job):
                self.refuse(nack.indexes, index, effects.STALE)
            elif nack.delay_ms and nack.delay_ms >= job.expires_ms - self.now_ms:
                self.refuse(nack.indexes, index, effects.TTL)
                if len(nack.indexes) == 1:
                    self.out.value = max(job.expires_ms - self.now_ms, 0)
            else:
                counting = "nack"
                if nack.uncounted or job.state == "moving":
                    counting = ""
                elif nack.at_once:
                    counting = "additional" if job.state == "leased" else ""
                self.give_back(job, counting, int(nack.delay_ms))
                self.out.value += 1

    @staticmethod
    def can_return(nack: commands.Nack, job: ModelJob) -> bool:
        if job.state == "moving":
            return nack.at_once or job.why == effects.MOVED
        return job.state in {"leased", "delayed"}

    def reject(self, nack: commands.Nack, job: ModelJob) -> None:
        if job.state == "moving":
            self.out.value += 1
            return
        if self.bury(job, effects.REJECTED):
            job.nacks += 1
            self.out.value += 1
        else:
            self.refuse(nack.indexes, job.index, effects.SAME_QUEUE)

    def renew(self, renew: commands.Renew) -> None:
        job = self.find(int(renew.index))
        if job is None:
            self.out.code = effects.NO_JOB
        elif job.state != "leased" or self.is_stale(job, int(renew.claim)):
            self.out.code = effects.STALE
        elif self.now_ms > job.created_ms + int(job.add.ttl_s) * 500 or renew.lease_ms > job.add.ttl_s * 500:
            self.out.code = effects.TOO_LATE
        else:
            self.withdrawn(job)
            lease_ms = int(renew.lease_ms) or int(job.add.retry_s) * 1000
            job.until_ms = self.now_ms + lease_ms
            self.out.value = lease_ms

    def present(self, name: bytes, agent: bytes) -> ModelConsumer:
        found = self.consumer(name)
        if found is None:
            self.joined += 1
            found = next((one for one in self.consumers if one.name == name), None)
            if found is None:
                found = ModelConsumer(name, agent, 0, 0)
                self.consumers.append(found)
            found.turn, found.present = self.joined - FRESH, True
        found.agent, found.seen_ms, found.away_ms = agent, self.now_ms, 0
        return found

    def credit(self, credit: commands.Credit) -> None:
        found = self.consumer(credit.consumer)
        known = next((one for one in self.consumers if one.name == credit.consumer), None)
        if (credit.consumer if known is None else known.agent) in self.down:
            self.out.code = effects.NODE_DOWN
            return
        if found is None:
            if self.options.single:
                self.out.code = effects.NO_CONSUMER
                return
            found = self.present(credit.consumer, credit.consumer)
        found.seen_ms, found.away_ms = self.now_ms, 0
        unseen = max(found.assigned - int(credit.seen), 0) if credit.seen >= 0 else 0
        found.credit = max(int(credit.count) - unseen, 0)
        found.ahead = credit.ahead and self.options.single
        self.out.value = found.credit

    def join(self, join: commands.Join) -> None:
        if join.agent in self.down:
            self.out.code = effects.NODE_DOWN
            return
        found = self.present(join.consumer, join.agent)
        found.named, found.credit, found.ahead, found.assigned = join.named, 0, False, 0
        self.activate()

    def part(self, part: commands.Part) -> None:
        found = self.consumer(part.consumer)
        if found is None:
            self.out.code = effects.NO_CONSUMER
        elif part.away and found.named:
            self.away(found)
        else:
            self.remove_consumer(found)

    def away(self, consumer: ModelConsumer) -> None:
        consumer.credit, consumer.ahead, consumer.away_ms = 0, False, consumer.away_ms or self.now_ms

    def node(self, node: commands.Node) -> None:
        if node.up:
            self.down.discard(node.agent)
            return
        self.down.add(node.agent)
        for one in [one for one in self.consumers if one.agent == node.agent and one.present]:
            if one.named:
                self.away(one)
            elif self.options.single:
                self.remove_consumer(one)
            else:
                self.leave(one)

    def purge(self, purge: commands.Purge) -> None:
        phases = {"leased": 2, "delayed": 4, "moving": 0}
        for job in sorted(self.jobs, key=lambda one: one.index):
            phase = phases.get(job.state, 8 if job.add.dead_since_ms else 1)
            in_range = purge.first <= job.index and (not purge.last or job.index <= purge.last)
            if phase & purge.phases and in_range and (not purge.before_ms or job.created_ms < purge.before_ms):
                self.end(job, DELETED)
                self.out.value += 1

    def move(self, move: commands.MoveJobs) -> None:
        for index in move.indexes:
            job = self.find(index)
            if job is None:
                self.refuse(move.indexes, index, effects.NO_JOB)
            elif move.target == self.options.name:
                self.refuse(move.indexes, index, effects.SAME_QUEUE)
            elif job.state == "leased":
                self.refuse(move.indexes, index, effects.LEASED_NOW)
            elif job.state == "moving":
                self.refuse(move.indexes, index, effects.STALE)
            else:
                self.begin_move(job, move.target, effects.MOVED)
                self.out.value += 1

    def dead_sent(self, sent: commands.DeadSent) -> None:
        job = self.find(int(sent.index))
        if job is None or job.state != "moving":
            self.out.code = effects.NO_JOB
            return
        self.end(job, MOVED if job.why == effects.MOVED else DEAD)
        self.out.value = 1

    def remove(self, remove: commands.Remove) -> None:
        for index in remove.indexes:
            job = self.find(index)
            if job is None:
                self.out.refused.append((index, effects.NO_JOB))
            else:
                self.end(job, int(remove.outcome))
                self.out.value += 1

    def conf(self, settings: Settings) -> None:
        self.settings = settings
        timeout_ms = int(settings.consumer_timeout_ms)
        for one in [
            one
            for one in self.consumers
            if (one.away_ms and one.away_ms + timeout_ms <= self.now_ms)
            or (one is self.active and self.is_idle(one) and one.seen_ms + timeout_ms <= self.now_ms)
        ]:
            self.remove_consumer(one)
