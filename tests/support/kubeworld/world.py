"""A model of Kubernetes: the StatefulSet controller, kubelets, claims, nodes, and what an operator observes.

The controller and the kubelets act with delays, a deleted claim disappears after its pod, and a node can become
unreachable with its pods. Everything else happens at once.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import random
from typing import Any, Final

from disque_operator import names
from disque_operator.actions import Action, Apply, Command, Create, DeleteChild, DeletePod, Issue, WriteStatus
from disque_operator.apivalues import Json, seconds
from disque_operator.brokers import CommandFailedError
from disque_operator.busmode import read_mode
from disque_operator.directives import LIVE, read
from disque_operator.observed import LOCKED, Broker, Leaving, Observed, Passwords, Peer, Pod, StatefulSet
from disque_operator.spec import Spec
from disque_operator.versions import Release, readable_format, release, tag_of
from disqued.config.options import OPTION_OF
from disqued.resp.words import split_words
from support.kubeworld.brokers import BrokerProcess, Bus, Disk
from support.kubeworld.certificates import MountedCertificates
from support.kubeworld.declarations import declarations, execute, told_by, write_status
from support.kubeworld.jobs import JobController
from support.kubeworld.objects import Api, ConflictError, InvariantError
from support.kubeworld.orderedmodel import OrderedModel
from support.kubeworld.pods import PodState
from support.kubeworld.services import NODE_ADDRESSES, ServiceController
from support.kubeworld.storage import VolumeStore

EPOCH_S: Final = 1_800_000_000.0
SECRET_LAG_S: Final = 20.0
STOP_S: Final = 4.0
ZONES: Final = {"m0": "east", "m1": "west", "m2": "west"}
"""The Kubernetes nodes and their zones."""
NODES: Final = tuple(ZONES)
BROKEN: Final = "broken"
MISSING: Final = "missing"
"""Parts of image names, with their effect."""
_OF_MEMBERS: Final = {"cluster-zone": "", "cluster-announce-external": ""}
"""Directives that differ between members, which are set while a broker runs."""
_ANY_RELEASE: Final = Release(0, 1)
"""The release of images whose tag is no version."""


class World:
    """One cluster and its Kubernetes."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.spec = spec
        self.rng = random.Random(seed)
        self.now_s = EPOCH_S
        self.api = Api()
        self.bus = Bus()
        self.pods: dict[str, PodState] = {}
        self.disks: dict[str, Disk] = {}
        self.deleting: set[str] = set()
        """Claims that are being deleted."""
        self.status: Json = {}
        self.own_password: str | None = None
        self.destroyed: set[str] = set()
        """Jobs whose last copy was destroyed by a fault, not by the operator."""
        self.accepted: set[str] = set()
        """Jobs that were acknowledged to the producer."""
        self.cut_off: dict[str, float] = {}
        """Unreachable nodes, and until when."""
        self.default_image = ""
        """The image that the operator gives to clusters without one."""
        self.versions: dict[str, str] = {}
        """The version of the broker in an image, if it is not the tag."""
        self.cordoned: set[str] = set()
        self.full = False
        """Whether no node can take another pod."""
        self.storage = VolumeStore(self.api)
        self.services = ServiceController(self.api)
        self.sees_nodes = True
        self.ordered = OrderedModel(self.bus)
        self.jobs = JobController(self.api, self.bus, self.disks)
        self.slow_load_s = 2.0
        self.changed = True
        """Whether a watch would report a change."""
        self._controller_s = 0.0
        self._seen = (0, "")
        self._secrets: list[tuple[float, Json]] = []
        self.certificates = MountedCertificates(self.api)

    # --- users --------------------------------------------------------------------------------------------------------

    def edit(self, **fields: Any) -> None:
        """Change the spec."""
        self.spec = Spec(**(dict(self.spec) | {"generation": self.spec.generation + 1} | fields))
        self.changed = True

    def stateful_set(self) -> Json | None:
        """Return the live StatefulSet."""
        return self.api.get("StatefulSet", self.spec.name)

    def scale_manually(self, replicas: int) -> None:
        """Scale the StatefulSet directly."""
        live = self.stateful_set()
        if live is not None:
            live["spec"]["replicas"] = replicas
            live["metadata"]["generation"] += 1
            self.api.touch(live)
            self.changed = True

    def delete_pod(self, name: str, *, force: bool = False) -> None:
        """Run `kubectl delete pod`."""
        pod = self.pods.get(name)
        if pod is not None and pod.ends_s is None:
            pod.ends_s = self.now_s + (0.0 if force else STOP_S)
            self.changed = True

    def delete_claim(self, ordinal: int) -> None:
        """Run `kubectl delete pvc`."""
        name = names.volume_claim(self.spec.name, ordinal)
        if self.api.get("PersistentVolumeClaim", name) is not None:
            self.deleting.add(name)
            self.changed = True

    # --- time ---------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Advance by a second."""
        self.now_s += 1.0
        self.cut_off = {node: until_s for node, until_s in self.cut_off.items() if until_s > self.now_s}
        secret = self.api.get("Secret", names.auth_secret(self.spec.name))
        if secret is not None and (not self._secrets or self._secrets[-1][1] != secret.get("data")):
            self._secrets.append((self.now_s, copy.deepcopy(secret.get("data") or {})))
        if self.now_s >= self._controller_s:
            self._controller_s = self.now_s + self.rng.choice((1, 1, 2, 4))
            self._control()
        for pod in list(self.pods.values()):
            self._kubelet(pod)
        stepped = (self.storage.step(self.now_s), self.services.step(self.now_s), self.jobs.step(self.now_s))
        self.changed = any((*stepped, self.changed))
        self.bus.step(self.now_s, dict.fromkeys(self.pods, True))
        self.ordered.step(self.now_s)
        self._check_bus()
        self.certificates.step(self.spec, self.now_s, self.pods)
        for name in sorted(self.deleting):
            if not any(names.volume_claim(self.spec.name, pod.ordinal) == name for pod in self.pods.values()):
                self._delete_volume(name)

    def _check_bus(self) -> None:
        """Check that no change of the bus separates two members."""
        running = self.bus.running.values()
        if not all(one.connects_to(other) for one in running for other in running):
            raise InvariantError(f"members cannot connect to each other: {[broker.bus for broker in running]}")

    def _control(self) -> None:
        """Run the StatefulSet controller: it creates all pods at once and replaces only deleted ones."""
        live = self.stateful_set()
        if live is None:
            for name in list(self.pods):
                self.delete_pod(name)
            return
        revision = hashlib.sha256(json.dumps(live["spec"]["template"], sort_keys=True).encode()).hexdigest()[:8]
        if self._seen != (live["metadata"]["generation"], revision):
            self._seen = (live["metadata"]["generation"], revision)
            self.changed = True
        for pod in list(self.pods.values()):
            if pod.ordinal >= live["spec"]["replicas"]:
                self.delete_pod(pod.name)
        for ordinal in range(live["spec"]["replicas"]):
            if names.pod(self.spec.name, ordinal) not in self.pods:
                self._create_pod(live, ordinal, revision)

    def _create_pod(self, live: Json, ordinal: int, revision: str) -> None:
        name, uid = names.pod(self.spec.name, ordinal), f"pod-{self.api.serial()}"
        key = uid
        if not self.spec.storage.ephemeral:
            claim = names.volume_claim(self.spec.name, ordinal)
            if claim in self.deleting:
                return
            found = self.api.get("PersistentVolumeClaim", claim) or self.api.put(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": claim, "labels": names.labels(self.spec.name)},
                    "spec": live["spec"]["volumeClaimTemplates"][0]["spec"],
                    "status": {"phase": "Pending"},
                }
            )
            key = found["metadata"]["uid"]
        image = live["spec"]["template"]["spec"]["containers"][0]["image"]
        ip = f"10.0.{self.api.serial() // 250 % 250}.{self.api.serial() % 250 + 1}"
        container = live["spec"]["template"]["spec"]["containers"][0]
        ports = {port["name"] for port in container["ports"]}
        self.pods[name] = PodState(
            *(name, ordinal, uid, revision, image, self.now_s, key, ip),
            tls=names.TLS_PORT_NAME in ports,
            bus=read_mode(container["args"]),
            external=frozenset(ports & {names.EXTERNAL_PORT_NAME, names.EXTERNAL_TLS_PORT_NAME}),
        )
        self.changed = True

    def _kubelet(self, pod: PodState) -> None:
        broker = self.bus.running.get(pod.name)
        cut = pod.node in self.cut_off
        if broker is not None:
            broker.cut_off = cut
        if pod.ends_s is not None and self.now_s >= pod.ends_s and not cut:
            self._remove(pod)
            return
        if not pod.node:
            self._schedule(pod)
        elif broker is None and not cut and self.now_s >= pod.start_s:
            self._start(pod)
        ready = broker is not None and broker.talks(self.now_s) and not broker.disk.leaving and pod.ends_s is None
        if ready != pod.ready:
            pod.ready, pod.ready_s, self.changed = ready, self.now_s, True

    def _schedule(self, pod: PodState) -> None:
        claim = names.volume_claim(self.spec.name, pod.ordinal)
        if self.full or claim in self.deleting or self.cordoned >= set(NODES):
            pod.trouble = "Unschedulable"
            return
        open_nodes = [node for node in NODES if node not in self.cordoned]
        pod.trouble, pod.node = "", open_nodes[pod.ordinal % len(open_nodes)]
        pod.start_s = self.now_s + self.rng.choice((1, 2, 3))
        live = self.api.get("PersistentVolumeClaim", claim)
        if live is not None:
            live["status"] = live.get("status", {}) | {"phase": "Bound"}
            live["status"].setdefault("capacity", {"storage": live["spec"]["resources"]["requests"]["storage"]})
            self.api.touch(live)
        self.changed = True

    def _start(self, pod: PodState) -> None:
        if MISSING in pod.image:
            pod.trouble = "ImagePullBackOff"
            return
        pod.phase = "Running"
        disk = self.disks.setdefault(pod.disk_key, Disk())
        version = self.versions.get(pod.image, tag_of(pod.image))
        readable = readable_format(release(version) or _ANY_RELEASE)
        if BROKEN in pod.image or disk.file_format > readable:
            pod.trouble, pod.restarts, pod.start_s = "CrashLoopBackOff", pod.restarts + 1, self.now_s + 10.0
            return
        disk.file_format = readable
        disk.node_id = disk.node_id or f"id-{self.api.serial()}"
        pod.trouble = ""
        password, former, users = self._mounted()
        broker = BrokerProcess(
            names.pod_host(self.spec.name, self.spec.namespace, pod.ordinal),
            pod.ip,
            disk,
            self.now_s,
            self.slow_load_s,
            version,
            self._configuration(),
            password,
            former,
            left_s=self.now_s,
            bus=pod.bus,
            users=users,
            bus_secrets=self._mounted_secrets(pod),
        )
        broker.contact_s = dict.fromkeys(disk.known, self.now_s)
        self.bus.running[pod.name] = broker
        self.changed = True

    def crash(self, name: str, *, empty: bool = False) -> None:
        """End the process; the kubelet starts it again in the same pod, without its jobs if it is `empty` then."""
        pod = self.pods[name]
        if empty:
            self.disks[pod.disk_key].jobs.clear()
        if self.bus.running.pop(name, None) is not None:
            pod.restarts += 1
            pod.start_s = self.now_s + 2.0

    def _remove(self, pod: PodState) -> None:
        self.bus.running.pop(pod.name, None)
        del self.pods[pod.name]
        self.changed = True
        if pod.disk_key == pod.uid and pod.uid in self.disks:
            self._destroy(pod.uid)

    def _delete_volume(self, name: str) -> None:
        live = self.api.get("PersistentVolumeClaim", name)
        self.deleting.discard(name)
        if live is not None:
            self.api.delete("PersistentVolumeClaim", name)
            self._destroy(live["metadata"]["uid"])
            self.changed = True

    def _destroy(self, key: str) -> None:
        """Destroy a disk. Jobs without other copies are lost by this fault, not by the operator."""
        disk = self.disks.pop(key, None)
        for job in disk.jobs if disk else ():
            if not any(job in other.jobs for other in self.disks.values()):
                self.destroyed.add(job)

    def _mounted(self) -> tuple[str, str, dict[str, str]]:
        """Return the passwords and the users in the file that a pod reads, which may be older than the Secret."""
        seen = [data for at_s, data in self._secrets if at_s <= self.now_s - SECRET_LAG_S] or [
            data for _, data in self._secrets
        ]
        file = _text((seen[-1] if seen else {}).get("disque.conf"))
        lines = [split_words(line.encode()) or [] for line in file.splitlines()]
        said = {words[0]: words[1].decode() for words in lines if words[0] != b"user"}
        users = {words[1].decode(): b" ".join(words[2:]).decode() for words in lines if words[0] == b"user"}
        return said.get(b"requirepass", ""), said.get(b"requirepass-former", ""), users

    def _mounted_secrets(self, pod: PodState) -> frozenset[str]:
        """Return the cluster secrets that a broker reads; its file must exist when the pod starts."""
        if not pod.bus.secrets:
            return frozenset()
        return frozenset(self._bus_secrets()[pod.bus.file].splitlines())

    def _configuration(self) -> dict[str, str]:
        live = self.api.get("ConfigMap", names.config_map(self.spec.name))
        config = {option.name: option.kind.show(option.default).decode() for option in LIVE} | _OF_MEMBERS
        for line in (live or {"data": {"disque.conf": ""}})["data"]["disque.conf"].splitlines():
            name, _, rest = line.partition(" ")
            if name in config:
                kind = OPTION_OF[name].kind
                config[name] = kind.show(read(kind, rest)).decode()
        return config

    # --- observation --------------------------------------------------------------------------------------------------

    def observe(self) -> Observed:
        """Return the present state."""
        live = self.stateful_set()
        passwords = self._passwords(names.auth_secret(self.spec.name))
        of_clients = self._passwords(names.client_secret(self.spec.name))
        kept = (passwords.current, passwords.following, passwords.former) if passwords else ()
        keys = [key for key in (*kept, of_clients and of_clients.current, self.own_password) if key]
        brokers, unreachable = {}, {}
        for pod in self.pods.values():
            broker = self.bus.running.get(pod.name)
            if broker is None or broker.cut_off:
                unreachable[pod.name] = "connection refused"
            elif broker.password and not broker.accepted_passwords & set(keys):
                unreachable[pod.name] = LOCKED
            else:
                brokers[pod.name] = self._broker(pod, broker)
        return Observed(
            pods=tuple(sorted((self._pod(pod) for pod in self.pods.values()), key=lambda pod: pod.ordinal)),
            brokers=brokers,
            unreachable=unreachable,
            stateful_set=self._stateful_set(live),
            volumes=self.storage.volumes(self.spec.uid, self.deleting),
            passwords=passwords,
            client_passwords=of_clients,
            own_password=self.own_password if self.spec.auth.secret_name else None,
            expandable=self.storage.expandable,
            children=dict(self.api.objects),
            status=self.status,
            default_image=self.default_image,
            sees_nodes=self.sees_nodes,
            bus_secrets=self._bus_secrets(),
            **self.certificates.observed(self.spec, self.now_s),
            **declarations(self.api, self.spec.name, self.now_s),
        )

    def _bus_secrets(self) -> dict[str, str]:
        live = self.api.get("Secret", names.bus_secret(self.spec.name))
        return {name: _text(value) for name, value in ((live or {}).get("data") or {}).items()}

    def _passwords(self, name: str) -> Passwords | None:
        secret = self.api.get("Secret", name)
        if secret is None or not (secret.get("data") or {}).get("password"):
            return None
        data, annotations = secret["data"], secret["metadata"].get("annotations") or {}
        rotated_at = annotations.get(names.ROTATED_AT, "")
        return Passwords(
            _text(data["password"]),
            _text(data.get("former-password")) or None,
            int(annotations.get(names.ROTATION, 0)),
            self.now_s - seconds(rotated_at) if rotated_at else 0.0,
            rotated_at,
            _text(data.get("next-password")) or None,
        )

    def _stateful_set(self, live: Json | None) -> StatefulSet | None:
        if live is None:
            return None
        metadata, spec = live["metadata"], live["spec"]
        annotations = metadata.get("annotations") or {}
        return StatefulSet(
            spec["replicas"],
            self._seen[1],
            self._seen[0] == metadata["generation"],
            spec["template"]["spec"]["containers"][0]["image"],
            metadata["uid"],
            int(annotations.get(names.HIBERNATED_MEMBERS, 0)),
            annotations.get(names.IMAGE, ""),
            annotations.get(names.UPDATE, ""),
            annotations.get(names.SPEC_DIGEST, ""),
            annotations.get(names.TEMPLATE_DIGEST, ""),
        )

    def _pod(self, pod: PodState) -> Pod:
        return Pod(
            pod.name,
            pod.ordinal,
            pod.uid,
            pod.revision,
            pod.image,
            self.now_s - pod.created_s,
            pod.phase,
            pod.ready,
            self.now_s - pod.ready_s if pod.ready else 0.0,
            pod.ends_s is not None,
            pod.ip if pod.node else "",
            pod.node,
            pod.trouble,
            "",
            pod.restarts,
            pod.tls,
            pod.bus,
            pod.drain,
            ZONES.get(pod.node, ""),
            pod.node in self.cordoned,
            pod.external,
            NODE_ADDRESSES.get(pod.node, ()) if self.sees_nodes else (),
        )

    def _broker(self, pod: PodState, broker: BrokerProcess) -> Broker:
        disk = broker.disk
        if not broker.loaded(self.now_s):
            remembered = {entry["pod"]: entry["nodeId"] for entry in self.status.get("members") or ()}
            identity = remembered.get(pod.name, "")
            hashes = broker.password_hashes
            return Broker(pod.name, identity, broker.version, loading=True, password_hashes=hashes)
        leaving = None
        if disk.leaving:
            left, replicas = len(disk.jobs), len(self.ordered.replicas_on(disk.node_id))
            done = not left and not replicas
            leaving = Leaving(done, left, 1.0, float(left), self.now_s - broker.left_s, replicas_left=replicas)
        peers = tuple(
            Peer(
                node_id,
                host,
                node_id in broker.connected,
                False,
                node_id in broker.leaving_members,
                self.now_s - broker.contact_s.get(node_id, broker.started_s),
            )
            for node_id, host in disk.known.items()
        )
        return Broker(
            pod.name,
            disk.node_id,
            broker.version,
            leaving=leaving,
            peers=peers,
            jobs=len(disk.jobs),
            queued=len(disk.jobs),
            max_replicate=max(disk.jobs.values(), default=1),
            repairs="jobs with lost copies" if not disk.leaving and self.bus.short(broker) else "",
            uptime_s=self.now_s - broker.started_s,
            config={**broker.config, "cluster-announce-hostname": broker.host},
            password_hashes=broker.password_hashes,
            file_format=disk.file_format,
            ordered=self.ordered.status_of(broker, self.now_s),
            **told_by(self.api, broker),
        )

    # --- actions ------------------------------------------------------------------------------------------------------

    def perform(self, action: Action) -> None:
        """Execute an action; raises ConflictError, CommandFailedError or InvariantError."""
        self.changed = True
        if isinstance(action, Apply):
            self._guard_apply(action.manifest)
            self.storage.apply(action.manifest, self.now_s)
            self.api.apply(action.manifest)
        elif isinstance(action, Issue):
            self.api.apply(action.filled())
        elif isinstance(action, Create):
            self.api.create(action.manifest)
        elif isinstance(action, DeleteChild):
            self._delete_child(action)
        elif isinstance(action, DeletePod):
            self._replace_pod(action)
        elif isinstance(action, WriteStatus):
            write_status(self.api, action)
        else:
            self._command(action)

    def _guard_apply(self, manifest: Json) -> None:
        """Check that a scale-down removes no pod with jobs, unless the policy allows it or all pods stop."""
        live = self.stateful_set()
        if manifest["kind"] != "StatefulSet" or live is None or not manifest["spec"]["replicas"]:
            return
        for pod in self.pods.values():
            if not manifest["spec"]["replicas"] <= pod.ordinal < live["spec"]["replicas"]:
                continue
            broker = self.bus.running.get(pod.name)
            left = self._jobs_of(pod) or (broker is not None and self.ordered.replicas_on(broker.node_id))
            if left and self.spec.drain.on_timeout == "Wait":
                raise InvariantError(f"{pod.name} is removed with {left}")

    def _jobs_of(self, pod: PodState) -> set[str]:
        disk = self.disks.get(pod.disk_key)
        return set(disk.jobs) - self.bus.acknowledged if disk else set()

    def _delete_child(self, action: DeleteChild) -> None:
        if action.kind != "PersistentVolumeClaim":
            self.api.delete(action.kind, action.name, action.uid)
            return
        live = self.api.get(action.kind, action.name)
        if live is None:
            return
        if live["metadata"]["uid"] != action.uid:
            raise ConflictError(action.name)
        disk = self.disks.get(action.uid)
        left = set(disk.jobs) - self.bus.acknowledged if disk else set()
        if left:
            raise InvariantError(f"{action.name} is deleted with {left}")
        if names.pod(self.spec.name, names.ordinal(action.name)) in self.pods:
            raise InvariantError(f"{action.name} is deleted before its pod")
        self.deleting.add(action.name)

    def _replace_pod(self, action: DeletePod) -> None:
        pod = self.pods.get(action.name)
        if pod is None:
            return
        if pod.uid != action.uid:
            raise ConflictError(action.name)
        loses_disk = pod.disk_key == pod.uid or names.volume_claim(self.spec.name, pod.ordinal) in self.deleting
        left = self._jobs_of(pod)
        if loses_disk and left and action.name in self.bus.running:
            raise InvariantError(f"{action.name} is replaced with {left} and without a volume")
        broker = self.bus.running.get(action.name)
        if broker is not None and broker.talks(self.now_s):
            self.ordered.check_stop(broker.node_id, self.now_s)
        self.delete_pod(action.name)

    def _command(self, action: Command) -> None:
        broker = self.bus.running.get(action.pod)
        if broker is None or broker.cut_off or broker.node_id != action.node_id or not broker.loaded(self.now_s):
            raise ConflictError(f"{action.pod} is not {action.node_id}")
        if self.ordered.execute(action.words, self.now_s):
            return
        match action.words:
            case ("CLUSTER", "LEAVING", word):
                self._leave(broker, word == "yes")
            case ("CLUSTER", "FORGET", node_id):
                self._forget(broker, node_id)
            case ("CLUSTER", "MEET", ip, _):
                for other in self.bus.running.values():
                    if other.ip == ip and other.talks(self.now_s) and broker.talks(self.now_s):
                        broker.learn(other, self.now_s, asked=True)
                        other.learn(broker, self.now_s, asked=True)
            case ("CONFIG", "SET", "requirepass" | "requirepass-former" as name, value):
                broker.set_password(name, value)
            case ("CONFIG", "SET", name, value):
                kind = OPTION_OF[name].kind
                broker.config[name] = kind.show(kind.parse(value.encode())).decode()
            case _:
                if not execute(broker, action):
                    raise InvariantError(f"unknown command {action.words}")

    def _leave(self, broker: BrokerProcess, leaving: bool) -> None:
        stay = [one for one in self.bus.running.values() if one.node_id in broker.connected and not one.disk.leaving]
        if leaving and not stay:
            raise CommandFailedError("ERR This node cannot leave: no other node stays")
        if leaving and any(one.disk.leaving for one in self.bus.running.values() if one is not broker):
            raise InvariantError("two brokers leave at the same time")
        if leaving != broker.disk.leaving:
            broker.disk.leaving, broker.left_s = leaving, self.now_s

    def _forget(self, broker: BrokerProcess, node_id: str) -> None:
        """Execute CLUSTER FORGET, but never for a running broker, nor for an ID on the disk of an expected pod."""
        if any(one.node_id == node_id for one in self.bus.running.values()):
            raise InvariantError(f"{node_id} is running and is forgotten")
        live = self.stateful_set()
        for pod in self.pods.values():
            disk = self.disks.get(pod.disk_key)
            if live and pod.ordinal < live["spec"]["replicas"] and disk and disk.node_id == node_id:
                raise InvariantError(f"{node_id} is on the volume of {pod.name} and is forgotten")
        broker.forget(node_id, self.now_s)

    # --- result -------------------------------------------------------------------------------------------------------

    def lost(self) -> set[str]:
        """Return acknowledged, unprocessed jobs that no disk has and that no fault destroyed."""
        there = {job for disk in self.disks.values() for job in disk.jobs}
        return self.accepted - self.bus.acknowledged - there - self.destroyed


def _text(encoded: str | None) -> str:
    return base64.b64decode(encoded).decode() if encoded else ""
