"""Entries of `celery beat` as schedules of the broker: the nodes add the tasks, and no beat process is needed."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo

from celery.beat import BeatLazyFunc, Scheduler, SchedulingError

from disqued.celery.crontabs import UnsupportedEntryError, when_of
from disqued.client import Client, Schedule
from disqued.kombu import envelope
from disqued.kombu.channel import Channel
from disqued.kombu.publishing import job_options, unix_seconds
from disqued.kombu.scheduled import EXPIRES_AFTER, RUN_ID

_SAFE: Final = " !\"#$&'()+,-./:;<=>@\\]^_`{|}~"
"""What stays in names of schedules beside letters and digits: not the characters of patterns."""
_ORIGIN: Final = "disque-schedules"


class UnsupportedEntriesError(Exception):
    """Some entries of an application cannot be schedules of the broker; nothing was changed."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons
        """By the name of the entry."""

    def __str__(self) -> str:
        return "\n".join(f"{name}: {reason}" for name, reason in self.reasons.items())


@dataclass(frozen=True, slots=True)
class Wanted:
    """A schedule of the broker, as an entry of beat asks for it."""

    name: str
    when: str
    zone: str | None
    queue: str
    body: bytes
    missed: Literal["skip", "once"]
    ttl_s: int
    retry_s: int
    delay_s: int | None
    priority: int | None
    replicate: int | None

    def set(self, client: Client) -> None:
        """Set the schedule; nothing happens if it is set in the same way."""
        client.schedule_set(
            self.name,
            self.when,
            self.queue,
            self.body,
            zone=self.zone,
            missed=self.missed,
            ttl_s=self.ttl_s,
            retry_s=self.retry_s,
            delay_s=self.delay_s,
            priority=self.priority,
            replicate=self.replicate,
        )

    def is_like(self, known: Schedule) -> bool:
        """Whether a schedule does the same, apart from the options of its jobs."""
        return (known.when, known.zone, known.queue, known.body, known.missed) == (
            self.when,
            self.zone or "",
            self.queue,
            self.body,
            self.missed,
        )


@dataclass
class Changes:
    """What a load did, by names of entries."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


class BeatSchedules:
    """The schedules of one application in the broker. Their names begin with `prefix`, which others must not use."""

    def __init__(self, app: Any, prefix: str | None = None) -> None:
        self._app = app
        self.prefix = _quoted(f"celery/{app.main or 'app'}/" if prefix is None else prefix)

    def entry_name(self, name: str) -> str:
        """Return the name of the entry behind a schedule."""
        return unquote(name.removeprefix(self.prefix))

    def load(self, scheduler: Scheduler | None = None, *, dry_run: bool = False) -> Changes:
        """Set the schedules of all entries, and remove those whose entries are gone.

        Args:
            scheduler: Where the entries come from; None for `beat_schedule` and `add_periodic_task`.
            dry_run: Change nothing.

        Raises:
            UnsupportedEntriesError: the cluster cannot run some of the entries.
        """
        with self._app.connection_for_write() as connection:
            channel = _channel_of(connection)
            wanted = {one.name: one for one in self._wanted(scheduler or Scheduler(self._app), channel)}
            known = {one.name: one for one in self._known(channel.client)}
            changes = Changes()
            for name, one in wanted.items():
                before = known.get(name)
                if before is None:
                    kind = changes.added
                else:
                    kind = changes.unchanged if one.is_like(before) else changes.changed
                kind.append(self.entry_name(name))
                if not dry_run:
                    one.set(channel.client)
            for name in known.keys() - wanted.keys():
                if not dry_run:
                    channel.client.schedule_delete(name)
                changes.removed.append(self.entry_name(name))
            changes.removed.sort()
            return changes

    def show(self) -> list[Schedule]:
        """Return the schedules that were loaded, in the order of their names."""
        with self._app.connection_for_write() as connection:
            return self._known(_channel_of(connection).client)

    def remove(self) -> list[str]:
        """Remove the schedules that were loaded, and return the names of their entries."""
        with self._app.connection_for_write() as connection:
            client = _channel_of(connection).client
            names = [one.name for one in self._known(client)]
            for name in names:
                client.schedule_delete(name)
            return [self.entry_name(name) for name in names]

    def _known(self, client: Client) -> list[Schedule]:
        return client.schedules(f"{self.prefix}*")

    def _wanted(self, scheduler: Scheduler, channel: Channel) -> Iterator[Wanted]:
        reasons: dict[str, str] = {}
        found: list[Wanted] = []
        for name, entry in sorted(scheduler.schedule.items()):
            try:
                found.append(self._wanted_by(name, entry, scheduler, channel))
            except (ValueError, SchedulingError) as error:
                reasons[name] = str(error)
        if reasons:
            raise UnsupportedEntriesError(reasons)
        yield from found

    def _wanted_by(self, name: str, entry: Any, scheduler: Scheduler, channel: Channel) -> Wanted:
        when, zone = when_of(entry.schedule, _zone_of(self._app))
        _refuse_absolute(entry)
        began_s = time.time()
        queue, message = _message_of(entry, scheduler, channel)
        delay_s = _seconds_until(message["headers"].pop("eta", None), began_s)
        expires_s = _seconds_until(message["headers"].pop("expires", None), began_s)
        _make_repeatable(message, expires_s)
        options = job_options(message, began_s, channel.options, 0)
        ttl_s = options.ttl_s + 2 * (delay_s or 0)
        if expires_s is not None:
            ttl_s = min(ttl_s, 2 * max(expires_s, delay_s or 0) + channel.options.expires_grace)
        return Wanted(
            name=self.prefix + _quoted(name),
            when=when,
            zone=zone,
            queue=queue,
            body=envelope.encode(message),
            missed="once" if self._app.conf.beat_cron_starting_deadline is None else "skip",
            ttl_s=ttl_s,
            retry_s=options.retry_s,
            delay_s=delay_s,
            priority=options.priority,
            replicate=options.replicate,
        )


def _channel_of(connection: Any) -> Channel:
    channel = connection.default_channel
    if not isinstance(channel, Channel):
        raise TypeError(f"schedules need the transport disque://, and the broker is {connection.as_uri()}")
    return channel


def _message_of(entry: Any, scheduler: Scheduler, channel: Channel) -> tuple[str, envelope.Message]:
    """Return the message that beat would publish for an entry, and its queue."""
    published: list[tuple[str, envelope.Message]] = []

    def put(queue: str, message: envelope.Message, **_: Any) -> None:
        published.append((queue, message))

    channel._put = put  # type: ignore[method-assign]  # noqa: SLF001 - nothing is published on this channel
    try:
        entry = copy.copy(entry)
        entry.options = {**entry.options, "task_id": RUN_ID}
        scheduler.apply_async(entry, producer=scheduler.app.amqp.Producer(channel, auto_declare=False), advance=False)
    finally:
        del channel._put  # noqa: SLF001 - see above
    if len(published) != 1:
        queues = ", ".join(queue for queue, _ in published) or "none"
        raise UnsupportedEntryError(f"a schedule adds to one queue, and this task goes to {queues}: use `queue`")
    return published[0]


def _make_repeatable(message: envelope.Message, expires_s: int | None) -> None:
    """Remove what differs from one publish to the next."""
    headers, properties = message["headers"], message["properties"]
    headers |= {"origin": _ORIGIN, "eta": None, "expires": None}
    if expires_s is not None:
        headers[EXPIRES_AFTER] = expires_s
    properties["reply_to"] = ""
    properties.pop("expiration", None)


def _refuse_absolute(entry: Any) -> None:
    """Raise ValueError for what would be right for one run only."""
    if entry.options.get("eta") is not None or isinstance(entry.options.get("expires"), datetime):
        raise UnsupportedEntryError("`eta` and `expires` at a fixed time are not possible: use seconds")
    if any(isinstance(value, BeatLazyFunc) for value in (*(entry.args or ()), *(entry.kwargs or {}).values())):
        raise UnsupportedEntryError("arguments that are computed for each run (BeatLazyFunc) are not possible")


def _seconds_until(at: object, began_s: float) -> int | None:
    at_s = unix_seconds(at)
    return None if at_s is None else max(1, round(at_s - began_s))


def _zone_of(app: Any) -> str | None:
    zone = app.timezone
    if isinstance(zone, ZoneInfo):
        return zone.key
    return "UTC" if str(zone) == "UTC" else None


def _quoted(name: str) -> str:
    return quote(name, safe=_SAFE)
