"""Snapshots of the manifests that the operator makes. `make manifests` writes them to tests/operator/snapshots.

The resources are the samples that people start from, and one in which every field has a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from disque_operator import resources
from disque_operator.busmode import BusMode
from disque_operator.certificate_files import Authorities, TlsFiles
from disque_operator.observed import Passwords, Platform
from disque_operator.pki import Pem
from disque_operator.resources import Certificates, Wanted, backups
from disque_operator.resources.backups import Execution
from disque_operator.spec import Spec, parse

Json = dict[str, Any]

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = ROOT / "manifests" / "samples"
SNAPSHOTS: Final = ROOT / "tests" / "operator" / "snapshots"
IMAGE: Final = "disqued:dev"
EVERYTHING: Final[Json] = {
    "replicas": 5,
    "minReplicas": 2,
    "image": "example.org/disqued:1",
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "resources": {"requests": {"cpu": "0.5", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
    "storage": {
        "size": "4Gi",
        "className": "fast",
        "retention": {"whenDeleted": "Delete", "whenScaled": "Retain"},
    },
    "ordered": {"enabled": True, "replicas": 5},
    "persistence": {"appendonly": True, "fsync": "always"},
    "config": {"hz": "20", "tcp-backlog": "1024", "client-output-buffer-limit": "normal 1mb 512kb 60"},
    "maxmemory": "auto",
    "auth": {"rotation": 3, "graceSeconds": 60},
    "tls": {
        "enabled": True,
        "issuerRef": {"name": "company", "kind": "ClusterIssuer"},
        "dnsNames": ["jobs.example.org"],
        "clients": "Optional",
        "clientCertificates": "Optional",
        "bus": True,
        "http": True,
    },
    "clusterSecret": {"enabled": True, "rotation": 2},
    "httpApi": "full",
    "service": {
        "type": "LoadBalancer",
        "annotations": {"example.org/scheme": "internal"},
        "port": 7000,
        "tlsPort": 7443,
        "loadBalancerClass": "example.org/internal",
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "externalTrafficPolicy": "Local",
        "ipFamilyPolicy": "PreferDualStack",
        "ipFamilies": ["IPv4"],
    },
    "exposure": {
        "type": "NodePort",
        "annotations": {"external-dns.alpha.kubernetes.io/hostname": "{pod}.example.org"},
        "externalTrafficPolicy": "Local",
        "ipFamilyPolicy": "SingleStack",
        "ipFamilies": ["IPv4"],
        "host": "{pod}.example.org",
        "nodePort": 31000,
        "tlsNodePort": 31100,
        "addressTypes": ["InternalIP"],
    },
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"disque.dev/cluster": "everything"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    },
    "tolerations": [{"key": "jobs", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "priorityClassName": "system-cluster-critical",
    "podTemplate": {
        "metadata": {"labels": {"team": "shop"}, "annotations": {"example.org/scrape": "true"}},
        "spec": {
            "terminationGracePeriodSeconds": 300,
            "hostNetwork": False,
            "securityContext": {"runAsUser": None},
            "volumes": [{"name": "notes", "emptyDir": {"sizeLimit": "1024Ki"}}],
            "containers": [
                {
                    "name": "broker",
                    "env": [{"name": "TZ", "value": "UTC"}],
                    "volumeMounts": [{"name": "notes", "mountPath": "/notes"}],
                    "startupProbe": {"failureThreshold": 1200},
                },
                {"name": "watcher", "image": "example.org/watcher:2", "resources": {"limits": {"cpu": "1500m"}}},
            ],
        },
    },
    "podDisruptionBudget": {"enabled": True, "maxUnavailable": 2},
    "networkPolicy": {
        "enabled": True,
        "clients": [{"podSelector": {"matchLabels": {"team": "shop"}}}],
        "monitoring": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "external": [{"ipBlock": {"cidr": "203.0.113.0/24"}}],
        "egress": {
            "enabled": True,
            "rules": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"protocol": "TCP", "port": 17711}]}],
        },
    },
    "monitoring": {
        "podMonitor": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "interval": "30s",
            "queues": ["mail", "print"],
            "secretName": "prometheus",
        }
    },
    "backup": {
        "store": {"url": "s3://backups/everything", "secretName": "s3"},
        "schedule": "0 2 * * *",
        "timeZone": "Europe/Berlin",
        "suspend": False,
        "days": 14,
        "maxAgeSeconds": 100000,
        "timeoutSeconds": 7200,
        "resources": {"requests": {"cpu": "0.2", "memory": "512Mi"}},
    },
    "bootstrap": {
        "fromBackup": {
            "store": {"url": "file:///backups/everything", "claimName": "backups"},
            "name": "shop.everything-20260714T020000Z",
            "atMostOnce": "Queue",
        }
    },
    "drain": {"timeoutSeconds": 60, "onTimeout": "Retain"},
    "upgrade": {
        "soakSeconds": 1,
        "timeoutSeconds": 60,
        "window": {"days": ["Sunday"], "start": "22:00", "end": "04:00", "timeZone": "Europe/Berlin"},
    },
    "paused": False,
    "hibernate": False,
}


def sample(name: str) -> list[Json]:
    """Return the objects of a sample."""
    return list(yaml.safe_load_all((SAMPLES / f"{name}.yaml").read_text()))


def bodies() -> dict[str, Json]:
    """Return the resources by the names of their snapshots."""
    found = {
        path.stem: body
        for path in sorted(SAMPLES.glob("*.yaml"))
        for body in sample(path.stem)
        if body["kind"] == "DisqueCluster"
    }
    found["everything"] = {"metadata": {"name": "everything"}, "spec": EVERYTHING}
    for body in found.values():
        body["metadata"] |= {"namespace": "shop", "uid": "0b5f1c80-0000-4000-8000-000000000001", "generation": 1}
        body["spec"] = {"image": IMAGE} | body["spec"]
    return found


def children(body: Json) -> tuple[Json, ...]:
    """Return the manifests for a resource."""
    spec = parse(body)
    passwords = Passwords("secret", "former", rotation=spec.auth.rotation, rotated_at="2026-01-31T12:00:00Z")
    secrets = (spec.cluster_secret.rotation,) if spec.cluster_secret.enabled else ()
    mode = BusMode("yes" if spec.tls.enabled and spec.tls.bus else "no", secrets, bool(secrets))
    wanted = Wanted(
        spec.replicas,
        passwords if spec.auth.enabled else None,
        certificates(spec),
        mode,
        {mode.file: "cluster secret"} if mode.secrets else {},
        image=spec.image or "",
        operator_namespace="disque-system",
        platform=Platform(pod_monitors=True),
    )
    outside = spec.exposure
    services = (
        [resources.external_service(spec, outside, ordinal) for ordinal in range(spec.replicas)] if outside else []
    )
    run = Execution(spec.image or "", wanted.platform)
    return (*resources.desired(spec, wanted), *services, *_of_backups(spec, run))


def _of_backups(spec: Spec, run: Execution) -> Iterator[Json]:
    """Yield the objects that are applied or created on their own."""
    if (scheduled := backups.cron_job(spec, run)) is not None:
        yield scheduled
    if spec.bootstrap is not None:
        source = spec.bootstrap.from_backup
        yield backups.find_job(spec, run, source, spec.replicas)
        yield backups.restored_claim(spec, 0)
        yield backups.restore_job(spec, run, source, source.name, spec.replicas, 0, "claim-uid")


def certificates(spec: Spec) -> Certificates:
    """Return what a cluster with TLS has, with words instead of certificates."""
    if not spec.tls.enabled:
        return Certificates()
    if spec.tls.issuer_ref is not None:
        return Certificates("authority")
    files = TlsFiles(Pem("certificate", "key"), "authority")
    authorities = Authorities(Pem("authority", "key of the authority"), changed_at="2026-01-31T12:00:00Z")
    return Certificates("authority", files, authorities)


def page(body: Json) -> str:
    """Return the manifests as text."""
    apart = json.loads(json.dumps(children(body)))  # without shared objects, which YAML would write as aliases
    text: str = yaml.dump_all(apart, Dumper=_Dumper, sort_keys=False, width=120)
    return text


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # ships no types
    """Writes multi-line strings as blocks."""


def _text(dumper: _Dumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def main() -> None:
    """Write the snapshots and delete stale ones."""
    for path in SNAPSHOTS.glob("*.yaml"):
        path.unlink()
    for name, body in bodies().items():
        (SNAPSHOTS / f"{name}.yaml").write_text(page(body))


if __name__ == "__main__":
    main()
