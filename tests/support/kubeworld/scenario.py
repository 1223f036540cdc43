"""A story: the plan loop in a world, among faults and people who change their minds, and whether it comes out right.

The operator is played as it is: it looks (sometimes at what was), plans, acts up to the first thing that fails, and may
die after any action. Checks that need no end are in the world itself, which raises BreachError; the others are here.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from disque_operator import names
from disque_operator.actions import Action, Apply, Command, DeletePod
from disque_operator.decisions import Event, Plan
from disque_operator.observed import LOCKED, Observed
from disque_operator.plan import plan
from disque_operator.resources import same, settings
from disque_operator.spec import Auth, Drain, Persistence, Spec, Storage
from support.kubeworld.objects import ConflictError
from support.kubeworld.world import NODES, InvariantError, RefusedError, World

GOOD_IMAGE: Final = "disque:1"
SETTLED_ROUNDS: Final = 8
"""So many rounds without an action, one after the other, are peace."""
TIMEOUT_S: Final = 1500


def a_spec(**fields: object) -> Spec:
    """A cluster of three."""
    given: dict[str, object] = {"name": "mail", "namespace": "prod", "uid": "u1", "generation": 1, "image": GOOD_IMAGE}
    given["auth"] = Auth(grace_s=60)
    return Spec(**(given | fields))  # type: ignore[arg-type]  # fields by name


def edited(spec: Spec, **fields: object) -> Spec:
    """The same spec with other fields."""
    return Spec(**(dict(spec) | fields))


@dataclass
class FaultRates:
    """How likely things go wrong in a round, or in a second."""

    dies: float = 0.0
    """The operator, after an action."""
    stale: float = 0.0
    """It acts on what was some seconds ago."""
    conflicts: float = 0.0
    fault: float = 0.0
    """Something happens in a second."""


@dataclass
class Scenario:
    """A world and its operator."""

    spec: Spec = field(default_factory=a_spec)
    seed: int = 1
    rates: FaultRates = field(default_factory=FaultRates)
    load: bool = True
    world: World = field(init=False)
    rng: random.Random = field(init=False)
    events: list[Event] = field(default_factory=list)
    acted: list[Action] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    """What happened, for whoever reads a failing seed."""
    last: Plan = field(default_factory=Plan)
    dies_after: int | None = None
    """The operator dies after so many actions of its whole life, once."""
    _due_s: float = 0.0
    _jobs: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.spec, self.seed)
        self.rng = random.Random(self.seed * 7919)

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            self._second()

    def until(self, condition: Callable[[], bool], seconds: int = TIMEOUT_S) -> None:
        """Let time pass until something is so."""
        for _ in range(seconds):
            if condition():
                return
            self._second()
        raise AssertionError(f"it did not come: {self.describe()}")

    def settle(self, seconds: int = TIMEOUT_S) -> None:
        """Let time pass until the operator has nothing to do, round after round."""
        recover = 0
        for _ in range(seconds):
            if self._second():
                restless = self.last.actions or self.last.again_s < 10
                recover = 0 if restless else recover + 1
            if recover >= SETTLED_ROUNDS:
                return
        raise AssertionError(f"no peace: {self.describe()}")

    def _second(self) -> bool:
        """Whether the operator had a round."""
        self.world.step()
        if self.load:
            self._clients()
        if self.rates.fault and self.rng.random() < self.rates.fault:
            self._fault()
        if self.world.now_s < self._due_s and not self.world.changed:
            return False
        self.world.changed = False
        self.round()
        return True

    def round(self) -> None:
        """The operator looks, plans and acts."""
        world = self.world
        spec, observed = world.spec, world.observe()
        if self.rng.random() < self.rates.stale:
            observed = _frozen(observed)
            for _ in range(self.rng.randint(1, 6)):
                world.step()
        self.last = plan(spec, observed, world.now_s, f"password-{self.rng.randrange(10**6)}")
        self._due_s = world.now_s + self.last.again_s
        _check_disruption(observed, self.last, spec)
        for action in self.last.actions:
            if not self._act(action):
                return
        world.status = self.last.status
        self.events += self.last.events

    def _act(self, action: Action) -> bool:
        """Whether the round goes on."""
        if self.rng.random() < self.rates.conflicts:
            self._due_s = self.world.now_s + 1
            return False
        self.acted.append(action)
        self.log.append(f"{self.world.now_s:.0f} {_short(action)}")
        try:
            self.world.perform(action)
        except (ConflictError, RefusedError) as error:
            self.log.append(f"  {error}")
            self._due_s = self.world.now_s + 1
            return False
        except InvariantError as error:
            raise InvariantError(f"{error}: {self.describe()}") from error
        if self.rng.random() < self.rates.dies or len(self.acted) == self.dies_after:
            self._due_s = self.world.now_s + self.rng.randint(1, 20)
            self.log.append("  the operator dies")
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
        """A job, if its copies can be made."""
        self._jobs += 1
        job = f"job-{self._jobs}"
        if not self.world.bus.add(job, replicate, self.world.now_s, self._jobs):
            return None
        self.world.accepted.add(job)
        return job

    def finish(self, more_than: int) -> None:
        """Workers are done with all jobs that ask for more copies than that."""
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
        """Names of the pods there are."""
        return sorted(self.world.pods)

    def describe(self) -> str:
        """What a person wants to know of a failure."""
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
    if not isinstance(action, Apply):
        return f"{type(action).__name__} {action.name} ({action.why})"
    manifest = action.manifest
    replicas = manifest["spec"]["replicas"] if manifest["kind"] == "StatefulSet" else ""
    return f"{manifest['kind']} {manifest['metadata']['name']} {replicas} ({action.why})"


def _differences(spec: Spec) -> str:
    return f"replicas {spec.replicas} image {spec.image} hibernate {spec.hibernate} {spec.drain} {spec.storage}"


def _check_disruption(observed: Observed, planned: Plan, spec: Spec) -> None:
    """At most one step that disrupts, and none while another node is out of service."""
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


# --- what can happen --------------------------------------------------------------------------------------------------


def _pod_deleted(scenario: Scenario) -> None:
    if scenario.world.pods:
        scenario.world.delete_pod(scenario.rng.choice(scenario.pods()), force=scenario.rng.random() < 0.3)


def _all_pods_deleted(scenario: Scenario) -> None:
    if scenario.rng.random() < 0.3 and not scenario.world.spec.storage.ephemeral:
        for name in scenario.pods():
            scenario.world.delete_pod(name)


def _process_crashed(scenario: Scenario) -> None:
    if scenario.world.pods:
        scenario.world.crash(scenario.rng.choice(scenario.pods()))


def _node_cut_off(scenario: Scenario) -> None:
    scenario.world.cut_off[scenario.rng.choice(NODES)] = scenario.world.now_s + scenario.rng.randint(5, 90)


def _claim_deleted(scenario: Scenario) -> None:
    if scenario.world.pods and scenario.rng.random() < 0.5:
        ordinal = names.ordinal(scenario.rng.choice(scenario.pods()))
        scenario.world.delete_claim(ordinal)
        if scenario.rng.random() < 0.5:
            scenario.world.delete_pod(names.pod(scenario.world.spec.name, ordinal))


def _names_lead_nowhere(scenario: Scenario) -> None:
    scenario.world.bus.no_seeds_until_s = scenario.world.now_s + 400


def _split(scenario: Scenario) -> None:
    """Two members lose each other, and all names."""
    brokers = [scenario.world.bus.running[name] for name in sorted(scenario.world.bus.running)]
    if len(brokers) > 1:
        one, other = scenario.rng.sample(brokers, 2)
        for broker, gone in ((one, other), (other, one)):
            broker.disk.known.pop(gone.node_id, None)
            broker.forgotten[gone.node_id] = scenario.world.now_s + 60


def _scaled(scenario: Scenario) -> None:
    scenario.world.edit(replicas=scenario.rng.randint(1, 5))


def _scaled_by_hand(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral:
        scenario.world.scale_by_hand(scenario.rng.randint(0, 6))


def _image_changed(scenario: Scenario) -> None:
    scenario.world.edit(
        image=scenario.rng.choice(("disque:1", "disque:2", "disque:3", "disque:broken", "disque:missing"))
    )


def _config_changed(scenario: Scenario) -> None:
    scenario.world.edit(
        config=scenario.rng.choice(({}, {"hz": "20"}, {"slowlog-max-len": "64"}, {"tcp-backlog": "100"}))
    )


def _password_rotated(scenario: Scenario) -> None:
    auth = scenario.world.spec.auth
    scenario.world.edit(auth=auth.model_copy(update={"rotation": auth.rotation + 1}))


def _password_lost(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral and scenario.rng.random() < 0.3:
        scenario.world.api.delete("Secret", names.auth_secret(scenario.world.spec.name))


def _auth_switched(scenario: Scenario) -> None:
    auth = scenario.world.spec.auth
    scenario.world.edit(auth=auth.model_copy(update={"enabled": not auth.enabled}))


def _hibernated(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral:
        scenario.world.edit(hibernate=not scenario.world.spec.hibernate)


def _paused(scenario: Scenario) -> None:
    scenario.world.edit(paused=not scenario.world.spec.paused)


def _drain_policy_changed(scenario: Scenario) -> None:
    if not scenario.world.spec.storage.ephemeral:
        policy = scenario.rng.choice(
            (Drain(), Drain(timeout_s=20, on_timeout="Handoff"), Drain(timeout_s=20, on_timeout="Wait"))
        )
        scenario.world.edit(drain=policy)


def _drain_asked_for(scenario: Scenario) -> None:
    if scenario.world.pods:
        pod = scenario.world.pods[scenario.rng.choice(scenario.pods())]
        pod.drain = not pod.drain


def _nodes_full(scenario: Scenario) -> None:
    scenario.world.full = not scenario.world.full


def _child_edited(scenario: Scenario) -> None:
    live = scenario.world.api.get("ConfigMap", names.config_map(scenario.world.spec.name))
    if live is not None:
        live["data"]["disque.conf"] += "# by hand\n"
        scenario.world.api.touch(live)


def _child_deleted(scenario: Scenario) -> None:
    scenario.world.api.delete("Service", names.client_service(scenario.world.spec.name))


_FAULTS: Final[tuple[Callable[[Scenario], None], ...]] = (
    *(_pod_deleted,) * 3,
    _all_pods_deleted,
    *(_process_crashed,) * 3,
    *(_node_cut_off,) * 2,
    _claim_deleted,
    _names_lead_nowhere,
    _split,
    *(_scaled,) * 4,
    _scaled_by_hand,
    *(_image_changed,) * 3,
    *(_config_changed,) * 2,
    *(_password_rotated,) * 2,
    _password_lost,
    _auth_switched,
    *(_hibernated,) * 2,
    _paused,
    _drain_policy_changed,
    _drain_asked_for,
    _nodes_full,
    _child_edited,
    _child_deleted,
)


# --- a whole story ----------------------------------------------------------------------------------------------------


def run_faults(seed: int, *, ephemeral: bool = False, faults_s: int = 300) -> Scenario:
    """A cluster is made, lives through a storm, and comes to rest as the last spec says."""
    rng = random.Random(seed)
    spec = a_spec(replicas=rng.randint(1, 4), storage=Storage(ephemeral=ephemeral))
    if ephemeral:
        spec = edited(spec, persistence=Persistence(appendonly=False))
    scenario = Scenario(spec, seed)
    scenario.settle()
    scenario.rates = FaultRates(dies=0.1, stale=0.1, conflicts=0.05, fault=0.06)
    scenario.run(faults_s)
    recover(scenario)
    return scenario


def recover(scenario: Scenario) -> None:
    """The storm is over, the last spec can be done, and it comes to be."""
    world = scenario.world
    scenario.rates = FaultRates()
    world.full = False
    world.cut_off = {}
    for pod in world.pods.values():
        pod.drain = False
    good = world.spec.image if world.spec.image in {"disque:1", "disque:2", "disque:3"} else GOOD_IMAGE
    world.edit(image=good, paused=False, hibernate=False, drain=Drain())
    scenario.log.append(f"{world.now_s:.0f} calm")
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
    """Somebody reads that a node takes no password and has no volume that stays, and deletes its pod."""
    world = scenario.world
    for name, why in world.observe().unreachable.items():
        if why == LOCKED and names.volume_claim(world.spec.name, names.ordinal(name)) in world.deleting:
            world.delete_pod(name)


def check_settled(scenario: Scenario) -> None:
    """Everything is as the spec says, and nobody writes anything."""
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
        for name, value in settings(spec).items():
            assert same(name, broker.config[name], value), (name, where)
    observed = world.observe()
    assert len({broker.password for broker in brokers}) == 1, where
    assert all(bool(broker.password) == spec.auth.enabled and not broker.former for broker in brokers), where
    wanted = {observed.passwords.current} if spec.auth.enabled and observed.passwords else set()
    assert all(broker.accepted_passwords == wanted for broker in observed.brokers.values()), where
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
