"""The membership room of one node: the regular duties of the cluster bus."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.room import Room
from disqued.membership import seeds
from disqued.membership.rounds import go_round

NAME: Final = "membership"


class MembershipRoom(Room):
    """Keeps in touch with the other nodes."""

    def cron(self) -> None:
        """Connect, ping, and notice which nodes do not answer."""
        go_round(self.state)

    def name_found(self, name: bytes, addresses: list[bytes]) -> None:
        """Meet the nodes behind the name of a seed."""
        seeds.found(self.state, name, addresses)

    def config_changed(self, attribute: str) -> None:
        """Tell the other nodes what this node is called and where it is."""
        if attribute == "cluster_name" or attribute.startswith("cluster_announce"):
            self.state.renew_frames()
            self.state.view.unsaved = True
