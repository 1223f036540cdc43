"""LATENCY: slow events by kind and time, from the samples of `disqued.core.telemetry.latency`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.admin.latencygraph import draw
from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import ANY, Subcommand, choose
from disqued.core.runtime.audit import always
from disqued.errors import CommandSyntaxError, ReplyError, shown

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.latency import LatencySeries


def latency(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        raise CommandSyntaxError
    handler(state, session, args)


def _latest(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with the latest sample of each event (unix time, milliseconds) and its all-time maximum."""
    session.reply_array(len(state.monitoring.latency.series))
    for event, series in state.monitoring.latency.series.items():
        at_s, spent_ms = series.samples[-1]
        session.reply_array(4)
        session.reply_bulk(event)
        session.reply_integer(at_s)
        session.reply_integer(spent_ms)
        session.reply_integer(series.worst_ms)


def _history(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the samples of an event, oldest first: unix time and milliseconds."""
    series = state.monitoring.latency.series.get(args[2])
    samples = series.samples if series is not None else ()
    session.reply_array(len(samples))
    for at_s, spent_ms in samples:
        session.reply_array(2)
        session.reply_integer(at_s)
        session.reply_integer(spent_ms)


def _graph(state: NodeState, session: Session, args: list[bytes]) -> None:
    event = shown(args[2])
    series = state.monitoring.latency.series.get(args[2])
    if series is None:
        raise ReplyError(f"ERR No samples available for event '{event}'")
    drawing = draw(event, series, state.host.wall_us() // 1_000_000)
    session.reply_bulk(drawing.encode("utf-8", "surrogateescape"))


def _doctor(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with a report as text."""
    session.reply_bulk("\n".join(_report(state)).encode("utf-8", "surrogateescape") + b"\n")


def _report(state: NodeState) -> list[str]:
    """What was slow and what to do about it, as lines."""
    threshold_ms = state.config.latency_monitor_threshold
    series = state.monitoring.latency.series
    if threshold_ms == 0 and not series:
        return [
            "The latency monitor is off: no slow events were recorded.",
            "CONFIG SET latency-monitor-threshold 100 records all events that take 100 milliseconds or longer.",
        ]
    if not series:
        return [f"No event took {threshold_ms} milliseconds or longer so far."]
    lines = [_diagnosis(event.decode("utf-8", "surrogateescape"), one) for event, one in series.items()]
    if b"command" in series or b"fast-command" in series:
        lines.append("SLOWLOG GET shows the slow commands with their arguments.")
        slowlog_us = state.config.slowlog_log_slower_than
        if slowlog_us < 0 or slowlog_us > threshold_ms * 1000 > 0:
            lines.append(
                f"It does not keep all of those counted here: CONFIG SET slowlog-log-slower-than {threshold_ms * 1000}"
            )
    return lines


def _diagnosis(event: str, series: LatencySeries) -> str:
    """One line on one event."""
    times_s = [at_s for at_s, _ in series.samples]
    spent_ms = [spent for _, spent in series.samples]
    return (
        f"{event}: slow in {len(spent_ms)} of {times_s[-1] - times_s[0] + 1} seconds, "
        f"{sum(spent_ms) / len(spent_ms):.0f} ms on average, {max(spent_ms)} ms at most, {series.worst_ms} ms ever."
    )


def _reset(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Forget the named events, or all, and reply how many there were."""
    session.reply_integer(state.monitoring.latency.reset(args[2:]))


_SUBCOMMANDS: Final = {
    b"LATEST": Subcommand(_latest),
    b"HISTORY": Subcommand(_history, 3, 3),
    b"GRAPH": Subcommand(_graph, 3, 3),
    b"DOCTOR": Subcommand(_doctor),
    b"RESET": Subcommand(_reset, 2, ANY, categories=("admin",), audited=always),
}

COMMAND: Final[Command] = Command(
    "latency",
    -2,
    ("readonly", "admin", "loading"),
    latency,
    "server",
    "Shows or forgets events that took long.",
    "LATEST | HISTORY event | GRAPH event | DOCTOR | RESET [event ...]",
    "O(samples)",
    categories=("inspect",),
    subcommands=_SUBCOMMANDS,
)
