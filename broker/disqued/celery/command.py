"""The command `celery disque-schedules`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import click
from celery.bin.base import CeleryCommand
from celery.utils.imports import symbol_by_name

from disqued.celery.beat import BeatSchedules, Changes, UnsupportedEntriesError
from disqued.client import DisqueError
from disqued.kombu.scheduled import task_id_of

_PREFIX: Final = click.option(
    "--prefix", metavar="TEXT", help="Begin the names of schedules with this instead of `celery/APP/`."
)


@click.group(name="disque-schedules")
def disque_schedules() -> None:
    """Give the entries of beat to the broker, whose nodes then add the tasks: no beat process is needed."""


@disque_schedules.command(cls=CeleryCommand)
@_PREFIX
@click.option("-n", "--dry-run", is_flag=True, help="Change nothing.")
@click.option("-S", "--scheduler", metavar="CLASS", help="Read the entries of this scheduler instead of beat_schedule.")
@click.pass_context
def load(ctx: click.Context, prefix: str | None, dry_run: bool, scheduler: str | None) -> None:
    """Set a schedule for each entry, and remove those whose entries are gone."""
    app = ctx.obj.app
    source = symbol_by_name(scheduler)(app) if scheduler else None
    changes = _run(lambda: BeatSchedules(app, prefix).load(source, dry_run=dry_run))
    _echo_changes(changes)


@disque_schedules.command(cls=CeleryCommand)
@_PREFIX
@click.pass_context
def show(ctx: click.Context, prefix: str | None) -> None:
    """List the schedules that were loaded, with their last and next runs."""
    schedules = BeatSchedules(ctx.obj.app, prefix)
    for one in _run(schedules.show):
        click.echo(f"{schedules.entry_name(one.name)}: {one.when} {one.zone} {one.state}".rstrip())
        click.echo(f"  queue={one.queue} next={_shown(one.next_ms)} runs={one.runs} missed={one.runs_missed}")
        if one.last_job:
            click.echo(f"  last={_shown(one.last_ms)} task={task_id_of(one.last_job)}")
        if one.problem:
            click.echo(f"  problem={one.problem}")


@disque_schedules.command(cls=CeleryCommand)
@_PREFIX
@click.pass_context
def remove(ctx: click.Context, prefix: str | None) -> None:
    """Remove all schedules that were loaded, for example to go back to beat."""
    _echo_changes(Changes(removed=_run(BeatSchedules(ctx.obj.app, prefix).remove)))


def _run(action: Any) -> Any:
    try:
        return action()
    except UnsupportedEntriesError as error:
        raise click.ClickException(
            f"nothing was changed, because the broker cannot run these entries:\n{error}"
        ) from None
    except (DisqueError, TypeError) as error:
        raise click.ClickException(str(error)) from error


def _echo_changes(changes: Changes) -> None:
    for word in ("added", "changed", "unchanged", "removed"):
        for name in getattr(changes, word):
            click.echo(f"{word} {name}")


def _shown(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="seconds") if unix_ms else "never"
