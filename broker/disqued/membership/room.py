"""The membership room of one node: the events that it hears."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.errors import ReplyError
from disqued.membership import buscron, secrets, seeds
from disqued.membership.announcing import announce
from disqued.membership.kept import Membership

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState


class MembershipRoom(Membership):
    """Stays in contact with the other nodes."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self._new_secrets: tuple[bytes, ...] = ()
        """Of the file that CONFIG SET is about to set."""
        announce(self)
        self._use_secrets(secrets.load(state.host, state.config.cluster_secret_file))

    def cron(self) -> None:
        """Connect, ping, and detect nodes that do not answer."""
        buscron.run(self)

    def name_found(self, name: bytes, addresses: list[bytes]) -> None:
        """Meet the nodes behind the name of a seed."""
        seeds.found(self.state, name, addresses)

    def config_changing(self, attribute: str, value: object) -> None:
        """Read the secrets from a new file."""
        if attribute == "cluster_secret_file":
            try:
                self._new_secrets = secrets.load(self.state.host, str(value))
            except secrets.SecretFileError as error:
                raise ReplyError(f"ERR {error}") from error

    def config_changed(self, attribute: str) -> None:
        """Tell the other nodes the new name and addresses of this node, and use the new secrets for new links."""
        if attribute == "cluster_secret_file":
            self._use_secrets(self._new_secrets)
        elif attribute == "cluster_secret_required":
            self._use_secrets(self.state.secrets)
        elif attribute == "cluster_max_clock_skew":
            self.quarantine.limit_changed()
        if attribute in {"cluster_name", "cluster_zone"} or attribute.startswith("cluster_announce"):
            announce(self)
            self.unsaved = True

    def files_changed(self) -> None:
        """Read the secrets again, and keep those from before if that fails."""
        state = self.state
        path = state.config.cluster_secret_file
        if not path:
            return
        try:
            found = secrets.load(state.host, path)
        except secrets.SecretFileError as error:
            state.host.log("warning", f"Keeping the cluster secrets that were read before: {error}")
            return
        self._use_secrets(found)
        state.host.log("notice", f"Read {len(found)} cluster secrets from {path}; new connections use them")

    def _use_secrets(self, found: tuple[bytes, ...]) -> None:
        """Authenticate new connections with these secrets, and check whether existing ones may continue."""
        state = self.state
        state.secrets = found
        state.view.refresh()
        if found and not state.config.cluster_secret_required:
            state.host.log(
                "warning",
                "Nodes that do not prove the cluster secret are ACCEPTED (cluster-secret-required no). Set it to yes "
                "as soon as all members have the secret.",
            )
