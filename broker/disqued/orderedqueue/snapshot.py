"""Snapshots: the whole state of a machine as bytes, without bodies of jobs.

Rows of waiting jobs are copied as they are in memory, numbers of profiles and gaps included, so a snapshot of a million
jobs takes milliseconds. The restored machine has the same rows, bounds and orders: replicas that began with the log and
replicas that began with a snapshot stay equal byte for byte. Everything is written in a fixed order.
"""

from __future__ import annotations

from typing import Final

from disqued.orderedqueue.consumers import Consumer
from disqued.orderedqueue.effects import Move
from disqued.orderedqueue.encoding import Malformed, Reader, Writer
from disqued.orderedqueue.job import DELAYED, LEASED, MOVING, READY, Job, Profile
from disqued.orderedqueue.options import read_options, read_settings
from disqued.orderedqueue.state import State

VERSION: Final = 2


def write_state(state: State, out: Writer) -> None:
    """Append the state to an encoding."""
    out.number(VERSION)
    state.options.write(out)
    state.settings.write(out)
    out.number(state.paused)
    out.number(state.index)
    out.number(state.now_ms)
    out.number(state.last_claim)
    out.number(state.fence)
    out.number(state.added)
    out.number(state.delivered)
    out.flag(state.unfinished)
    _write_consumers(state, out)
    _write_waiting(state, out)
    out.number(len(state.waiting.jobs))
    for index in sorted(state.waiting.jobs):
        _write_job(state.waiting.jobs[index], out)
    out.number(len(state.moving))
    for index in state.moving:
        out.number(index)
    state.keys.write(out)
    state.records.write(out)


def read_state(data: Reader) -> State:
    """Restore a state. Raises Malformed."""
    if data.number() != VERSION:
        raise Malformed("the snapshot has an unknown version")
    state = State(read_options(data))
    state.settings = read_settings(data)
    state.service.timeout_ms = state.settings.consumer_timeout_ms
    state.paused = data.number()
    state.index = data.number()
    state.now_ms = data.number()
    state.last_claim = data.number()
    state.fence = data.number()
    state.added = data.number()
    state.delivered = data.number()
    state.unfinished = data.flag()
    _read_consumers(state, data)
    _read_waiting(state, data)
    for _ in range(data.count()):
        _read_job(state, data)
    for _ in range(data.count()):
        index = int(data.number())
        job = state.waiting.jobs.get(index)
        if job is None or job.state != MOVING:
            raise Malformed("a job that moves is missing")
        state.moving[index] = job
    state.waiting.restore()
    for consumer in state.service.by_name.values():
        state.service.refresh(consumer)
    state.timers.rebuild()
    state.keys.read(data)
    state.records.read(data)
    return state


def _write_consumers(state: State, out: Writer) -> None:
    service = state.service
    out.number(service.joined)
    out.number(service.check_ms)
    active = service.active
    out.text(b"" if active is None or not active.present else active.name)
    out.number(len(service.by_name))
    for consumer in service.by_name.values():
        out.text(consumer.name)
        out.text(consumer.agent)
        out.flag(consumer.named)
        out.flag(consumer.present)
        out.number(consumer.credit)
        out.flag(consumer.ahead)
        out.number(consumer.assigned)
        out.flag(consumer.turn < 0)
        out.number(-consumer.turn if consumer.turn < 0 else consumer.turn)
        out.number(consumer.seen_ms)
        out.number(consumer.away_ms)
    out.number(len(state.down))
    for agent in sorted(state.down):
        out.text(agent)


def _read_consumers(state: State, data: Reader) -> None:
    service = state.service
    service.joined = data.number()
    service.check_ms = data.number()
    active = data.text()
    for _ in range(data.count()):
        name = data.text()
        consumer = Consumer(name, data.text())
        consumer.named = data.flag()
        consumer.present = data.flag()
        consumer.credit = data.number()
        consumer.ahead = data.flag()
        consumer.assigned = data.number()
        is_fresh = data.flag()
        turn = data.number()
        consumer.turn = -turn if is_fresh else turn
        consumer.seen_ms = data.number()
        consumer.away_ms = data.number()
        service.by_name[name] = consumer
    service.active = service.by_name.get(active)
    for _ in range(data.count()):
        state.down[data.text()] = True


def _write_waiting(state: State, out: Writer) -> None:
    waiting = state.waiting
    out.number(waiting.count)
    out.number(waiting.body_bytes)
    out.number(waiting.dead)
    profiles = waiting.profiles
    out.number(len(profiles.table))
    for profile in profiles.table:
        out.flag(profile is not None)
        if profile is not None:
            out.number(profile.retry_s)
            out.number(profile.ttl_s)
            out.number(profile.retain_s)
            out.flag(profile.dead)
            out.text(b"" if profile.group is None else profile.group.key)
            out.number(profile.jobs)
    out.number(len(profiles.free))
    for number in profiles.free:
        out.number(number)
    by_key = waiting.groups.by_key
    for key in sorted(by_key):
        out.text(by_key[key].pack())
    waiting.plain.write(out)
    waiting.grouped.write(out)


def _read_waiting(state: State, data: Reader) -> None:
    waiting = state.waiting
    waiting.count = data.number()
    waiting.body_bytes = data.number()
    waiting.dead = data.number()
    profiles = waiting.profiles
    for number in range(data.count()):
        if not data.flag():
            profiles.table.append(None)
            continue
        retry_s = data.number()
        ttl_s = data.number()
        retain_s = data.number()
        dead = data.flag()
        key = data.text()
        group = waiting.groups.join(key) if key else None
        profile = Profile(number, retry_s, ttl_s, retain_s, dead, group)
        profile.jobs = data.number()
        profiles.table.append(profile)
        profiles.put(profile)
    for _ in range(data.count()):
        profiles.free.append(int(data.number()))
    by_key = waiting.groups.by_key
    for key in sorted(by_key):
        by_key[key].unpack(data.text())
    waiting.plain.read(data)
    waiting.grouped.read(data)


def _write_job(job: Job, out: Writer) -> None:
    out.number(job.index)
    out.number(job.created_ms)
    out.number(job.profile.number)
    out.number(job.size)
    out.number(job.state)
    out.number(job.claim)
    consumer = job.consumer
    out.text(b"" if consumer is None else consumer.name)
    out.number(job.until_ms)
    out.number(job.due_ms)
    out.number(job.nacks)
    out.number(job.additional)
    out.flag(job.holds_back)
    out.text(job.reason)
    out.text(job.note)
    move = job.move
    out.flag(move is not None)
    if move is not None:
        out.text(move.target)
        out.number(move.why)
        out.text(move.reason)
        out.number(move.since_ms)
        out.text(move.consumer)
        out.number(move.dead_ttl_s)
        out.flag(move.keeps_counters)
        out.flag(move.redrives)


def _read_job(state: State, data: Reader) -> None:
    index = data.number()
    created_ms = data.number()
    number = data.number()
    table = state.waiting.profiles.table
    profile = table[number] if number < len(table) else None
    if profile is None:
        raise Malformed("the profile of a job is missing")
    job = Job(index, created_ms, profile, data.number())
    job.state = data.number()
    job.claim = data.number()
    _read_place(state, job, data.text())
    job.until_ms = data.number()
    job.due_ms = data.number()
    job.nacks = data.number()
    job.additional = data.number()
    job.holds_back = data.flag()
    job.reason = data.text()
    job.note = data.text()
    if data.flag():
        job.move = _read_move(job, data)
    state.waiting.jobs[int(index)] = job


def _read_place(state: State, job: Job, name: bytes) -> None:
    """Restore where a job is."""
    if job.state == LEASED:
        consumer = state.service.by_name.get(name)
        if consumer is None:
            raise Malformed("the consumer of a job is missing")
        job.consumer = consumer
        consumer.jobs[int(job.index)] = True
        state.leased += 1
    elif job.state == DELAYED:
        state.delayed += 1
    elif job.state not in (READY, MOVING):
        raise Malformed("a job has an unknown state")


def _read_move(job: Job, data: Reader) -> Move:
    target = data.text()
    why = data.number()
    reason = data.text()
    move = Move(job.index, target, why, reason, data.number())
    move.consumer = data.text()
    move.dead_ttl_s = data.number()
    move.keeps_counters = data.flag()
    move.redrives = data.flag()
    move.nacks = job.nacks
    move.additional = job.additional
    move.claim = job.claim
    return move
