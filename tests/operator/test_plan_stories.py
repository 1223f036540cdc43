"""Whole stories of a cluster in virtual time: what a person asks for comes to be, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from disque_operator import names
from disque_operator.actions import Command, DeletePod
from disque_operator.spec import Drain, Persistence, Storage, VolumeRetention
from support.kubeworld.story import Story, a_spec, check_settled, live_through

EPHEMERAL: dict[str, Any] = {"storage": Storage(ephemeral=True), "persistence": Persistence(appendonly=False)}


def a_story(replicas: int = 3, jobs: int = 20, **fields: Any) -> Story:
    """A cluster at rest, with jobs that nobody works on."""
    story = Story(a_spec(replicas=replicas, **fields), load=False)
    story.settle()
    for _ in range(jobs):
        assert story.add()
    return story


def words(story: Story, *command: str) -> list[str]:
    """The pods that were told something."""
    return [
        action.pod for action in story.acted if isinstance(action, Command) and action.words[: len(command)] == command
    ]


def replaced(story: Story) -> list[str]:
    return [action.name for action in story.acted if isinstance(action, DeletePod)]


def reasons(story: Story) -> list[str]:
    return [event.reason for event in story.events]


def claims(story: Story) -> list[int]:
    return [volume.ordinal for volume in story.world.observe().volumes]


def node_ids(story: Story) -> dict[str, str]:
    return {pod: broker.node_id for pod, broker in story.world.bus.running.items()}


def leaves(story: Story, pod: str) -> Callable[[], bool]:
    def is_leaving() -> bool:
        broker = story.world.bus.running.get(pod)
        return broker is not None and broker.disk.leaving

    return is_leaving


def test_a_cluster_is_made_and_says_so_once() -> None:
    story = Story(load=False)
    story.until(lambda: story.world.status.get("phase") == "Running", 60)
    story.settle()
    check_settled(story)
    assert reasons(story) == ["Creating", "Running"]


def test_it_grows_by_all_pods_at_once() -> None:
    story = a_story()
    before = node_ids(story)
    story.world.edit(replicas=5)
    story.settle()
    check_settled(story)
    assert node_ids(story).items() > before.items()
    assert words(story, "CLUSTER", "MEET") == []


def test_it_shrinks_one_by_one_without_losing_a_job() -> None:
    story = a_story(5, jobs=40)
    story.world.edit(replicas=1)
    story.settle()
    check_settled(story)
    assert words(story, "CLUSTER", "LEAVING", "yes") == ["mail-4", "mail-3", "mail-2", "mail-1"]
    assert len(words(story, "CLUSTER", "FORGET")) == 4 + 3 + 2 + 1
    assert claims(story) == [0]
    assert reasons(story).count("DrainStarted") == reasons(story).count("DrainFinished") == 4


def test_claims_are_kept_when_the_spec_says_so() -> None:
    story = a_story(storage=Storage(retention=VolumeRetention(when_scaled="Retain")))
    story.world.edit(replicas=1)
    story.settle()
    check_settled(story)
    assert claims(story) == [0, 1, 2]


def test_a_shrink_can_be_taken_back() -> None:
    story = a_story(jobs=40)
    story.world.edit(replicas=2)
    story.until(leaves(story, "mail-2"))
    story.run(5)
    story.world.edit(replicas=3)
    story.settle()
    check_settled(story)
    assert "DrainTakenBack" in reasons(story)
    assert words(story, "CLUSTER", "FORGET") == []


def test_a_shrink_that_is_taken_back_when_the_pod_is_going_makes_the_pod_again() -> None:
    story = a_story()
    story.world.edit(replicas=2)
    story.until(lambda: story.world.pods["mail-2"].ends_s is not None)
    story.world.edit(replicas=3)
    story.settle()
    check_settled(story)
    assert claims(story) == [0, 1, 2]


def test_another_number_while_a_node_leaves_is_taken_up_after_it() -> None:
    story = a_story(4, jobs=40)
    story.world.edit(replicas=3)
    story.until(leaves(story, "mail-3"))
    story.world.edit(replicas=2)
    story.settle()
    check_settled(story)
    assert words(story, "CLUSTER", "LEAVING", "no") == []


def test_a_node_that_dies_while_it_leaves_goes_on_when_it_is_back() -> None:
    story = a_story(jobs=60)
    story.world.edit(replicas=2)
    story.until(leaves(story, "mail-2"))
    story.run(5)
    story.world.delete_pod("mail-2", force=True)
    story.settle()
    check_settled(story)
    assert words(story, "CLUSTER", "LEAVING", "yes") == ["mail-2"]


def test_a_shrink_waits_for_jobs_that_need_more_copies() -> None:
    story = a_story(jobs=0)
    assert story.add(replicate=2)
    story.world.edit(replicas=1)
    story.settle()
    assert len(story.world.pods) == 2
    assert reasons(story)[-2:] == ["DrainRefused", "Running"]
    story.finish(more_than=1)
    story.settle()
    check_settled(story)


def test_what_is_not_handed_over_in_time_rests_on_its_volume_and_comes_back_with_it() -> None:
    story = a_story(jobs=90, drain=Drain(timeout_s=10, on_timeout="Handoff"))
    story.world.edit(replicas=2)
    story.settle()
    check_settled(story)
    assert claims(story) == [0, 1, 2]
    story.world.edit(replicas=3)
    story.settle()
    check_settled(story)
    assert sum(len(broker.disk.jobs) for broker in story.world.bus.running.values()) == 90


def test_an_upgrade_replaces_pods_from_the_top_on_their_volumes() -> None:
    story = a_story()
    before = node_ids(story)
    story.world.edit(image="disque:2")
    story.settle()
    check_settled(story)
    assert replaced(story) == ["mail-2", "mail-1", "mail-0"]
    assert node_ids(story) == before
    assert story.world.status["formerImage"] == "disque:1"
    assert story.world.status["version"] == "disque:2"


@pytest.mark.parametrize("image", ["disque:broken", "disque:missing"])
def test_an_image_that_does_not_work_stops_at_the_first_pod_and_goes_back(image: str) -> None:
    story = a_story()
    story.world.edit(image=image)
    story.until(lambda: story.world.status.get("phase") == "Degraded")
    story.run(900)
    assert replaced(story) == ["mail-2"]
    assert [pod.ready for pod in story.world.pods.values()].count(True) == 2
    assert story.world.status["formerImage"] == "disque:1"
    story.world.edit(image=story.world.status["formerImage"])
    story.settle()
    check_settled(story)
    assert replaced(story) == ["mail-2", "mail-2"]


def test_pods_without_volumes_hand_their_jobs_over_before_they_are_replaced() -> None:
    story = a_story(**EPHEMERAL)
    before = node_ids(story)
    story.world.edit(image="disque:2")
    story.settle()
    check_settled(story)
    assert not set(before.values()) & set(node_ids(story).values())


def test_a_directive_without_a_restart_and_one_with() -> None:
    story = a_story()
    story.world.edit(config={"slowlog-max-len": "64"})
    story.settle()
    assert replaced(story) == []
    story.world.edit(config={})
    story.settle()
    check_settled(story)
    story.world.edit(config={"tcp-backlog": "100"})
    story.settle()
    check_settled(story)
    assert replaced(story) == ["mail-2", "mail-1", "mail-0"]


def test_restart_at_restarts_all_pods() -> None:
    story = a_story()
    story.world.edit(annotations={names.RESTART_AT: "now"})
    story.settle()
    check_settled(story)
    assert replaced(story) == ["mail-2", "mail-1", "mail-0"]


def test_no_client_is_turned_away_while_a_password_is_rotated() -> None:
    story = a_story()
    world = story.world
    old = given(story)
    world.edit(auth=world.spec.auth.model_copy(update={"rotation": 1}))
    changed_s = 0.0
    while changed_s == 0.0 or world.now_s < changed_s + world.spec.auth.grace_s:
        story.run(1)
        if given(story) != old:
            changed_s = changed_s or world.now_s
        for broker in world.bus.running.values():
            assert {old, given(story)} <= {broker.password, broker.former}
    story.settle()
    check_settled(story)
    assert {broker.password for broker in world.bus.running.values()} == {given(story)}
    assert replaced(story) == []


def given(story: Story) -> str:
    """The password that clients find in the Secret."""
    passwords = story.world.observe().passwords
    assert passwords is not None
    return passwords.current


def test_a_lost_password_is_replaced_by_restarts() -> None:
    story = a_story()
    story.world.api.delete("Secret", "mail-auth")
    story.run(60)
    story.settle()
    check_settled(story)
    assert sorted(set(replaced(story))) == ["mail-0", "mail-1", "mail-2"]


def test_all_pods_deleted_at_once_are_the_same_members_afterwards() -> None:
    story = a_story()
    before = node_ids(story)
    for name in story.pods():
        story.world.delete_pod(name, force=True)
    story.settle()
    check_settled(story)
    assert node_ids(story) == before
    assert words(story, "CLUSTER", "FORGET") == []


def test_a_deleted_volume_is_another_node_and_the_old_one_is_forgotten() -> None:
    story = a_story(jobs=0)
    before = node_ids(story)
    story.world.delete_pod("mail-1", force=True)
    story.world.delete_claim(1)
    story.settle()
    check_settled(story)
    assert node_ids(story)["mail-1"] != before["mail-1"]
    forgotten = {action.words[2] for action in story.acted if isinstance(action, Command) and "FORGET" in action.words}
    assert forgotten == {before["mail-1"]}


def test_a_volume_that_is_being_deleted_is_emptied_first() -> None:
    story = a_story()
    story.world.delete_claim(1)
    story.settle()
    check_settled(story)
    assert replaced(story) == ["mail-1"]
    assert not story.world.excused


def test_members_that_lost_each_other_meet_again_when_names_lead_nowhere() -> None:
    story = a_story()
    world = story.world
    world.bus.no_seeds_until_s = world.now_s + 10_000
    brokers = list(world.bus.running.values())
    for broker in brokers:
        broker.disk.known.clear()
        broker.forgotten = {other.node_id: world.now_s + 60 for other in brokers if other is not broker}
    story.settle()
    check_settled(story)
    assert words(story, "CLUSTER", "MEET")


def test_a_machine_lost_for_minutes_keeps_its_members() -> None:
    story = a_story()
    before = node_ids(story)
    story.world.cut_off["m1"] = story.world.now_s + 300
    story.run(310)
    assert words(story, "CLUSTER", "FORGET") == []
    story.settle()
    check_settled(story)
    assert node_ids(story) == before


def test_hibernating_and_waking_with_another_number() -> None:
    story = a_story(4)
    before = node_ids(story)
    story.world.edit(hibernate=True)
    story.until(lambda: story.world.status["phase"] == "Hibernated")
    story.settle()
    assert story.world.pods == {}
    story.world.edit(hibernate=False, replicas=2)
    story.settle()
    check_settled(story)
    assert node_ids(story).items() < before.items()


def test_nothing_is_done_while_paused_and_a_drain_goes_on_in_its_node() -> None:
    story = a_story(jobs=40)
    story.world.edit(replicas=2)
    story.until(leaves(story, "mail-2"))
    story.world.edit(paused=True)
    acted = len(story.acted)
    story.run(100)
    assert len(story.acted) == acted
    assert story.world.status["phase"] == "Paused"
    assert story.world.bus.running["mail-2"].disk.jobs == {}
    story.world.edit(paused=False)
    story.settle()
    check_settled(story)


def test_pods_that_find_no_machine_go_without_a_drain() -> None:
    story = a_story()
    story.world.full = True
    story.world.edit(replicas=5)
    story.run(60)
    assert story.world.status["phase"] == "Degraded"
    story.world.edit(replicas=3)
    story.settle()
    check_settled(story)
    assert words(story, "CLUSTER", "LEAVING", "yes") == []
    assert claims(story) == [0, 1, 2]


def test_hand_edits_of_children_are_put_right() -> None:
    story = a_story()
    world = story.world
    world.hand_scale(5)
    world.api.delete("Service", "mail")
    world.api.delete("PodDisruptionBudget", "mail")
    story.settle()
    check_settled(story)
    assert world.api.get("Service", "mail") is not None


def test_a_statefulset_deleted_by_hand_comes_back_with_all_members() -> None:
    story = a_story()
    before = node_ids(story)
    story.world.api.delete("StatefulSet", "mail")
    story.settle()
    check_settled(story)
    assert node_ids(story) == before


# --- the operator dies ------------------------------------------------------------------------------------------------


def shrink(story: Story) -> None:
    story.world.edit(replicas=1)


def upgrade(story: Story) -> None:
    story.world.edit(image="disque:2")


def both(story: Story) -> None:
    story.world.edit(replicas=2, image="disque:2", config={"slowlog-max-len": "64"})


def rotate(story: Story) -> None:
    story.world.edit(auth=story.world.spec.auth.model_copy(update={"rotation": 1}))


def hibernate(story: Story) -> None:
    story.world.edit(hibernate=True)
    story.until(lambda: story.world.pods == {})
    story.world.edit(hibernate=False)


WORKS = [shrink, upgrade, both, rotate, hibernate]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_an_operator_that_dies_after_any_action_is_followed_by_one_that_goes_on(work: Callable[[Story], None]) -> None:
    whole = a_story()
    first = len(whole.acted)
    work(whole)
    whole.settle()
    for step in range(first + 1, len(whole.acted) + 1):
        story = a_story()
        story.dies_after = step
        work(story)
        story.settle()
        check_settled(story)


# --- found by storms --------------------------------------------------------------------------------------------------


def test_a_node_that_is_to_leave_and_takes_no_password_is_restarted_first() -> None:
    """Seed 318: all waited for it to leave, and it could not be told to."""
    story = a_story(5)
    story.world.edit(replicas=3)
    story.world.api.delete("Secret", "mail-auth")
    story.run(60)
    story.settle()
    check_settled(story)


def test_a_node_that_rests_and_takes_no_password_does_not_keep_the_others_from_their_restarts() -> None:
    """Seed 307: it was not ready, since it was leaving, and nobody could tell it to stay."""
    story = a_story(5)
    story.world.pods["mail-3"].drain = True
    story.until(leaves(story, "mail-3"))
    story.world.api.delete("Secret", "mail-auth")
    story.run(60)
    story.settle()
    check_settled(story)


# --- storms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1, 13))
def test_a_cluster_comes_to_rest_after_a_storm(seed: int) -> None:
    live_through(seed)


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_cluster_without_volumes_comes_to_rest_after_a_storm(seed: int) -> None:
    live_through(seed, ephemeral=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_many_clusters_come_to_rest_after_storms(first: int) -> None:
    for seed in range(first, first + 20):
        live_through(seed, ephemeral=seed % 4 == 0)
