"""The command `disque-backup`: makes backups of clusters, lists, checks, deletes and restores them."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from disqued.backup.errors import BackupError
from disqued.cli.arguments import Parser, UsageError, at_least
from disqued.cli.endpoint import choose_endpoint, endpoint_options
from disqued.cli.exits import Exit, guarded
from disqued.cli.units import human_bytes
from disqued.config.endpoint import parse_endpoint

if TYPE_CHECKING:
    from disqued.backup.manifest import Manifest
    from disqued.backup.store import Store

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_WHERE: Final = "s3://BUCKET/PREFIX or another URL of a store, or a directory"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-backup` with these arguments (default: those of the process) and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: run(words), {UsageError: Exit.USAGE, BackupError: Exit.REFUSED})


def run(words: Sequence[str]) -> Exit:
    """Like `main`, but raises exceptions for errors."""
    action = ACTIONS.get(words[0]) if words else None
    if action is None:
        parser = Parser(
            "disque-backup",
            f"disque-backup {{{','.join(ACTIONS)}}} [options]",
            "Back up Disque clusters while they run, and restore them to new ones. Each action has --help.",
            [],
        )
        parser.parse([word for word in words if word == "--help"])
        raise UsageError(f"disque-backup: missing action, use one of: {', '.join(ACTIONS)} (each has --help)")
    return action(list(words[1:]))


def create(words: list[str]) -> Exit:
    """Make a backup."""
    parser = _parser("create", "Back up the cluster of a node.", endpoint_options())
    parser.add_argument("--name", type=_name, help="name of the backup (default: the cluster and the time)")
    parser.add_argument("--cluster", type=_name, default="disque", help="name of the cluster (default: disque)")
    parser.add_argument("--schedule", default="", help="what makes this backup; `prune --schedule` deletes it")
    parser.add_argument(
        "--prune-days", type=at_least(int, 1), metavar="N",
        help="afterwards delete backups like `prune --days N` with the same cluster and schedule",
    )  # fmt: skip
    _result_option(parser)
    options = parser.parse(words)
    try:
        endpoint = choose_endpoint(options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    name = options.name or f"{options.cluster}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    try:
        from disqued.backup.take import take  # noqa: PLC0415  imports the store, which only this action needs

        store = _store(options)
        made = take(endpoint, store, name, options.cluster, options.schedule)
    except BackupError as error:
        _report(options.result, {"name": name, "error": str(error)})
        raise
    _print(f"{made.name}: {made.jobs} jobs, {human_bytes(made.size_bytes)}, {len(made.members)} members")
    _report(options.result, {**_summary(made), **_prune_after(store, options)})
    return Exit.OK


def _prune_after(store: Store, options: argparse.Namespace) -> dict[str, object]:
    """Delete old backups after a new one; return what failed, which does not make the new backup fail."""
    if options.prune_days is None:
        return {}
    from disqued.backup.retention import Retention, prune  # noqa: PLC0415  imports the store

    try:
        names = prune(store, options.cluster, options.schedule, Retention(days=options.prune_days), time.time())
    except BackupError as error:
        sys.stderr.write(f"old backups are not deleted: {error}\n")
        return {"prune_error": str(error)}
    for name in names:
        _print(f"{name} deleted")
    return {}


def list_backups(words: list[str]) -> Exit:
    """List backups."""
    from disqued.backup.manifest import load_all  # noqa: PLC0415  imports the store
    from disqued.backup.retention import unfinished  # noqa: PLC0415  the same

    parser = _parser("list", "List backups, the latest last.")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse(words)
    store = _store(options)
    objects = store.objects()
    for made in sorted(load_all(store, objects), key=lambda made: made.started_at):
        if options.json:
            _print(json.dumps(_summary(made)))
        else:
            _print(f"{made.name}  {_time(made.started_at)}  {made.jobs} jobs  {human_bytes(made.size_bytes)}")
    for name, written_s in sorted(unfinished(objects).items()):
        if not options.json:
            _print(f"{name}  {_time(written_s)}  incomplete")
    return Exit.OK


def verify(words: list[str]) -> Exit:
    """Check a backup."""
    parser = _parser("verify", "Read a backup, and compare it with its checksums.")
    parser.add_argument("name", help="name of the backup, or latest")
    options = parser.parse(words)
    from disqued.backup.checking import count_jobs  # noqa: PLC0415  imports the store
    from disqued.backup.manifest import load  # noqa: PLC0415  the same

    store = _store(options)
    manifest = load(store, options.name)
    jobs = count_jobs(store, manifest)
    return _print(f"{manifest.name} is complete: {jobs} jobs, {human_bytes(manifest.size_bytes)}")


def prune(words: list[str]) -> Exit:
    """Delete old backups."""
    parser = _parser("prune", "Delete old backups, and incomplete ones of more than a day ago.")
    parser.add_argument("--cluster", type=_name, default="disque", help="of this cluster (default: disque)")
    parser.add_argument("--schedule", default="", help="of this schedule (default: those made on demand)")
    parser.add_argument("--keep", type=at_least(int, 1), metavar="N", help="keep the latest N")
    parser.add_argument("--days", type=at_least(int, 1), metavar="N", help="keep those of the last N days")
    options = parser.parse(words)
    if options.keep is None and options.days is None:
        raise UsageError("disque-backup prune: --keep or --days is missing")
    from disqued.backup.retention import Retention  # noqa: PLC0415  imports the store
    from disqued.backup.retention import prune as delete  # noqa: PLC0415  the same

    retention = Retention(options.keep, options.days)
    for name in delete(_store(options), options.cluster, options.schedule, retention, time.time()):
        _print(f"{name} deleted")
    return Exit.OK


def find(words: list[str]) -> Exit:
    """Find a backup."""
    parser = _parser("find", "Print the name of a complete backup, for instance of the latest one.")
    parser.add_argument("name", help="name of the backup, or latest")
    _result_option(parser)
    options = parser.parse(words)
    from disqued.backup.manifest import load  # noqa: PLC0415  imports the store

    try:
        manifest = load(_store(options), options.name)
    except BackupError as error:
        _report(options.result, {"error": str(error)})
        raise
    _report(options.result, _summary(manifest))
    return _print(manifest.name)


def restore(words: list[str]) -> Exit:
    """Restore one node of a new cluster."""
    parser = _parser("restore", "Write the files with which one node of a new cluster starts.")
    parser.add_argument("name", help="name of the backup, or latest")
    parser.add_argument(
        "--nodes", required=True, type=_addresses, metavar="HOST:PORT[@BUS],...",
        help="addresses of all nodes of the new cluster, in the same order for each of them",
    )  # fmt: skip
    parser.add_argument("--node", required=True, type=at_least(int, 0), help="number of this node in the list, from 0")
    parser.add_argument("--into", required=True, type=Path, metavar="DIR", help="directory of this node")
    parser.add_argument("--aof", default="disque.aof", help="its appendfilename (default: disque.aof)")
    parser.add_argument("--nodes-conf", default="nodes.conf", help="its cluster-config-file (default: nodes.conf)")
    parser.add_argument("--queues-conf", default="queues.conf", help="its cluster-settings-file (default: queues.conf)")
    parser.add_argument("--identity", default="", help="any text that no other cluster restored from this backup has")
    parser.add_argument(
        "--at-most-once", choices=("drop", "queue"), default="drop",
        help="jobs with RETRY 0 that were not delivered before the backup: they may have been since (default: drop)",
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help="do nothing if the directory has the files of a node")
    _result_option(parser)
    options = parser.parse(words)
    if options.node >= len(options.nodes):
        raise UsageError(f"--node {options.node} is not in --nodes, which has {len(options.nodes)} addresses from 0 on")
    from disqued.backup.manifest import load  # noqa: PLC0415  imports the store
    from disqued.backup.restore import NewCluster, Target  # noqa: PLC0415  the same
    from disqued.backup.restore import restore as write_files  # noqa: PLC0415  the same

    target = Target(options.into, options.aof, options.nodes_conf, options.queues_conf)
    if options.once and target.occupied:
        _report(options.result, {"name": options.name, "node": options.node})
        return _print(f"{options.into} has the files of a node already: nothing is restored")
    try:
        store = _store(options)
        manifest = load(store, options.name)
        outcomes = write_files(
            store,
            manifest,
            NewCluster(options.nodes, options.identity),
            options.node,
            target,
            queue_at_most_once=options.at_most_once == "queue",
        )
    except BackupError as error:
        _report(options.result, {"error": str(error)})
        raise
    _report(options.result, {"name": manifest.name, "node": options.node, "owns": dict(outcomes)})
    shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "no jobs"
    return _print(f"{manifest.name}: node {options.node} owns: {shown}")


ACTIONS: Final[dict[str, Callable[[list[str]], Exit]]] = {
    "create": create,
    "list": list_backups,
    "verify": verify,
    "find": find,
    "prune": prune,
    "restore": restore,
}


def _parser(action: str, text: str, *parents: argparse.ArgumentParser) -> Parser:
    parser = Parser(f"disque-backup {action}", None, text, list(parents))
    parser.add_argument("store", help=_WHERE)
    return parser


def _result_option(parser: Parser) -> None:
    parser.add_argument("--result", type=Path, metavar="FILE", help="also write the result to a file, as JSON")


def _store(options: argparse.Namespace) -> Store:
    from disqued.backup.store import Store  # noqa: PLC0415  needs the extra `backup`

    return Store(options.store)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a name: letters, digits, '.', '_' and '-', at most 128")
    return text


def _addresses(text: str) -> tuple[Any, ...]:
    found = [parse_endpoint(word) for word in text.split(",")]
    wrong = [word for word, address in zip(text.split(","), found, strict=True) if address is None or not address.port]
    if wrong:
        raise argparse.ArgumentTypeError(f"'{wrong[0]}' is not HOST:PORT or HOST:PORT@BUS")
    return tuple(found)


def _summary(made: Manifest) -> dict[str, object]:
    """What scripts and the operator read of a backup."""
    return {**asdict(made), "members": len(made.members), "bytes": made.size_bytes}


def _report(path: Path | None, fields: dict[str, object]) -> None:
    if path is not None:
        path.write_text(json.dumps(fields) + "\n")


def _time(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def _print(line: str) -> Exit:
    sys.stdout.write(line + "\n")
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
