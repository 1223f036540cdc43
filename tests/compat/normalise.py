"""The permitted differences of two runs of the same server, as tables, and the comparison that uses them.

Everything that is not named here must be equal byte for byte. There are five reasons to be unequal, one table each:

* `MASKS`: figures of the run (times, counters, memory, the machine). Both sides must fit the pattern.
* `TOLERANCES`: figures that follow from the request and the pace of the replay; they must be close.
* `UNORDERED` and `UNORDERED_LINES`: lists that came out of a hash table; they must be equal as multisets.
* job and node IDs: an ID is bound to the one at the same place where it first appears, and must stay bound to it.
* the port and the directory of the node.

Directives, sections and fields that the original does not have are ignored in replies to CONFIG GET, INFO and
CLUSTER INFO.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compat.recording import escape
from compat.wire import Failure, Nil, Reply, Status
from disqued.config import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JOB_ID = re.compile(rb"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
NODE_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")

RECORDED_PORT = b"17711"
RECORDED_DIRECTORY = b"<base-dir->/n1"


@dataclass(frozen=True, slots=True)
class Mask:
    """`text` becomes `put` wherever a request matching `asked` shows it at a place matching `path`."""

    asked: str
    path: str
    text: bytes
    put: bytes


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The integer at `path` of the reply to `asked` may be off by `within`."""

    asked: str
    path: str
    within: int


def _info(fields: str, text: bytes) -> Mask:
    """A mask for lines of INFO and CLUSTER INFO."""
    return Mask(r"^(INFO|CLUSTER INFO)", "", rb"(?m)^(%b):%b\r$" % (fields.encode(), text), rb"\1:<of this run>")


MASKS = (
    Mask(r"^TIME$", r"^0$", rb"^\d{10}$", b"<s>"),
    Mask(r"^TIME$", r"^1$", rb"^\d{1,6}$", b"<us>"),
    Mask(r"^(SHOW|JSCAN) ", r"ctime$", rb"^\d{13}\d{6}$", b"<ms*1e6>"),
    Mask(r"", r"", rb"^\d{10}\.\d{6} \[127\.0\.0\.1:\d+\]", b"<time> [<client>]"),  # a line of MONITOR
    Mask(r"^SLOWLOG GET", r"^\d+\.0$", rb"^\d+$", b"<id>"),
    Mask(r"^SLOWLOG GET", r"^\d+\.1$", rb"^\d{10}$", b"<s>"),
    Mask(r"^SLOWLOG GET", r"^\d+\.2$", rb"^\d+$", b"<us>"),
    Mask(r"^LATENCY (LATEST|HISTORY)", r"^\d+\.[01]$", rb"^\d{10}$", b"<s>"),
    Mask(r"^LATENCY (LATEST|HISTORY)", r"^\d+\.[123]$", rb"^\d{1,4}$", b"<ms>"),
    Mask(r"^LATENCY (GRAPH|DOCTOR)", r"", rb"\d+(\.\d+)?", b"<n>"),
    Mask(r"^DEBUG STRUCTSIZE$", r"", rb"job:\d+ queue:\d+ client:\d+ ", b"job:<n> queue:<n> client:<n> "),
    Mask(r"^CLIENT ID$", r"", rb"^\d+$", b"<n>"),
    Mask(r"^CLIENT LIST", r"", rb"\bid=\d+ addr=127\.0\.0\.1:\d+ fd=\d+", b"id=<n> addr=<client> fd=<n>"),
    Mask(r"^CLIENT LIST", r"", rb" user=\w*", b""),  # see docs/differences.md
    Mask(r"^CLIENT LIST", r"", rb"\bage=[0-3] idle=[0-3]\b", b"age=<s> idle=<s>"),
    Mask(r"^CLIENT LIST", r"", rb"\bqbuf=\d+ qbuf-free=\d+\b", b"qbuf=<bytes> qbuf-free=<bytes>"),
    _info("process_id|uptime_in_seconds|used_memory|used_memory_rss|used_memory_peak", rb"\d+"),
    _info("used_memory_human|used_memory_peak_human", rb"\d+(?:\.\d\d)?[BKMGT]"),
    _info("mem_fragmentation_ratio|used_cpu_(sys|user)(_children)?", rb"\d+\.\d\d"),
    _info("run_id", rb"[0-9a-f]{40}"),
    _info("disque_git_sha1", rb"[0-9a-f]{8}"),
    _info("disque_build_id", rb"[0-9a-f]+"),
    _info("os|multiplexing_api|gcc_version|mem_allocator|executable", rb"\S[^\r]*"),
    _info("instantaneous_ops_per_sec|total_net_input_bytes|total_net_output_bytes|latest_fork_usec", rb"\d+"),
    _info("total_connections_received|total_commands_processed", rb"\d+"),
    _info("instantaneous_input_kbps|instantaneous_output_kbps", rb"\d+\.\d\d"),
    _info("disqued_version|python_version", rb"\d+(\.\w+)+"),
    _info("build", rb"(interpreted|compiled)"),
    _info("aof_last_rewrite_time_sec", rb"-?\d"),
    _info("loading_(start_time|total_bytes|loaded_bytes|eta_seconds)", rb"\d+"),
    _info("loading_loaded_perc", rb"\d+\.\d\d"),
    _info("cluster_stats_messages_(sent|received)", rb"\d+"),
    Mask(r"^CLUSTER NODES", "", rb" (?:0|\d{13}) (?:0|\d{13}) (connected|disconnected)\n", rb" <ms> <ms> \1\n"),
    Mask(r"^INFO", "", rb"(?m)\busec=\d+,usec_per_call=\d+\.\d\d\r$", b"usec=<of this run>"),
)

TOLERANCES = (
    Tolerance(r"^(SHOW|JSCAN) ", r"ttl$", 2),
    Tolerance(r"^(SHOW|JSCAN) ", r"next-(requeue|awake)-within$", 2000),
    Tolerance(r"^QSTAT ", r"(age|idle)$", 2),
    Tolerance(r"^QSTAT ", r"import-rate$", 260),
    Tolerance(r"^QSTAT ", r"oldest-ms$", 5000),
)

UNORDERED = (
    (r"^COMMAND$", r"^$"),
    (r"^[JQ]SCAN", r"^1$"),
    (r"^HELLO$", r"^$"),
    (r"^SHOW ", r"^nodes-(delivered|confirmed)$"),
)

UNORDERED_LINES = (r"^CLUSTER NODES$",)

_ADDED_SECTION = re.compile(
    rb"(?:\A|\r\n)# (?!Server|Clients|Memory|Jobs|Queues|Persistence|Stats|CPU|Commandstats)\w+\r\n(?:\w[^\r]*\r\n)*"
)
"""A section of INFO that the original does not have."""

_ADDED_FIELDS = re.compile(
    rb"(?m)^(?:cluster_(?:links_up|nodes_pfail|nodes_fail|nodes_leaving|max_skew_ms|clock_ahead_ms|clock_quarantine)"
    rb"|aof_(?:format|damaged_records|last_fsync_ms|unsynced_bytes|refusing)"
    rb"|clock_(?:offset_ms|steps)|cluster_links_unproven"
    rb"|queued_jobs|jobs_waiting_for_copies|max_replicate"
    rb"|used_memory_(?:startup|buffers)|maxmemory\w*|memory_\w+|requests_refused_unread|clients_closed_for_memory"
    rb"):[^\r]*\r\n"
)
"""Lines of CLUSTER INFO and INFO that the original does not have."""

_STAT_WORDS = 20
"""So many elements does QSTAT of the original reply with; our fields follow them."""

PAIRS = re.compile(r"^(SHOW|JSCAN|QSTAT) ")
"""Requests whose replies hold flat lists of names and values: places in them are called by the name."""


@dataclass(slots=True)
class Names:
    """Which of our IDs stands for which recorded one."""

    ours: dict[bytes, bytes] = field(default_factory=dict)
    recorded: dict[bytes, bytes] = field(default_factory=dict)

    def copy(self) -> Names:
        """A copy of the pairs that can change independently."""
        return Names(dict(self.ours), dict(self.recorded))

    def bind(self, recorded: bytes, ours: bytes) -> None:
        """Make a pair of two IDs that are both new; anything else is left to show up as a difference."""
        if recorded not in self.ours and ours not in self.recorded:
            self.ours[recorded] = ours
            self.recorded[ours] = recorded

    def to_ours(self, text: bytes) -> bytes:
        """A recorded request as it has to be sent to our node."""
        return self._replace(text, self.ours)

    def to_recorded(self, text: bytes) -> bytes:
        """A text of ours as the recorded node would have put it."""
        return self._replace(text, self.recorded)

    def meet(self, recorded: bytes, ours: bytes) -> None:
        """Bind the IDs that stand at the same places of two texts; a job ID also has to tell the same node and TTL."""
        for one, other in zip(NODE_ID.findall(recorded), NODE_ID.findall(ours), strict=False):
            self.bind(one, other)
        for one, other in zip(JOB_ID.findall(recorded), JOB_ID.findall(ours), strict=False):
            self.bind(one[2:10], other[2:10])
            if self.ours.get(one[2:10]) == other[2:10] and one[-4:] == other[-4:]:
                self.bind(one, other)

    @staticmethod
    def _replace(text: bytes, names: dict[bytes, bytes]) -> bytes:
        for pattern in (JOB_ID, NODE_ID):
            text = pattern.sub(lambda match: names.get(match[0], match[0]), text)
        return text


@dataclass(slots=True)
class Comparison:
    """Compares replies of our node with recorded ones; `names` and the node's place live as long as the node."""

    names: Names
    port: int
    directory: str

    def differences(self, asked: str, recorded: Reply, ours: Reply) -> list[str]:
        """Where the two replies to `asked` differ, a line each; none when they are the same."""
        if asked.startswith("CONFIG GET ") and isinstance(ours, list):
            ours = _without_added(ours)
        if asked.startswith("QSTAT ") and isinstance(recorded, list) and len(recorded) == _STAT_WORDS:
            ours = ours[:_STAT_WORDS] if isinstance(ours, list) else ours
        if asked.startswith(("INFO", "CLUSTER INFO")) and isinstance(ours, bytes):
            ours = _ADDED_FIELDS.sub(b"", _ADDED_SECTION.sub(b"", ours))
        return list(self._walk(asked, "", recorded, ours))

    def _walk(self, asked: str, path: str, recorded: Reply, ours: Reply) -> Iterator[str]:
        if isinstance(recorded, list) and isinstance(ours, list):
            yield from self._arrays(asked, path, recorded, ours)
        elif type(recorded) is not type(ours) or isinstance(recorded, Nil):
            if recorded != ours:
                yield f"{asked} at [{path}]: recorded {_show(recorded)}, ours {_show(ours)}"
        elif not _close(asked, path, recorded, ours):
            yield from self._leaves(asked, path, _text(recorded), _text(ours))

    def _arrays(self, asked: str, path: str, recorded: list[Reply], ours: list[Reply]) -> Iterator[str]:
        if len(recorded) != len(ours):
            yield f"{asked} at [{path}]: recorded {len(recorded)} elements, ours {len(ours)}: {_show(ours)}"
            return
        if any(re.search(left, asked) and re.search(right, path) for left, right in UNORDERED):
            yield from self._multisets(asked, path, recorded, ours)
            return
        for index, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            yield from self._walk(asked, f"{path}.{_place(asked, recorded, index)}".lstrip("."), one, other)

    def _multisets(self, asked: str, path: str, recorded: list[Reply], ours: list[Reply]) -> Iterator[str]:
        """Sort both lists by what is not a figure or an ID, then by the IDs that are known, then compare in pairs."""
        known = self.names
        left = sorted(recorded, key=lambda reply: (anonymous(reply), *_identity(reply, known.ours)))
        right = sorted(ours, key=lambda reply: (anonymous(reply), *_identity(reply, known.recorded, known.to_recorded)))
        for one, other in zip(left, right, strict=True):
            # Which new ID stands where says nothing in a list without order: nothing is learned from it.
            loose = Comparison(known.copy(), self.port, self.directory)
            yield from loose._walk(asked, f"{path}.*".lstrip("."), one, other)

    def _leaves(self, asked: str, path: str, recorded: bytes, ours: bytes) -> Iterator[str]:
        ours = re.sub(rb"(?<![0-9])%d(?![0-9])" % self.port, RECORDED_PORT, ours)
        ours = ours.replace(self.directory.encode(), RECORDED_DIRECTORY)
        recorded, ours = _masked(asked, path, recorded), _masked(asked, path, ours)
        self.names.meet(recorded, ours)
        ours = self.names.to_recorded(ours)
        if any(re.search(pattern, asked) for pattern in UNORDERED_LINES):
            recorded, ours = _sorted_lines(recorded), _sorted_lines(ours)
        if recorded != ours:
            only_recorded, only_ours = _unlike(recorded, ours)
            yield f"{asked} at [{path}]: recorded `{only_recorded}`, ours `{only_ours}`"


def asked(words: tuple[bytes, ...]) -> str:
    """A request as the tables above match it: words joined by blanks, the first two in capitals."""
    head = [escape(word).upper() for word in words[:2]]
    return " ".join(head + [escape(word)[:60] for word in words[2:12]])


def anonymous(reply: Reply) -> str:
    """A reply without its figures and IDs, to sort or count by."""
    if isinstance(reply, list):
        return "".join(map(anonymous, reply))
    if isinstance(reply, int):
        return ":"
    if isinstance(reply, Nil):
        return reply.name
    return JOB_ID.sub(lambda match: match[0][-4:], NODE_ID.sub(b"", _text(reply))).decode("latin-1")


def _identity(
    reply: Reply, known: dict[bytes, bytes], translated: Callable[[bytes], bytes] = bytes
) -> tuple[bool, bytes]:
    """A sort key for replies that differ only in their IDs: known IDs first, unknown ones last."""
    if isinstance(reply, list):
        found = [_identity(element, known, translated) for element in reply]
        return any(strange for strange, _ in found), b" ".join(text for _, text in found)
    text = b"" if isinstance(reply, int | Nil) else _text(reply)
    ids = [*JOB_ID.findall(text), *NODE_ID.findall(text)]
    return any(one not in known for one in ids), b" ".join(map(translated, ids))


def _sorted_lines(text: bytes) -> bytes:
    return b"".join(sorted(text.splitlines(keepends=True)))


def _unlike(recorded: bytes, ours: bytes) -> tuple[str, str]:
    """The lines that only one of them has; both texts if the lines are the same."""
    left, right = recorded.splitlines(), ours.splitlines()
    only = [[line for line in one if line not in other] for one, other in ((left, right), (right, left))]
    parts = [b"\n".join(lines) for lines in only] if any(only) else [recorded, ours]
    return escape(parts[0])[:600], escape(parts[1])[:600]


def _masked(asked: str, path: str, text: bytes) -> bytes:
    for mask in MASKS:
        if re.search(mask.asked, asked) and re.search(mask.path, path):
            text = re.sub(mask.text, mask.put, text)
    return text


def _close(asked: str, path: str, recorded: Reply, ours: Reply) -> bool:
    return (
        isinstance(recorded, int)
        and isinstance(ours, int)
        and any(
            abs(recorded - ours) <= allowed.within
            for allowed in TOLERANCES
            if re.search(allowed.asked, asked) and re.search(allowed.path, path)
        )
    )


def _place(asked: str, siblings: list[Reply], index: int) -> str:
    name = siblings[index - 1] if index % 2 and len(siblings) > 2 else None
    return name.decode("latin-1") if PAIRS.search(asked) and isinstance(name, bytes) else str(index)


def _text(reply: Reply) -> bytes:
    if isinstance(reply, Status | Failure):
        return reply.text
    return reply if isinstance(reply, bytes) else b"%d" % reply if isinstance(reply, int) else b""


def _without_added(reply: list[Reply]) -> list[Reply]:
    """A reply to CONFIG GET without the directives that the original does not have."""
    added = {option.name.encode() for option in OPTIONS if option.added}
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return [word for pair in pairs if pair[0] not in added for word in pair]


def _show(reply: Reply) -> str:
    return repr(reply)[:200]
