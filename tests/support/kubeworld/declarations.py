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
        "kept_users": kept_in(auth, "users", now_s),
        "kept_queues": kept_in(auth, "queues", now_s),
    }


def told_by(api: Api, broker: BrokerProcess) -> dict[str, Any]:
    """Return the fields of `Broker` about users and queues."""
    queues = [names.queue_of(item) for (kind, _), item in api.objects.items() if kind == names.QUEUE_KIND]
    pauses = dict.fromkeys(queues, "none") | broker.disk.pauses
    settings = {queue: dict(broker.disk.settings.get(queue, {})) for queue in queues}
    return {"users": dict(broker.users), "permissions": PERMISSIONS, "pauses": pauses, "settings": settings}


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
        case _:
            return False
    return True
