"""Clock skew: how nodes measure and show the clocks of others."""

from __future__ import annotations

from disqued.config import Config
from disqued.testing.cluster import Cluster
from membership.stories import figures, logged
from support.asking import ask


def test_clocks_that_agree_show_no_skew() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=30)
    assert {figures(member)["cluster_max_skew_ms"] for member in cluster.members} <= {"0", "1"}
    assert [logged(member, "The clock of node") for member in cluster.members] == [[]] * 3


def test_wrong_clock_is_measured_shown_and_logged_once() -> None:
    cluster = Cluster(3)
    one, other, wrong = cluster.members
    wrong.skew_ms = 5000
    cluster.run(seconds=120)
    assert abs(int(figures(one)["cluster_max_skew_ms"]) - 5000) <= 2
    assert abs(int(figures(wrong)["cluster_max_skew_ms"]) - 5000) <= 2
    assert abs(int(one.node.state.view.peers[wrong.id].skew_ms) - 5000) <= 2
    assert abs(int(wrong.node.state.view.peers[one.id].skew_ms) + 5000) <= 2
    assert len(logged(other, f"The clock of node {wrong.id.decode()} is ")) == 1
    assert "ahead of" in logged(other, "The clock of node")[0]
    assert "behind" in logged(wrong, "The clock of node")[0]


def test_network_delay_is_not_counted_as_skew() -> None:
    cluster = Cluster(2)
    for path in cluster.network.paths():
        path.delay_ms = 200
    cluster.run(seconds=30)
    assert int(figures(cluster.members[0])["cluster_max_skew_ms"]) <= 2


def test_info_has_a_membership_section() -> None:
    cluster = Cluster(2, config=Config)
    text = ask(cluster.members[0].admin, "INFO", "membership").decode()
    assert text.startswith("# Membership\r\ncluster_links_up:1\r\n")
