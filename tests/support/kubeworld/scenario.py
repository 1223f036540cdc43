"""Scenarios: the reconciliation loop in a world with faults and changes of the spec, with checks of the result.

The modelled operator observes (sometimes an outdated state), plans, executes actions up to the first that fails, and
may crash after any action. The world checks invariants and raises InvariantError; this module checks the final state.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from disque_operator import names
from disque_operator.actions import Action, Apply, Command, DeleteChild, DeletePod, WriteStatus
from disque_operator.brokers import CommandFailedError
from disque_operator.decisions import Event, Plan
from disque_operator.observed import LOCKED, Observed
from disque_operator.plan import plan
from disque_operator.queue import Key
from disque_operator.resources import same, settings
from disque_operator.reverts import Reverts
from disque_operator.servicespec import Exposure
from disque_operator.spec import Auth, Drain, Persistence, Spec, Storage
from disque_operator.turns import Turns
from support.kubeworld.evictions import drain_node
from support.kubeworld.objects import ConflictError, InvariantError
from support.kubeworld.services import external_directive
from support.kubeworld.truth import false_claims, not_in_effect
from support.kubeworld.world import NODES, ZONES, World

GOOD_IMAGE: Final = "disque:1"
SETTLED_ROUNDS: Final = 8
"""After this many consecutive rounds without an action the cluster counts as settled."""
TIMEOUT_S: Final = 1500


def a_spec(**fields: object) -> Spec:
    """Return the spec of a cluster of three members."""
    given: dict[str, object] = {"name": "mail", "namespace": "prod", "uid": "u1", "generation": 1, "image": GOOD_IMAGE}
    given["auth"] = Auth(grace_s=60)
    return Spec(**(given | fields))  # type: ignore[arg-type]  # fields by name


def edited(spec: Spec, **fields: object) -> Spec:
    """Return the spec with other fields."""
    return Spec(**(dict(spec) | fields))


@dataclass
class FaultRates:
    """Probabilities of faults."""

    crash: float = 0.0
    """The operator crashes, per action."""
    stale: float = 0.0
    """The operator acts on a state that is some seconds old, per round."""
    conflict: float = 0.0
    fault: float = 0.0
    """One of `_FAULTS` happens, per second."""


@dataclass
class Scenario:
    """A world and its operator."""

    spec: Spec = field(default_factory=a_spec)
    seed: int = 1
    rates: FaultRates = field(default_factory=FaultRates)
    load: bool = True
    world: World = field(init=False)
    reverts: Reverts = field(init=False)
    rng: random.Random = field(init=False)
    events: list[Event] = field(default_factory=list)
    acted: list[Action] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    """What happened, for debugging a failed seed."""
    last: Plan = field(default_factory=Plan)
    quiet_rounds: int = 0
    """How many consecutive rounds had nothing to do."""
    turns: Turns = field(default_factory=lambda: Turns(tuple))
    """Shared by the clusters of one operator (`fleet`)."""
    crash_after: int | None = None
    """The operator crashes once, after this number of actions."""
    _due_s: float = 0.0
    _jobs: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.spec, self.seed)
        self.rng = random.Random(self.seed * 7919)
        self._start_operator()

    def _start_operator(self) -> None:
        """Start the operator without a memory."""
        self.reverts = Reverts(lambda: self.world.now_s, lambda _key, _kind: None)

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self, seconds: int) -> None:
        """Advance the time."""
        for _ in range(seconds):
            self._step()

    def until(self, condition: Callable[[], bool], seconds: int = TIMEOUT_S) -> None:
        """Advance the time until a condition holds."""
        for _ in range(seconds):
            if condition():
                return
            self._step()
        raise AssertionError(f"timeout: {self.describe()}")

    def settle(self, seconds: int = TIMEOUT_S) -> None:
        """Advance the time until the cluster has settled."""
        self.quiet_rounds = 0
        for _ in range(seconds):
            self._step()
            if self.quiet_rounds >= SETTLED_ROUNDS:
                return
        raise AssertionError(f"not settled: {self.describe()}")

    def _step(self) -> None:
        """Advance by a second, with a round of the operator if one is due."""
        self.world.step()
        if self.load:
            self._clients()
        if self.rates.fault and self.rng.random() < self.rates.fault:
            self._fault()
        if self.world.now_s < self._due_s and not self.world.changed:
            return
        self.world.changed = False
        self.round()
        busy = self.last.actions or self.last.again_s < 10
        self.quiet_rounds = 0 if busy else self.quiet_rounds + 1

    @property
    def _key(self) -> Key:
        return self.world.spec.namespace, self.world.spec.name

    def round(self) -> None:
        """Run a round: observe, plan, execute."""
        world = self.world
        spec, observed, missing = world.spec, world.observe(), not_in_effect(world)
        key = (spec.namespace, spec.name)
        observed = replace(observed, waits_for=self.turns.ahead_of(key))
        if self.rng.random() < self.rates.stale:
            observed = _frozen(observed)
            for _ in range(self.rng.randint(1, 6)):
                world.step()
        observed = replace(observed, reverts=self.reverts.of(self._key))
        self.last = plan(spec, observed, world.now_s, f"password-{self.rng.randrange(10**6)}")
        self.turns.report(key, self.last.turn)
        self._due_s = world.now_s + self.last.again_s
        _check_disruption(observed, self.last, spec)
        assert not (wrong := false_claims(self.last.status, spec, missing)), f"{wrong}: {self.describe()}"
        for action in self.last.actions:
            if not self._act(action):
                return
        world.status = self.last.status
        self.events += self.last.events

    def _act(self, action: Action) -> bool:
        """Execute an action; return whether the round continues."""
        if self.rng.random() < self.rates.conflict:
            self._due_s = self.world.now_s + 1
            return False
        self.acted.append(action)
        self.log.append(f"{self.world.now_s:.0f} {_short(action)}")
        try:
            self.world.perform(action)
        except (ConflictError, CommandFailedError) as error:
            self.log.append(f"  {error}")
            self._due_s = self.world.now_s + 1
            return False
        except InvariantError as error:
            raise InvariantError(f"{error}: {self.describe()}") from error
        if isinstance(action, Apply):
            self.reverts.applied(self._key, action)
        if self.rng.random() < self.rates.crash or len(self.acted) == self.crash_after:
            self._due_s = self.world.now_s + self.rng.randint(1, 20)
            self.log.append("  the operator crashes")
            self._start_operator()
            return False
        return True

    # --- clients ------------------------------------------------------------------------------------------------------

    def _clients(self) -> None:
        if self._jobs < 400 and self.rng.random() < 0.5:
            self.add(self.rng.choice((1, 1, 2)))
        waiting = sorted(self.world.accepted - self.world.bus.acknowledged)
        if len(waiting) > 60:
            self.world.bus.acknowledge(self.rng.choice(waiting), self.world.now_s)

    def add(self, replicate: int = 1) -> str | None:
        """Add a job; return its ID, or None if its copies cannot be made."""
        self._jobs += 1
        job = f"job-{self._jobs}"
        if not self.world.bus.add(job, replicate, self.world.now_s, self._jobs):
            return None
        self.world.accepted.add(job)
        return job

    def finish(self, more_than: int) -> None:
        """Acknowledge all jobs with a higher REPLICATE."""
        for broker in self.world.disks.values():
            for job, replicate in list(broker.jobs.items()):
                if replicate > more_than:
                    self.world.bus.acknowledged.add(job)
                    del broker.jobs[job]

    # --- faults -------------------------------------------------------------------------------------------------------

    def _fault(self) -> None:
        kind = self.rng.choice(_FAULTS)
        self.log.append(f"{self.world.now_s:.0f} {kind.__name__.strip('_')}")
        kind(self)

    def pods(self) -> list[str]:
        """Return the names of the pods."""
        return sorted(self.world.pods)

    def describe(self) -> str:
        """Return the state for the message of a failed check."""
        status = self.last.status
        members = [
            (entry["pod"], entry["state"], entry["nodeId"], entry["jobs"]) for entry in status.get("members", ())
        ]
        conditions = [
            f"{entry['type']}={entry['status']} {entry['reason']}: {entry['message']}"
            for entry in status.get("conditions", ())
        ]
        lines = [f"seed {self.seed}", f"phase {status.get('phase')}", f"spec {_differences(self.world.spec)}"]
        return "\n".join([*lines, str(members), *conditions, *self.log[-60:]])


def _frozen(observed: Observed) -> Observed:
    return replace(observed, children=copy.deepcopy(dict(observed.children)))


def _short(action: Action) -> str:
    if isinstance(action, Command):
        return f"{action.pod}: {' '.join(action.words)}"
    if isinstance(action, WriteStatus):
        return f"status of {action.resource['kind']} {action.resource['metadata']['name']}"
    if isinstance(action, DeleteChild | DeletePod):
        return f"{type(action).__name__} {action.name} ({action.why})"
    manifest = action.manifest
    replicas = manifest["spec"]["replicas"] if manifest["kind"] == "StatefulSet" else ""
    return f"{manifest['kind']} {manifest['metadata']['name']} {replicas} ({action.why})"


def _differences(spec: Spec) -> str:
    return f"replicas {spec.replicas} image {spec.image} hibernate {spec.hibernate} {spec.drain} {spec.storage}"


def _check_disruption(observed: Observed, planned: Plan, spec: Spec) -> None:
    """Check that there is at most one disruption, and none while another member is out of service."""
    pods = [action for action in planned.actions if isinstance(action, DeletePod)]
    leaves = [action for action in planned.actions if isinstance(action, Command) and action.words[-1] == "yes"]
    leaves = [action for action in leaves if action.words[:2] == ("CLUSTER", "LEAVING")]
    assert len(pods) + len(leaves) <= 1, planned.actions
    assert not spec.paused or not planned.actions
    for action in pods:
        here = next(pod for pod in observed.pods if pod.name == action.name)
        if here.ready:
            others = [pod for pod in observed.pods if pod is not here]
            assert all(pod.ready and not pod.terminating for pod in others), f"{action} while others are not ready"


# --- faults -----------------------------------------------------------------------------------------------------------


def _delete_pod(scenario: Scenario) -> None:
    if scenario.world.pods:
        scenario.world.delete_pod(scenario.rng.choice(scenario.pods()), force=scenario.rng.random() < 0.3)


def _delete_all_pods(scenario: Scenario) -> None:
    if scenario.rng.random() < 0.3 and not scenario.world.spec.storage.ephemeral:
        for name in scenario.pods():
            scenario.world.delete_pod(name)


def _crash_process(scenario: Scenario) -> None:
    if scenario.world.pods:
        scenario.world.crash(scenario.rng.choice(scenario.pods()))


def _cut_off_node(scenario: Scenario) -> None:
    scenario.world.cut_off[scenario.rng.choice(NODES)] = scenario.world.now_s + scenario.rng.randint(5, 90)


def _delete_claim(scenario: Scenario) -> None:
    if scenario.world.pods and scenario.rng.random() < 0.5:
        ordinal = names.ordinal(scenario.rng.choice(scenario.pods()))
        scenario.world.delete_claim(ordinal)
        if scenario.rng.random() < 0.5:
            scenario.world.delete_pod(names.pod(scenario.world.spec.name, ordinal))


def _break_seeds(scenario: Scenario) -> None:
    scenario.world.bus.no_seeds_until_s = scenario.world.now_s + 400


def _disconnect_members(scenario: Scenario) -> None:
    """Make two members forget each other."""
    brokers = [scenario.world.bus.running[name] for name in sorted(scenario.world.bus.running)]
    if len(brokers) > 1:
        one, other = scenario.rng.sample(brokers, 2)
        for broker, gone in ((one, other), (other, one)):
            broker.disk.known.pop(gone.node_id, None)
            broker.forgotten[gone.node_id] = scenario.world.now_s + 60


def _scale(scenario: Scenario) -> None:
    scenario.world.edit(replicas=scenario.rng.randint(1, 5))


def _scale_manually(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral:
        scenario.world.scale_manually(scenario.rng.randint(0, 6))


def _change_image(scenario: Scenario) -> None:
    scenario.world.edit(
        image=scenario.rng.choice(("disque:1", "disque:2", "disque:3", "disque:broken", "disque:missing"))
    )


def _change_config(scenario: Scenario) -> None:
    scenario.world.edit(
        config=scenario.rng.choice(({}, {"hz": "20"}, {"slowlog-max-len": "64"}, {"tcp-backlog": "100"}))
    )


def _rotate_password(scenario: Scenario) -> None:
    auth = scenario.world.spec.auth
    scenario.world.edit(auth=auth.model_copy(update={"rotation": auth.rotation + 1}))


def _lose_password(scenario: Scenario) -> None:
    """Delete one of the Secrets with the password, or both, which only restarts can repair."""
    name = scenario.world.spec.name
    secrets = [names.auth_secret(name), names.client_secret(name)]
    both = not scenario.world.spec.storage.ephemeral and scenario.rng.random() < 0.3
    for secret in secrets if both else [scenario.rng.choice(secrets)]:
        scenario.world.api.delete("Secret", secret)


def _switch_auth(scenario: Scenario) -> None:
    auth = scenario.world.spec.auth
    scenario.world.edit(auth=auth.model_copy(update={"enabled": not auth.enabled}))


def _hibernate(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral:
        scenario.world.edit(hibernate=not scenario.world.spec.hibernate)


def _pause(scenario: Scenario) -> None:
    scenario.world.edit(paused=not scenario.world.spec.paused)


def _change_exposure(scenario: Scenario) -> None:
    exposures = (
        None,
        Exposure(type="NodePort"),
        Exposure(type="LoadBalancer"),
        Exposure(type="ClusterIP", host="{pod}.example.com"),
    )
    scenario.world.edit(exposure=scenario.rng.choice(exposures))


def _change_drain_policy(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral:
        policy = scenario.rng.choice(
            (Drain(), Drain(timeout_s=20, on_timeout="Retain"), Drain(timeout_s=20, on_timeout="Wait"))
        )
        scenario.world.edit(drain=policy)


def _toggle_drain_annotation(scenario: Scenario) -> None:
    if scenario.world.pods:
        pod = scenario.world.pods[scenario.rng.choice(scenario.pods())]
        pod.drain = not pod.drain


def _drain_node(scenario: Scenario) -> None:
    """Cordon a node and evict its pods, or uncordon it."""
    node = scenario.rng.choice(NODES)
    if node in scenario.world.cordoned:
        scenario.world.cordoned.discard(node)
    else:
        drain_node(scenario.world, node)


def _toggle_scheduling(scenario: Scenario) -> None:
    scenario.world.full = not scenario.world.full


def _edit_child(scenario: Scenario) -> None:
    live = scenario.world.api.get("ConfigMap", names.config_map(scenario.world.spec.name))
    if live is not None:
        live["data"]["disque.conf"] += "# manual\n"
        scenario.world.api.touch(live)


def _delete_child(scenario: Scenario) -> None:
    scenario.world.api.delete("Service", names.client_service(scenario.world.spec.name))


_FAULTS: Final[tuple[Callable[[Scenario], None], ...]] = (
    *(_delete_pod,) * 3,
    _delete_all_pods,
    *(_crash_process,) * 3,
    *(_cut_off_node,) * 2,
    _delete_claim,
    _break_seeds,
    _disconnect_members,
    *(_scale,) * 4,
    _scale_manually,
    *(_change_image,) * 3,
    *(_change_config,) * 2,
    *(_rotate_password,) * 2,
    _lose_password,
    _switch_auth,
    *(_hibernate,) * 2,
    _pause,
    _change_exposure,
    _change_drain_policy,
    _toggle_drain_annotation,
    *(_drain_node,) * 2,
    _toggle_scheduling,
    _edit_child,
    _delete_child,
)


# --- fault runs -------------------------------------------------------------------------------------------------------


def run_faults(seed: int, *, ephemeral: bool = False, faults_s: int = 300) -> Scenario:
    """Create a cluster, inject faults, and check that it settles by the last spec."""
    rng = random.Random(seed)
    spec = a_spec(replicas=rng.randint(1, 4), storage=Storage(ephemeral=ephemeral))
    if ephemeral:
        spec = edited(spec, persistence=Persistence(appendonly=False))
    scenario = Scenario(spec, seed)
    scenario.settle()
    scenario.rates = FaultRates(crash=0.1, stale=0.1, conflict=0.05, fault=0.06)
    scenario.run(faults_s)
    recover(scenario)
    return scenario


def end_faults(scenario: Scenario) -> None:
    """End all faults, and make the last spec valid."""
    world = scenario.world
    scenario.rates = FaultRates()
    world.full = False
    world.cordoned.clear()
    world.cut_off = {}
    for pod in world.pods.values():
        pod.drain = False
    good = world.spec.image if world.spec.image in {"disque:1", "disque:2", "disque:3"} else GOOD_IMAGE
    world.edit(image=good, paused=False, hibernate=False, drain=Drain())
    scenario.log.append(f"{world.now_s:.0f} faults end")


def recover(scenario: Scenario) -> None:
    """End all faults, and check that the cluster settles."""
    world = scenario.world
    end_faults(scenario)
    goes = world.spec.storage.ephemeral or names.volume_claim(world.spec.name, 0) in world.deleting
    alone = world.spec.replicas == 1 and goes
    scenario.finish(more_than=world.spec.replicas)
    scenario.run(30)
    scenario.load = False
    scenario.finish(more_than=0 if alone else world.spec.replicas)
    scenario.run(200)
    delete_locked_pods(scenario)
    scenario.settle()
    check_settled(scenario)


def delete_locked_pods(scenario: Scenario) -> None:
    """Delete pods as the status advises: brokers that reject all passwords and have no volume."""
    world = scenario.world
    for name, why in world.observe().unreachable.items():
        claim = names.volume_claim(world.spec.name, names.ordinal(name))
        if why == LOCKED and (world.spec.storage.ephemeral or claim in world.deleting):
            world.delete_pod(name)


def check_settled(scenario: Scenario) -> None:
    """Check that the cluster matches its spec, and that nothing is written."""
    world, spec = scenario.world, scenario.world.spec
    scenario.load = False
    assert not world.lost(), f"lost {world.lost()}: {scenario.describe()}"
    status = world.status
    where = scenario.describe()
    assert status["phase"] == "Running", where
    assert len(world.pods) == spec.replicas, where
    assert {pod.image for pod in world.pods.values()} == {spec.image}, where
    brokers = list(world.bus.running.values())
    ids = {broker.node_id for broker in brokers}
    for broker in brokers:
        assert set(broker.disk.known) == ids - {broker.node_id} == broker.connected, where
        assert not broker.disk.leaving, where
        assert broker.config["cluster-zone"] == ZONES[world.pods[broker.host.partition(".")[0]].node], where
        for name, value in settings(spec).items():
            assert same(name, broker.config[name], value), (name, where)
    observed = world.observe()
    for pod in observed.pods:
        wanted_address = external_directive(world.api, spec, pod)
        assert world.bus.running[pod.name].config["cluster-announce-external"] == wanted_address, where
    outside = {name for kind, name in world.api.objects if kind == "Service" and name.endswith("-external")}
    members = range(spec.replicas if spec.exposure is not None else 0)
    assert outside == {names.external_service(spec.name, ordinal) for ordinal in members}, where
    wanted = {observed.passwords.current} if spec.auth.enabled and observed.passwords else set()
    assert all(broker.accepted_passwords == wanted for broker in brokers), where
    ready = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
    assert ready["status"] == "True", where
    for volume in observed.volumes:
        kept = world.disks[volume.uid].jobs if volume.uid in world.disks else {}
        retained = kept or not volume.drained or spec.storage.retention.when_scaled == "Retain"
        assert volume.ordinal < spec.replicas or retained, where
    acted, events, before = len(scenario.acted), len(scenario.events), world.status
    scenario.run(120)
    assert len(scenario.acted) == acted, where
    assert len(scenario.events) == events, where
    assert world.status == before, where
