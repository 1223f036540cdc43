"""Describes a pipeline that makes no progress: what each node knows about the tasks that are not done."""

from __future__ import annotations

from collections.abc import Iterator

from disqued.client import Client, DisqueError, JobId
from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.tasks import Account

MOST_TASKS = 10


def describe(cluster: Cluster, account: Account) -> str:
    """Return lines about the first tasks that are not done although the tasks before them are."""
    free = list(account.stalled())
    left = len(account.tasks) - len(account.done)
    head = f"{left} of {len(account.tasks)} tasks are not done; {len(free)} wait for no other task:"
    shown = [line for name, job_id in free[:MOST_TASKS] for line in _task(cluster, account, name, job_id)]
    return "\n".join([head, *shown])


def _task(cluster: Cluster, account: Account, name: str, job_id: JobId) -> Iterator[str]:
    yield f"{name} ({job_id}), last claim delivered {account.claim(name)}:"
    for node in cluster.nodes:
        try:
            yield f"  {node.name}: {_at(node, job_id)}"
        except DisqueError as error:
            yield f"  {node.name}: {type(error).__name__}: {error}"


def _at(node: BrokerNode, job_id: JobId) -> str:
    """What a node knows about a task and its end."""
    with Client((node.address,), discover=False) as client:
        job = client.show(job_id)
        fate = client.result(job_id)
    end = "no end" if fate is None else f"{fate.outcome}, claim {fate.claim}, result {fate.result!r}"
    if job is None:
        return f"no copy; {end}"
    return (
        f"{job.state}, claim {job.claim}, queued again within {job.next_requeue_within_ms} ms, waits for "
        f"{len(job.waits_for)} tasks; {end}"
    )
