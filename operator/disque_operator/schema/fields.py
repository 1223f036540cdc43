"""The schema of the spec: what each field says, its bounds and the rules that the API server checks.

Defaults are those of the classes in `spec`: a field that has one there has the same here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from disque_operator import names
from disque_operator.schema.config import config
from disque_operator.schema.embedded import embedded
from disque_operator.schema.kinds import LONGEST_NAME, choice, entries, flag, part, rule, text, texts, whole
from disque_operator.schema.pods import pod_template
from disque_operator.spec import (
    Auth,
    Budget,
    ClientService,
    Drain,
    Json,
    Network,
    Persistence,
    Spec,
    Storage,
    Upgrade,
    field_name,
)

MOST_MEMBERS: Final = 100
_DAY_S: Final = 86400
_WEEK_S: Final = 7 * _DAY_S

_RULES: Final = [
    rule("self.replicas >= 1", "replicas is at least 1; to stop all nodes and keep their jobs write hibernate: true"),
    rule(
        "self.replicas < 1 || self.replicas >= self.minReplicas",
        "replicas is not less than minReplicas: lower minReplicas too if so few members are wanted",
    ),
    rule(
        "!self.storage.ephemeral || !self.persistence.appendonly",
        "storage.ephemeral keeps no files: write persistence.appendonly: false with it",
    ),
    rule(
        "!self.storage.ephemeral || !self.hibernate",
        "storage.ephemeral keeps no jobs while no pod runs: hibernate is for clusters with volumes",
    ),
]
_STORAGE_RULES: Final = [
    rule(
        "self.ephemeral == oldSelf.ephemeral",
        "storage.ephemeral can not be changed: make another cluster, and move producers and then workers to it",
    ),
    rule(
        "has(self.className) == has(oldSelf.className) && "
        "(!has(self.className) || self.className == oldSelf.className)",
        "storage.className can not be changed: make another cluster, and move producers and then workers to it",
    ),
    rule(
        "isQuantity(self.size) && quantity(self.size).isGreaterThan(quantity('0'))",
        "storage.size is an amount such as 10Gi",
    ),
    rule(
        "!isQuantity(self.size) || !isQuantity(oldSelf.size) || "
        "!quantity(self.size).isLessThan(quantity(oldSelf.size))",
        "storage.size can not shrink, volumes only grow: write the former size or a larger one",
    ),
]
_MAXMEMORY_RULE: Final = rule(
    "self == 'auto' || (self.matches('^([1-9][0-9]?|100)%$')) || "
    "self.lowerAscii().matches('^0*[1-9][0-9]{0,17}(b|k|kb|m|mb|g|gb)?$')",
    "maxmemory is auto, a share of the memory limit such as 75%, or a size such as 512mb or 2gb (not 512Mi)",
)
_AUTH_RULES: Final = [
    rule(
        "!has(self.secretName) || self.enabled",
        "auth.secretName is of no use with auth.enabled: false: leave one of them out",
    ),
    rule(
        "!has(self.secretName) || self.rotation == 0",
        "auth.rotation is for generated passwords: change the password in the Secret auth.secretName instead",
    ),
]


def spec() -> Json:
    """The schema of the field `spec`."""
    return _section(Spec, "The cluster that is wanted.", _placement() | _behaviour() | _brokers(), _RULES)


def _brokers() -> Json:
    return {
        "replicas": whole("Members of the cluster, each a pod.", most=MOST_MEMBERS),
        "min_replicas": whole(
            "A shrink never leaves fewer members, nor fewer than the highest REPLICATE of a job.", 1, MOST_MEMBERS
        ),
        "image": text("The image of the broker. The operator's own choice when not given.", 512, minLength=1),
        "image_pull_policy": choice("When the image is pulled.", "Always", "IfNotPresent", "Never"),
        "image_pull_secrets": entries(
            "Secrets with which the image is pulled.",
            part("A Secret in the namespace.", {"name": text("Its name.", LONGEST_NAME)}, required=["name"]),
            most=16,
            key="name",
        ),
        "resources": embedded("V1ResourceRequirements", "CPU and memory of each broker. Give a memory limit."),
        "storage": _storage(),
        "persistence": _section(
            Persistence,
            "The append only file.",
            {
                "appendonly": flag("Whether each change is written to it, so that jobs survive the process."),
                "fsync": choice(
                    "When it is synced to the disk: always is before each reply.",
                    "always",
                    "everysec",
                    "no",
                ),
            },
        ),
        "config": config(
            "Directives of the broker by name, as docs/configuration.md has them; values are texts, quoted. "
            "Those that can change without a restart do."
        ),
        "maxmemory": text(
            "Memory for jobs on each member: `auto` (a share of the memory limit, 75 % or 60 % of small ones; of the "
            "request when there is no limit), a share as `75%`, or a size as `2gb`.",
            32,
        )
        | {"x-kubernetes-validations": [_MAXMEMORY_RULE]},
        "auth": _section(
            Auth,
            "The password of the nodes.",
            {
                "enabled": flag("Whether clients need one."),
                "secret_name": text(
                    "A Secret of yours with the key `password`; a password is generated when not given.", LONGEST_NAME
                ),
                "rotation": whole("Any new number has a new password generated.", 0),
                "grace_s": whole("How long the former password is accepted as well.", 0, _WEEK_S),
            },
            _AUTH_RULES,
        ),
    }


def _storage() -> Json:
    fields = {
        "ephemeral": flag(
            "No volumes: jobs are in memory, a pod is drained before it is replaced and comes back as a new member."
        ),
        "size": text("Size of the volume of each pod. It can grow.", 32),
        "class_name": text("StorageClass of the volumes; the default one when not given.", LONGEST_NAME),
        "when_deleted": choice("Whether volumes go with the resource.", "Retain", "Delete"),
        "when_scaled": choice(
            "Whether the volume of a pod that handed all its jobs over goes with it.", "Retain", "Delete"
        ),
    }
    schema = _section(Storage, "The volume of each pod.", fields, _STORAGE_RULES)
    inner = {name: schema["properties"].pop(name) for name in ("whenDeleted", "whenScaled")}
    schema["properties"]["retention"] = part(
        "What becomes of volumes that are not needed.", inner, default=_defaults(inner)
    )
    return schema | {"default": _defaults(schema["properties"])}


def _placement() -> Json:
    peer = embedded("V1NetworkPolicyPeer", "Pods, namespaces or blocks of addresses.")
    return {
        "service": _section(
            ClientService,
            "The service that clients use: `<name>.<namespace>.svc`.",
            {
                "type": choice("Who reaches it.", "ClusterIP", "NodePort", "LoadBalancer"),
                "annotations": texts("Annotations of the service, as load balancers want them.", most=32, longest=4096),
                "port": whole("Its port.", 1, 65535),
            },
        ),
        "affinity": embedded("V1Affinity", "Where pods run. When not given, they prefer different machines."),
        "tolerations": entries("Taints that pods tolerate.", embedded("V1Toleration", "A toleration."), most=32),
        "node_selector": texts("Labels of the machines on which pods run.", most=32, longest=63),
        "topology_spread": entries(
            "How pods spread. When not given, evenly over zones where that is possible. A constraint without "
            "labelSelector means the pods of the cluster.",
            embedded("V1TopologySpreadConstraint", "A constraint."),
            most=16,
        ),
        "priority_class": text("PriorityClass of the pods.", LONGEST_NAME),
        "pod_template": pod_template(
            "Laid over the pods' template as a strategic merge patch: sidecars, volumes, labels, security context. "
            "null takes a field away. What the cluster depends on can not be given."
        ),
        "budget": _section(
            Budget,
            "The PodDisruptionBudget; there is none for a single member.",
            {
                "enabled": flag("Whether there is one."),
                "max_unavailable": whole("Pods that may be evicted at a time.", 1, MOST_MEMBERS),
            },
        ),
        "network": _section(
            Network,
            f"The NetworkPolicy: clients reach the ports {names.CLIENT_PORT} and {names.HTTP_PORT}.",
            {
                "enabled": flag("Whether there is one."),
                "clients": entries("Who the clients are; everybody when empty.", peer, most=32),
            },
        ),
    }


def _behaviour() -> Json:
    return {
        "drain": _section(
            Drain,
            "How a member hands its jobs over before it goes.",
            {
                "timeout_s": whole("After so many seconds onTimeout holds.", 1, _WEEK_S),
                "on_timeout": choice(
                    "Wait: go on draining. Handoff: stop the pod, keep its volume with the jobs that are left. Force: "
                    f'drop them; wants the annotation {names.ALLOW_JOB_LOSS}: "true" on the resource.',
                    "Wait",
                    "Handoff",
                    "Force",
                ),
            },
        ),
        "upgrade": _section(
            Upgrade,
            "How pods are replaced, one at a time, when the image or what needs a restart changes.",
            {
                "soak_s": whole("All is well for so long before the next pod is replaced.", 0, 3600),
                "timeout_s": whole("A pod that is not back by then is told of as failed; the others wait.", 1, _DAY_S),
            },
        ),
        "paused": flag("Nothing is done but looking. A drain that runs goes on in its node; no pod goes."),
        "hibernate": flag("All nodes are stopped with their jobs on their volumes, until this is false again."),
    }


def _section(kind: type[Any], description: str, fields: Mapping[str, Json], rules: list[Json] | None = None) -> Json:
    """The schema of a class of `spec`: its attributes in their order, with their defaults. It may be left out."""
    properties = {
        field_name(attribute.name): fields[attribute.name] | _default(attribute)
        for attribute in dataclasses.fields(kind)
        if attribute.name in fields
    }
    return part(description, properties, rules, default=_defaults(properties))


def _defaults(properties: Json) -> Json:
    """What a section is when it is left out: rules are held against that too, before fields get their own defaults."""
    return {name: below["default"] for name, below in properties.items() if "default" in below}


def _default(attribute: dataclasses.Field[Any]) -> Json:
    """Sections have one already; where None or nothing is the default, the field is just left out."""
    simple = isinstance(attribute.default, bool | int | str)
    return {"default": attribute.default} if simple else {}
