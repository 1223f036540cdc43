"""DisqueUsers and DisqueQueues in the model: what the operator reads of them, and what it writes."""

from __future__ import annotations

from typing import Any, Final

from disque_operator import names
from disque_operator.actions import Command, WriteStatus
from disque_operator.observe import declared, kept_in
from disque_operator.runs import runs_of
from support.kubeworld.brokers import BrokerProcess
from support.kubeworld.objects import Api, ConflictError

PERMISSIONS: Final = frozenset({"@all", "@producer", "@consumer"})
"""What rules of users can name."""


def declarations(api: Api, cluster: str, now_s: float) -> dict[str, Any]:
    """Return the fields of `Observed` about users, queues, backups and Jobs."""
    secrets = {name: item for (kind, name), item in api.objects.items() if kind == "Secret"}
    auth = secrets.get(names.auth_secret(cluster))
    return {
        "backups": declared(api.objects, names.BACKUP_KIND, {}),
        "runs": runs_of(api.objects, now_s),
        "users": declared(api.objects, names.USER_KIND, secrets),
        "queues": declared(api.objects, names.QUEUE_KIND, {}),
        "schedules": declared(api.objects, names.SCHEDULE_KIND, {}),
        "kept_schedules": kept_in(auth, "schedules", now_s),
        "kept_users": kept_in(auth, "users", now_s),
        "kept_queues": kept_in(auth, "queues", now_s),
    }


def told_by(api: Api, broker: BrokerProcess) -> dict[str, Any]:
    """Return the fields of `Broker` about users and queues."""
    queues = [names.queue_of(item) for (kind, _), item in api.objects.items() if kind == names.QUEUE_KIND]
    pauses = dict.fromkeys(queues, "none") | broker.disk.pauses
    settings = {queue: dict(broker.disk.settings.get(queue, {})) for queue in queues}
    scheduled = [names.schedule_of(item) for (kind, _), item in api.objects.items() if kind == names.SCHEDULE_KIND]
    schedules = {name: dict(broker.disk.schedules.get(name, {})) for name in {*scheduled, *broker.disk.schedules}}
    return {
        "users": dict(broker.users),
        "permissions": PERMISSIONS,
        "pauses": pauses,
        "settings": settings,
        "schedules": schedules,
    }


def write_status(api: Api, action: WriteStatus) -> None:
    """Write the status of a resource; raises ConflictError if it has changed."""
    metadata = action.resource["metadata"]
    live = api.get(action.resource["kind"], metadata["name"])
    if live is None or live["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
        raise ConflictError(f"{metadata['name']} has changed")
    live["status"] = action.status
    api.touch(live)


def execute(broker: BrokerProcess, action: Command) -> bool:
    """Execute a command about users or queues; return whether it is one."""
    match action.words:
        case ("ACL", "SETUSER", name, "reset", *rules):
            broker.users[name] = " ".join(rules)
        case ("ACL", "DELUSER", name):
            broker.users.pop(name, None)
        case ("PAUSE", queue, pause):
            broker.disk.pauses[queue] = pause
        case ("QCONF", queue, "SET", *words):
            broker.disk.settings.setdefault(queue, {}).update(zip(words[::2], words[1::2], strict=True))
        case ("QCONF", queue, "UNSET", *words):
            for name in words:
                broker.disk.settings.get(queue, {}).pop(name, None)
        case ("SCHEDULE", name, change, *words):
            _schedule(broker.disk.schedules, name, change, words)
        case _:
            return False
    return True


def _schedule(schedules: dict[str, dict[str, str]], name: str, change: str, words: list[str]) -> None:
    """Change a schedule as SCHEDULE does."""
    match change:
        case "SET":
            when, queue, body, *options = words
            given = dict(zip(options[::2], options[1::2], strict=True))
            own = {key: given.pop(key) for key in ("TZ", "MISSED", "STRICT") if key in given}
            schedules[name] = {
                "when": when,
                "zone": "" if when.startswith(("every", "at")) else own.get("TZ", "UTC"),
                "queue": queue,
                "body": body,
                "options": " ".join(word for pair in given.items() for word in pair),
                "missed": own["MISSED"],
                "strict": own["STRICT"],
                "paused": schedules.get(name, {}).get("paused", "no"),
            }
        case "DEL":
            schedules.pop(name, None)
        case _:
            schedules[name]["paused"] = "yes" if change == "PAUSE" else "no"
