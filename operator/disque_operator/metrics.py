"""The operator's own metrics, in Prometheus' format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from disque_operator.apivalues import Json, seconds
from disque_operator.decisions import PHASES
from disque_operator.kube import WRITES
from disqued import __version__

_CLUSTER: Final = ("namespace", "cluster")


class Metrics:
    """All metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._round_s = Histogram(
            "disque_operator_reconcile_seconds",
            "Duration of a reconciliation round of a cluster.",
            _CLUSTER,
            registry=self.registry,
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self._errors = self._counter("reconcile_errors", "Failed reconciliation rounds.", *_CLUSTER)
        self._requests = self._counter(
            "api_requests", "Requests to the API server; code 0 means no response.", "verb", "kind", "code"
        )
        self._writes = self._counter(
            "writes",
            "Requests that change objects, except the Lease; none while all clusters are healthy.",
            "verb",
            "kind",
        )
        self._commands = self._counter(
            "broker_commands", "Commands to brokers that change something, by their first two words.", "command"
        )
        self._reverts = self._counter(
            "reverts", "Times that a field was changed back after the operator had applied it.", *_CLUSTER, "kind"
        )
        self._events = self._counter("watch_events", "Changes that watches reported.", "kind")
        self._phase = self._gauge("cluster_phase", "1 for the current phase of a cluster.", *_CLUSTER, "phase")
        self._condition = self._gauge(
            "cluster_condition", "1 if a condition of a cluster is True, otherwise 0.", *_CLUSTER, "condition"
        )
        self._reason = self._gauge(
            "cluster_reason", "1 for the present reason of each condition.", *_CLUSTER, "condition", "reason"
        )
        self._paused = self._gauge("paused", "1 while reconciliation of a cluster is paused (spec.paused).", *_CLUSTER)
        self._members = self._gauge("cluster_members", "Members of a cluster: ready, and wanted.", *_CLUSTER, "state")
        self._jobs_left = self._gauge(
            "drain_jobs_left", "Jobs that the drained pod has not transferred yet.", *_CLUSTER
        )
        self._seconds_left = self._gauge(
            "drain_seconds_left", "Estimated seconds until the drain is done; -1 while no job moves.", *_CLUSTER
        )
        self._backups = tuple(
            (self._gauge(f"backup_{name}", text, *_CLUSTER), key)
            for name, text, key in (
                (
                    "last_success_timestamp_seconds",
                    "When the last scheduled backup was completed, in seconds since 1970.",
                    "lastSuccessTime",
                ),
                ("last_jobs", "Jobs in the last scheduled backup.", "lastJobs"),
                ("last_bytes", "Size of the last scheduled backup.", "lastBytes"),
            )
        )
        self._states = (
            self._phase,
            self._condition,
            self._reason,
            self._paused,
            self._members,
            self._jobs_left,
            self._seconds_left,
            *(gauge for gauge, _ in self._backups),
        )
        self._gauge("build_info", "1, with the version as label.", "version").labels(__version__).set(1)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"disque_operator_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"disque_operator_{name}", text, labels, registry=self.registry)

    def watch(self, *, queue: Callable[[], float], overdue_s: Callable[[], float], lease: Callable[[], float]) -> None:
        """Add gauges that are computed when the metrics are read."""
        gauges = (
            ("queue_length", "Clusters that are due and wait for a worker.", queue),
            ("queue_oldest_seconds", "How long the first of these clusters has been waiting.", overdue_s),
            ("lease_held", "1 if this process holds the Lease.", lease),
        )
        for name, text, read in gauges:
            self._gauge(name, text).set_function(read)

    def request(self, verb: str, kind: str, status: int) -> None:
        """Count a request to the API server."""
        self._requests.labels(verb, kind, str(status)).inc()
        if verb in WRITES and kind != "Lease":
            self._writes.labels(verb, kind).inc()

    def command(self, words: tuple[str, ...]) -> None:
        """Count a command to a broker."""
        self._commands.labels(" ".join(words[:2]).upper()).inc()

    def revert(self, key: tuple[str, str], kind: str) -> None:
        """Count a field that was changed back."""
        self._reverts.labels(*key, kind).inc()

    def event(self, kind: str) -> None:
        """Count a change that a watch reported."""
        self._events.labels(kind).inc()

    def round(self, namespace: str, cluster: str, seconds: float, *, failed: bool) -> None:
        """Record a round."""
        self._round_s.labels(namespace, cluster).observe(seconds)
        errors = self._errors.labels(namespace, cluster)
        if failed:
            errors.inc()

    def cluster(self, namespace: str, name: str, status: Json, *, paused: bool) -> None:
        """Record the state of a cluster."""
        self._paused.labels(namespace, name).set(paused)
        for metric in (self._condition, self._reason):  # conditions such as Exposed are absent at times
            metric.remove_by_labels({"namespace": namespace, "cluster": name})
        for condition in status.get("conditions") or ():
            self._condition.labels(namespace, name, condition["type"]).set(condition["status"] == "True")
            self._reason.labels(namespace, name, condition["type"], condition["reason"]).set(1)
        for phase in PHASES:
            self._phase.labels(namespace, name, phase).set(status.get("phase") == phase)
        self._members.labels(namespace, name, "ready").set(status.get("readyReplicas") or 0)
        self._members.labels(namespace, name, "wanted").set(status.get("replicas") or 0)
        drain = status.get("drain")
        gauges = ((self._jobs_left, "jobsLeft"), (self._seconds_left, "secondsLeft"))
        for gauge, key in gauges:
            if drain:
                gauge.labels(namespace, name).set(drain.get(key) or 0)
            else:
                gauge.remove_by_labels({"namespace": namespace, "cluster": name})

        backup = status.get("backup") or {}
        for gauge, key in self._backups:
            if key in backup:
                value = backup[key]
                gauge.labels(namespace, name).set(seconds(value) if isinstance(value, str) else value)
            else:
                gauge.remove_by_labels({"namespace": namespace, "cluster": name})

    def clear(self, namespace: str, name: str) -> None:
        """Remove the state of a cluster, because another operator reports it from now on."""
        for metric in self._states:
            metric.remove_by_labels({"namespace": namespace, "cluster": name})

    def forget(self, namespace: str, name: str) -> None:
        """Remove all metrics of a deleted cluster."""
        self.clear(namespace, name)
        for metric in (self._round_s, self._errors, self._reverts):
            metric.remove_by_labels({"namespace": namespace, "cluster": name})

    def serve(self, port: int) -> Callable[[], None]:
        """Serve `/metrics` on a port; return a function that stops it."""
        server, thread = start_http_server(port, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop
