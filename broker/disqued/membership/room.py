"""The membership room of one node: the events that it hears."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.membership import buscron, seeds
from disqued.membership.announcing import announce
from disqued.membership.kept import Membership

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


class MembershipRoom(Membership):
    """Stays in contact with the other nodes."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        announce(self)

    def cron(self) -> None:
        """Connect, ping, and detect nodes that do not answer."""
        buscron.run(self)

    def name_found(self, name: bytes, addresses: list[bytes]) -> None:
        """Meet the nodes behind the name of a seed."""
        seeds.found(self.state, name, addresses)

    def config_changed(self, attribute: str) -> None:
        """Tell the other nodes the new name and addresses of this node."""
        if attribute == "cluster_name" or attribute.startswith("cluster_announce"):
            announce(self)
            self.unsaved = True
