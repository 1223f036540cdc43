"""What a node is made of: the list of its rooms, in the order in which they hear events.

A new room is one line here.
"""

from __future__ import annotations

from typing import Final

from disqued.acks import SUBSYSTEM as ACKS
from disqued.admin import SUBSYSTEM as ADMIN
from disqued.admission import SUBSYSTEM as ADMISSION
from disqued.core.commands.command import Command
from disqued.core.runtime.message import Message, features_of, table_of
from disqued.core.runtime.subsystem import Subsystem
from disqued.delivery import SUBSYSTEM as DELIVERY
from disqued.federation import SUBSYSTEM as FEDERATION
from disqued.introspection import SUBSYSTEM as INTROSPECTION
from disqued.leaving import SUBSYSTEM as LEAVING
from disqued.membership import SUBSYSTEM as MEMBERSHIP
from disqued.persistence import SUBSYSTEM as PERSISTENCE
from disqued.replication import SUBSYSTEM as REPLICATION

SUBSYSTEMS: Final[tuple[Subsystem, ...]] = (
    ADMIN,
    MEMBERSHIP,
    ADMISSION,
    REPLICATION,
    DELIVERY,
    ACKS,
    FEDERATION,
    LEAVING,
    PERSISTENCE,
    INTROSPECTION,
)

COMMANDS: Final[tuple[Command, ...]] = tuple(command for room in SUBSYSTEMS for command in room.commands)
MESSAGES: Final[tuple[Message, ...]] = tuple(message for room in SUBSYSTEMS for message in room.messages)
MESSAGE_TABLE: Final = table_of(MESSAGES)
FEATURES: Final = features_of(MESSAGES)
