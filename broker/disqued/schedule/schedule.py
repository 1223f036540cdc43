"""SCHEDULE: sets, shows, pauses and removes schedules, which all members share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from disqued.config.glob import Glob
from disqued.core.access.user import User
from disqued.core.clients.session import Session
from disqued.core.cluster.entrykinds import LAST_RUN, MOST_SCHEDULE_BYTES, SCHEDULE
from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.commands.longreply import LongReply
from disqued.core.jobs.runs import RunOf
from disqued.core.queues.settingsindex import is_pattern
from disqued.core.runtime.slices import run_long
from disqued.core.runtime.state import NodeState
from disqued.errors import CommandSyntaxError, NoSchedule, ReplyError
from disqued.resp.words import quote_word
from disqued.resp.writer import OK, array_header, bulk, integer
from disqued.schedule.definition import ACTIVE, LAST, PAUSED, RUN, STATE, Definition, pack
from disqued.schedule.known import Schedule
from disqued.schedule.payload import MOST_NAME_BYTES
from disqued.schedule.room import ScheduleRoom, schedule_of
from disqued.schedule.timing import MOST_SPEC_BYTES, MOST_ZONE_BYTES, Timing

MOST_SCHEDULES: Final = 1000
MOST_WORDS: Final = 64
_SHOWN_BYTES: Final = 100
_OPTIONS_AT: Final = 6
_PART: Final = 20
"""How many schedules SHOW describes in one step: computing the next time of a cron line takes time."""
_PLAIN: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_."
"""Words of these characters need no quotes in a command line."""
_OWN: Final = (b"TZ", b"MISSED", b"STRICT")
_OF_JOBS: Final = (b"REPLICATE", b"DELAY", b"RETRY", b"TTL", b"MAXLEN", b"PRIORITY", b"META", b"RETAIN")


class _Saved(LongWork):
    """Waits until a change is on disk, and then replies."""

    def __init__(self, state: NodeState, reply: bytes) -> None:
        super().__init__()
        self._state = state
        self._reply = reply

    def waits(self) -> bool:
        """Whether the disk writes."""
        return self._state.events.entries_unsaved() == ""

    def step(self, state: NodeState, session: Session) -> bool:
        """Reply."""
        error = state.events.entries_unsaved()
        if error == "":
            return True
        if error:
            raise ReplyError(f"ERR the change is in effect on all nodes, but not saved on this one: {error}")
        session.out.append(self._reply)
        return False


class _Show(LongReply):
    """Replies with all schedules whose name matches a pattern and whose queue the user may access."""

    def __init__(self, schedules: list[Schedule], pattern: bytes, user: User | None) -> None:
        super().__init__()
        self._left = deque(schedules)
        self._glob = Glob(pattern)
        self._user = user

    def look(self, state: NodeState, session: Session) -> bool:  # noqa: ARG002 - the list is a copy
        """Take the next part."""
        for _ in range(min(_PART, len(self._left))):
            schedule = self._left.popleft()
            definition = schedule.definition
            if definition is not None and self._glob.matches(schedule.name) and _may_see(self._user, definition):
                self.add(1, (describe(schedule_of(state), schedule, definition),))
        return bool(self._left)


def _may_see(user: User | None, definition: Definition) -> bool:
    """Whether a user may see the schedules of a queue."""
    return user is None or user.rules.every_queue or user.rules.allows_queue(definition.queue)


def schedule(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand, which is the word after the name."""
    handler = _SUBCOMMANDS.get(args[2].upper())
    if handler is None:
        raise CommandSyntaxError
    if not 1 <= len(args[1]) <= MOST_NAME_BYTES:
        raise ReplyError(f"ERR the name of a schedule has 1 to {MOST_NAME_BYTES} bytes")
    handler(state, session, args)


# --- SET --------------------------------------------------------------------------------------------------------------


def _set(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Set a schedule, unless it is set in this way already."""
    if len(args) < _OPTIONS_AT:
        raise CommandSyntaxError
    name = args[1]
    if is_pattern(name):
        raise ReplyError("ERR the name of a schedule must not have *, ? or [: SHOW takes patterns")
    definition = _parse(args)
    state.events.job_checked(definition.queue, definition.words)
    timing = _timing(state, definition)
    value = definition.packed(timing)
    if len(value) > MOST_SCHEDULE_BYTES:
        raise ReplyError(
            f"ERR a schedule with its body and options has {len(value)} bytes, at most {MOST_SCHEDULE_BYTES} are "
            "possible: put the data elsewhere, and its address into the body"
        )
    room = schedule_of(state)
    known = room.known(name)
    if known is not None and known.definition is not None and known.definition.packed(timing) == value:
        run_long(state, session, _Saved(state, OK))
        return
    if timing.at_ms > 0 and timing.at_ms <= state.now_ms:
        raise ReplyError(f"ERR the time {timing.at_ms} has passed, it is {int(state.now_ms)} now")
    count = room.count_set()
    if known is None and count >= MOST_SCHEDULES:
        raise ReplyError(f"ERR there are {count} schedules of {MOST_SCHEDULES} that are possible")
    state.events.entries_wanted([(SCHEDULE, name, RUN, value)])
    run_long(state, session, _Saved(state, OK))


def _parse(args: list[bytes]) -> Definition:
    """The definition in a SET."""
    own: dict[bytes, bytes] = {}
    words: list[bytes] = []
    if (len(args) - _OPTIONS_AT) % 2:
        raise CommandSyntaxError
    for at in range(_OPTIONS_AT, len(args), 2):
        option = args[at].upper()
        value = args[at + 1]
        if option in _OWN:
            own[option] = value
        elif option in _OF_JOBS:
            words += [option, value]
        else:
            shown = _shown(args[at])
            options = ", ".join(known.decode() for known in (*_OWN, *_OF_JOBS))
            raise ReplyError(f"ERR '{shown}' is no option of a schedule, there are: {options}")
    return Definition(
        _text(args[3], "the time", MOST_SPEC_BYTES),
        _text(own.get(b"TZ", b""), "TZ", MOST_ZONE_BYTES),
        args[4],
        args[5],
        words,
        missed_once=_choice(own.get(b"MISSED", b"skip"), "MISSED", b"once", b"skip"),
        strict=_choice(own.get(b"STRICT", b"yes"), "STRICT", b"yes", b"no"),
    )


def _text(word: bytes, what: str, most: int) -> str:
    try:
        text = word.decode("ascii")
    except UnicodeDecodeError:
        text = "\0"
    if len(word) > most or not text.isprintable():
        raise ReplyError(f"ERR {what} of a schedule must have at most {most} printable ASCII characters")
    return " ".join(text.split())


def _choice(word: bytes, option: str, one: bytes, other: bytes) -> bool:
    """Whether a word is `one`; it must be that or `other`."""
    value = word.lower()
    if value not in {one, other}:
        raise ReplyError(f"ERR {option} must be {one.decode()} or {other.decode()}, not '{_shown(word)}'")
    return value == one


def _shown(word: bytes) -> str:
    text = word[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return text.replace("\r", " ").replace("\n", " ")


def _timing(state: NodeState, definition: Definition) -> Timing:
    try:
        timing = definition.timing(state.host)
    except ValueError as error:
        raise ReplyError(f"ERR '{definition.spec[:_SHOWN_BYTES]}' {error}") from None
    if timing.at_ms == 0 and timing.next_ms(state.host, state.now_ms) == 0:
        raise ReplyError(f"ERR '{definition.spec[:_SHOWN_BYTES]}' is never due")
    return timing


# --- the others -------------------------------------------------------------------------------------------------------


def _require(state: NodeState, args: list[bytes]) -> Schedule:
    """The schedule that a request names."""
    if len(args) != 3:
        raise CommandSyntaxError
    found = schedule_of(state).known(args[1])
    if found is None:
        raise NoSchedule(args[1])
    return found


def _delete(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Remove a schedule; reply with how many there were."""
    if len(args) != 3:
        raise CommandSyntaxError
    name = args[1]
    if schedule_of(state).known(name) is None:
        session.out.append(integer(0))
        return
    state.events.entries_wanted(
        [(SCHEDULE, name, RUN, None), (SCHEDULE, name, STATE, None), (LAST_RUN, name, LAST, None)]
    )
    run_long(state, session, _Saved(state, integer(1)))


def _pause(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Let a schedule rest."""
    _change(state, session, _require(state, args), paused=True)


def _resume(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Let a schedule run again from now on."""
    _change(state, session, _require(state, args), paused=False)


def _change(state: NodeState, session: Session, found: Schedule, *, paused: bool) -> None:
    if found.paused != paused:
        timing = found.timing
        forgotten_ms = 0 if timing is None else int(timing.forgotten_ms)
        value = pack(forgotten_ms, [PAUSED if paused else ACTIVE])
        state.events.entries_wanted([(SCHEDULE, found.name, STATE, value)])
    run_long(state, session, _Saved(state, OK))


def _run(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Add the job of a schedule now, also if it is paused; the reply is that of ADDJOB."""
    found = _require(state, args)
    definition = found.definition
    assert definition is not None
    found.by_hand_ms = max(state.now_ms, found.by_hand_ms + 1)
    run = RunOf(found.name, found.by_hand_ms, by_hand=True)
    state.events.job_wanted(session, definition.queue, definition.body, definition.words, run)


def _show(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with one schedule, or with all whose names match a pattern."""
    room = schedule_of(state)
    if is_pattern(args[1]):
        if len(args) != 3:
            raise CommandSyntaxError
        names = sorted(room.running.schedules)
        schedules = [room.running.schedules[name] for name in names]
        run_long(state, session, _Show(schedules, args[1], None if session.unrestricted else session.user))
        return
    found = _require(state, args)
    definition = found.definition
    assert definition is not None
    session.out.append(describe(room, found, definition))


def describe(room: ScheduleRoom, found: Schedule, definition: Definition) -> bytes:
    """A schedule as a flat array of names and values. Times are unix milliseconds, 0 for none."""
    runs = found.runs
    fields: list[tuple[bytes, bytes]] = [
        (b"name", bulk(found.name)),
        (b"when", bulk(definition.spec.encode())),
        (b"zone", bulk(_zone(found).encode())),
        (b"queue", bulk(definition.queue)),
        (b"body", bulk(definition.body)),
        (b"options", bulk(b" ".join([quote_option(word) for word in definition.words]))),
        (b"missed", bulk(b"once" if definition.missed_once else b"skip")),
        (b"strict", bulk(b"yes" if definition.strict else b"no")),
        (b"state", bulk(_state(room, found, definition))),
        (b"next-ms", integer(int(_next_ms(room, found)))),
        (b"last-ms", integer(int(runs.fired_ms))),
        (b"last-job", bulk(runs.job_id)),
        (b"runs", integer(int(runs.fired))),
        (b"runs-missed", integer(int(runs.missed))),
        (b"problem", bulk(runs.problem)),
        (b"node", bulk(room.running.voting.candidates.first(found.name))),
        (b"changed-ms", integer(int(max(found.set_ms, found.state_ms)))),
    ]
    parts = [array_header(2 * len(fields))]
    for name, value in fields:
        parts.append(bulk(name))
        parts.append(value)
    return b"".join(parts)


def quote_option(word: bytes) -> bytes:
    """A word as in a command line: in quotes if it needs them."""
    plain = word and all(byte in _PLAIN for byte in word)
    return word if plain else quote_word(word)


def _zone(found: Schedule) -> str:
    """The time zone of a cron line; empty for other schedules."""
    return "" if found.timing is None else found.timing.zone


def _next_ms(room: ScheduleRoom, found: Schedule) -> int:
    """When a schedule is due next; 0 for never."""
    timing = found.timing
    if timing is None or found.paused:
        return 0
    now_ms = room.state.now_ms
    return int(timing.next_ms(room.state.host, max(found.base_ms, now_ms)))


def _state(room: ScheduleRoom, found: Schedule, definition: Definition) -> bytes:
    """What a schedule does, as far as this node sees."""
    if found.paused:
        return PAUSED
    timing = found.timing
    if timing is None:
        return b"invalid"
    if timing.next_ms(room.state.host, found.base_ms) == 0:
        return b"done"
    candidates = room.running.voting.candidates
    if not candidates.node_ids or (definition.strict and not candidates.have_majority):
        return b"no-majority"
    return ACTIVE


_SUBCOMMANDS: Final[dict[bytes, Callable[[NodeState, Session, list[bytes]], None]]] = {
    b"SET": _set,
    b"DEL": _delete,
    b"PAUSE": _pause,
    b"RESUME": _resume,
    b"RUN": _run,
    b"SHOW": _show,
}


def _is_change(args: list[bytes]) -> bool:
    """Whether a request changes something."""
    return len(args) > 2 and args[2].upper() != b"SHOW"


def _queues(state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues that a request touches: that of the schedule as it is, and as it will be."""
    found: list[bytes] = []
    known = schedule_of(state).known(args[1])
    if known is not None and known.definition is not None:
        found.append(known.definition.queue)
    if args[2].upper() == b"SET" and len(args) > 4:
        found.append(args[4])
    return found


COMMAND: Final[Command] = Command(
    "schedule",
    -3,
    ("write",),
    schedule,
    "jobs",
    "Adds a job at given times, once per time for the whole cluster.",
    'name SET "cron line"|"every n s|m|h|d"|"at unix-ms" queue body [TZ zone] [MISSED skip|once] [STRICT yes|no] '
    "[REPLICATE n] [DELAY sec] [RETRY sec] [TTL sec] [MAXLEN n] [PRIORITY n] [META bytes] [RETAIN sec] | "
    "name DEL|PAUSE|RESUME|RUN|SHOW | pattern SHOW",
    "O(1); SHOW with a pattern O(schedules), in slices",
    queues=_queues,
    audited=_is_change,
    categories=("queueadmin",),
    most_words=MOST_WORDS,
)
