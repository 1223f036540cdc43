"""What the rules of a user can name: commands, subcommands, and categories of them."""

from __future__ import annotations

from typing import Final

ALL: Final = b"@all"
CONNECTION: Final = b"@connection"
CATEGORIES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"all", "Every command."),
    (b"connection", "What clients send about their own connection, such as PING and CLIENT SETNAME."),
    (b"producer", "Adding jobs."),
    (b"consumer", "Taking, acknowledging and returning jobs."),
    (b"inspect", "Reading queues, jobs, statistics and the configuration without passwords."),
    (b"queueadmin", "Pausing queues, and queueing and deleting their jobs."),
    (b"clusteradmin", "Showing and changing the cluster."),
    (b"admin", "Administration of a node."),
    (b"dangerous", "What shows data of all queues, changes users or configuration, or stops a node."),
)
"""The categories and what they are for. The first three letters of a rule, `+@`, are not part of the name."""
ROLES: Final = (b"@producer", b"@consumer", b"@inspect", b"@queueadmin", b"@clusteradmin")
"""Adding one of these adds @connection as well, because clients need it to work at all."""


class Catalogue:
    """The commands of a node, as rules name them."""

    def __init__(self, keys: dict[bytes, tuple[str, ...]]) -> None:
        """`keys` has the categories of each command (`pause`) and each subcommand (`config|get`), in table order."""
        self._keys = keys
        self.all = frozenset(keys)
        self._members: dict[bytes, frozenset[bytes]] = {ALL: self.all}
        for category, _ in CATEGORIES[1:]:
            self._members[b"@" + category] = frozenset(
                [key for key, categories in keys.items() if category.decode() in categories]
            )
        for key in keys:
            self._members[key] = frozenset([other for other in keys if other == key or other.startswith(key + b"|")])

    def members(self, selector: bytes) -> frozenset[bytes] | None:
        """What a rule takes away with `-` and this selector, in lower case; None if there is nothing of that name."""
        return self._members.get(selector)

    def granted(self, selector: bytes) -> frozenset[bytes]:
        """What a rule adds with `+` and this selector, which must exist."""
        granted = self._members[selector]
        return granted | self._members[CONNECTION] if selector in ROLES else granted

    def listed(self, category: bytes) -> list[bytes] | None:
        """The commands of a category in table order; None if there is no such category."""
        members = self._members.get(b"@" + category)
        return None if members is None else [key for key in self._keys if key in members]
