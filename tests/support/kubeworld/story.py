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
from disque_operator.observed import LOCKED, Observed
from disque_operator.plan import plan
from disque_operator.planned import Event, Plan
from disque_operator.resources import same, settings
from disque_operator.spec import Auth, Drain, Persistence, Spec, Storage
from support.kubeworld.objects import ConflictError
from support.kubeworld.world import MACHINES, BreachError, RefusedError, World

GOOD_IMAGE: Final = "disque:1"
CALM_ROUNDS: Final = 8
"""So many rounds without an action, one after the other, are peace."""
PATIENCE_S: Final = 1500


def a_spec(**fields: object) -> Spec:
    """A cluster of three."""
    given: dict[str, object] = {"name": "mail", "namespace": "prod", "uid": "u1", "generation": 1, "image": GOOD_IMAGE}
    given["auth"] = Auth(grace_s=60)
    return Spec(**(given | fields))  # type: ignore[arg-type]  # fields by name


def edited(spec: Spec, **fields: object) -> Spec:
    """The same spec with other fields."""
    return Spec(**(dict(spec) | fields))


@dataclass
class Weather:
    """How likely things go wrong in a round, or in a second."""

    dies: float = 0.0
    """The operator, after an action."""
    stale: float = 0.0
    """It acts on what was some seconds ago."""
    conflicts: float = 0.0
    fault: float = 0.0
    """Something happens in a second."""


@dataclass
class Story:
    """A world and its operator."""

    spec: Spec = field(default_factory=a_spec)
    seed: int = 1
    weather: Weather = field(default_factory=Weather)
    load: bool = True
    world: World = field(init=False)
    chance: random.Random = field(init=False)
    events: list[Event] = field(default_factory=list)
    acted: list[Action] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What happened, for whoever reads a failing seed."""
    last: Plan = field(default_factory=Plan)
    dies_after: int | None = None
    """The operator dies after so many actions of its whole life, once."""
    _due_s: float = 0.0
    _jobs: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.spec, self.seed)
        self.chance = random.Random(self.seed * 7919)

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            self._second()

    def until(self, condition: Callable[[], bool], seconds: int = PATIENCE_S) -> None:
        """Let time pass until something is so."""
        for _ in range(seconds):
            if condition():
                return
            self._second()
        raise AssertionError(f"it did not come: {self.describe()}")

    def settle(self, seconds: int = PATIENCE_S) -> None:
        """Let time pass until the operator has nothing to do, round after round."""
        calm = 0
        for _ in range(seconds):
            if self._second():
                restless = self.last.actions or self.last.again_s < 10
                calm = 0 if restless else calm + 1
            if calm >= CALM_ROUNDS:
                return
        raise AssertionError(f"no peace: {self.describe()}")

    def _second(self) -> bool:
        """Whether the operator had a round."""
        self.world.step()
        if self.load:
            self._clients()
        if self.weather.fault and self.chance.random() < self.weather.fault:
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
        if self.chance.random() < self.weather.stale:
            observed = _frozen(observed)
            for _ in range(self.chance.randint(1, 6)):
                world.step()
        self.last = plan(spec, observed, world.now_s, f"password-{self.chance.randrange(10**6)}")
        self._due_s = world.now_s + self.last.again_s
        _check_disruption(observed, self.last, spec)
        for action in self.last.actions:
            if not self._act(action):
                return
        world.status = self.last.status
        self.events += self.last.events

    def _act(self, action: Action) -> bool:
        """Whether the round goes on."""
        if self.chance.random() < self.weather.conflicts:
            self._due_s = self.world.now_s + 1
            return False
        self.acted.append(action)
        self.told.append(f"{self.world.now_s:.0f} {_short(action)}")
        try:
            self.world.perform(action)
        except (ConflictError, RefusedError) as error:
            self.told.append(f"  {error}")
            self._due_s = self.world.now_s + 1
            return False
        except BreachError as error:
            raise BreachError(f"{error}: {self.describe()}") from error
        if self.chance.random() < self.weather.dies or len(self.acted) == self.dies_after:
            self._due_s = self.world.now_s + self.chance.randint(1, 20)
            self.told.append("  the operator dies")
            return False
        return True

    # --- clients ------------------------------------------------------------------------------------------------------

    def _clients(self) -> None:
        if self._jobs < 400 and self.chance.random() < 0.5:
            self.add(self.chance.choice((1, 1, 2)))
        waiting = sorted(self.world.deposited - self.world.bus.acknowledged)
        if len(waiting) > 60:
            self.world.bus.acknowledge(self.chance.choice(waiting), self.world.now_s)

    def add(self, replicate: int = 1) -> str | None:
        """A job, if its copies can be made."""
        self._jobs += 1
        job = f"job-{self._jobs}"
        if not self.world.bus.add(job, replicate, self.world.now_s, self._jobs):
            return None
        self.world.deposited.add(job)
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
        kind = self.chance.choice(_FAULTS)
        self.told.append(f"{self.world.now_s:.0f} {kind.__name__.strip('_')}")
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
        return "\n".join([*lines, str(members), *conditions, *self.told[-60:]])


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


def _pod_deleted(story: Story) -> None:
    if story.world.pods:
        story.world.delete_pod(story.chance.choice(story.pods()), force=story.chance.random() < 0.3)


def _all_pods_deleted(story: Story) -> None:
    if story.chance.random() < 0.3 and not story.world.spec.storage.ephemeral:
        for name in story.pods():
            story.world.delete_pod(name)


def _process_crashed(story: Story) -> None:
    if story.world.pods:
        story.world.crash(story.chance.choice(story.pods()))


def _machine_cut_off(story: Story) -> None:
    story.world.cut_off[story.chance.choice(MACHINES)] = story.world.now_s + story.chance.randint(5, 90)


def _claim_deleted(story: Story) -> None:
    if story.world.pods and story.chance.random() < 0.5:
        ordinal = names.ordinal(story.chance.choice(story.pods()))
        story.world.delete_claim(ordinal)
        if story.chance.random() < 0.5:
            story.world.delete_pod(names.pod(story.world.spec.name, ordinal))


def _names_lead_nowhere(story: Story) -> None:
    story.world.bus.no_seeds_until_s = story.world.now_s + 400


def _split(story: Story) -> None:
    """Two members lose each other, and all names."""
    brokers = [story.world.bus.running[name] for name in sorted(story.world.bus.running)]
    if len(brokers) > 1:
        one, other = story.chance.sample(brokers, 2)
        for broker, gone in ((one, other), (other, one)):
            broker.disk.known.pop(gone.node_id, None)
            broker.forgotten[gone.node_id] = story.world.now_s + 60


def _scaled(story: Story) -> None:
    story.world.edit(replicas=story.chance.randint(1, 5))


def _scaled_by_hand(story: Story) -> None:
    if not story.world.spec.storage.ephemeral:
        story.world.hand_scale(story.chance.randint(0, 6))


def _image_changed(story: Story) -> None:
    story.world.edit(image=story.chance.choice(("disque:1", "disque:2", "disque:3", "disque:broken", "disque:missing")))


def _config_changed(story: Story) -> None:
    story.world.edit(config=story.chance.choice(({}, {"hz": "20"}, {"slowlog-max-len": "64"}, {"tcp-backlog": "100"})))


def _password_rotated(story: Story) -> None:
    auth = story.world.spec.auth
    story.world.edit(auth=auth.model_copy(update={"rotation": auth.rotation + 1}))


def _password_lost(story: Story) -> None:
    if not story.world.spec.storage.ephemeral and story.chance.random() < 0.3:
        story.world.api.delete("Secret", names.auth_secret(story.world.spec.name))


def _auth_switched(story: Story) -> None:
    auth = story.world.spec.auth
    story.world.edit(auth=auth.model_copy(update={"enabled": not auth.enabled}))


def _hibernated(story: Story) -> None:
    if not story.world.spec.storage.ephemeral:
        story.world.edit(hibernate=not story.world.spec.hibernate)


def _paused(story: Story) -> None:
    story.world.edit(paused=not story.world.spec.paused)


def _drain_policy_changed(story: Story) -> None:
    if not story.world.spec.storage.ephemeral:
        policy = story.chance.choice(
            (Drain(), Drain(timeout_s=20, on_timeout="Handoff"), Drain(timeout_s=20, on_timeout="Wait"))
        )
        story.world.edit(drain=policy)


def _drain_asked_for(story: Story) -> None:
    if story.world.pods:
        pod = story.world.pods[story.chance.choice(story.pods())]
        pod.drain = not pod.drain


def _machines_full(story: Story) -> None:
    story.world.full = not story.world.full


def _child_edited(story: Story) -> None:
    live = story.world.api.get("ConfigMap", names.config_map(story.world.spec.name))
    if live is not None:
        live["data"]["disque.conf"] += "# by hand\n"
        story.world.api.touch(live)


def _child_deleted(story: Story) -> None:
    story.world.api.delete("Service", names.client_service(story.world.spec.name))


_FAULTS: Final[tuple[Callable[[Story], None], ...]] = (
    *(_pod_deleted,) * 3,
    _all_pods_deleted,
    *(_process_crashed,) * 3,
    *(_machine_cut_off,) * 2,
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
    _machines_full,
    _child_edited,
    _child_deleted,
)


# --- a whole story ----------------------------------------------------------------------------------------------------


def live_through(seed: int, *, ephemeral: bool = False, storm_s: int = 300) -> Story:
    """A cluster is made, lives through a storm, and comes to rest as the last spec says."""
    chance = random.Random(seed)
    spec = a_spec(replicas=chance.randint(1, 4), storage=Storage(ephemeral=ephemeral))
    if ephemeral:
        spec = edited(spec, persistence=Persistence(appendonly=False))
    story = Story(spec, seed)
    story.settle()
    story.weather = Weather(dies=0.1, stale=0.1, conflicts=0.05, fault=0.06)
    story.run(storm_s)
    calm(story)
    return story


def calm(story: Story) -> None:
    """The storm is over, the last spec can be done, and it comes to be."""
    world = story.world
    story.weather = Weather()
    world.full = False
    world.cut_off = {}
    for pod in world.pods.values():
        pod.drain = False
    good = world.spec.image if world.spec.image in {"disque:1", "disque:2", "disque:3"} else GOOD_IMAGE
    world.edit(image=good, paused=False, hibernate=False, drain=Drain())
    story.told.append(f"{world.now_s:.0f} calm")
    goes = world.spec.storage.ephemeral or names.volume_claim(world.spec.name, 0) in world.going
    alone = world.spec.replicas == 1 and goes
    story.finish(more_than=world.spec.replicas)
    story.run(30)
    story.load = False
    story.finish(more_than=0 if alone else world.spec.replicas)
    story.run(200)
    give_up_on_locked(story)
    story.settle()
    check_settled(story)


def give_up_on_locked(story: Story) -> None:
    """Somebody reads that a node takes no password and has no volume that stays, and deletes its pod."""
    world = story.world
    for name, why in world.observe().silent.items():
        if why == LOCKED and names.volume_claim(world.spec.name, names.ordinal(name)) in world.going:
            world.delete_pod(name)


def check_settled(story: Story) -> None:
    """Everything is as the spec says, and nobody writes anything."""
    world, spec = story.world, story.world.spec
    story.load = False
    assert not world.lost(), f"lost {world.lost()}: {story.describe()}"
    status = world.status
    where = story.describe()
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
    assert all(node.takes == wanted for node in observed.nodes.values()), where
    ready = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
    assert ready["status"] == "True", where
    for volume in observed.volumes:
        kept = world.disks[volume.uid].jobs if volume.uid in world.disks else {}
        retained = kept or not volume.drained or spec.storage.retention.when_scaled == "Retain"
        assert volume.ordinal < spec.replicas or retained, where
    acted, events, before = len(story.acted), len(story.events), world.status
    story.run(120)
    assert len(story.acted) == acted, where
    assert len(story.events) == events, where
    assert world.status == before, where
