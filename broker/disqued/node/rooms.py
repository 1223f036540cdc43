"""The list of rooms that a node consists of, in the order in which they hear events. A new room is one line here."""

from __future__ import annotations

from typing import Any, Final

from disqued.access import SUBSYSTEM as ACCESS
from disqued.acks import SUBSYSTEM as ACKS
from disqued.admin import SUBSYSTEM as ADMIN
from disqued.admission import SUBSYSTEM as ADMISSION
from disqued.bus.messagetable import MessageTable
from disqued.config import Option
from disqued.core.access.catalogue import Catalogue
from disqued.core.commands.command import Command
from disqued.core.lifecycle.records import RecordTable
from disqued.core.runtime.message import Message, features_of, table_of
from disqued.core.runtime.recordkind import RecordKind, record_table
from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, Subsystem
from disqued.counts import SUBSYSTEM as COUNTS
from disqued.delivery import SUBSYSTEM as DELIVERY
from disqued.dependencies import SUBSYSTEM as DEPENDENCIES
from disqued.fates import SUBSYSTEM as FATES
from disqued.federation import SUBSYSTEM as FEDERATION
from disqued.introspection import SUBSYSTEM as INTROSPECTION
from disqued.leaving import SUBSYSTEM as LEAVING
from disqued.membership import SUBSYSTEM as MEMBERSHIP
from disqued.moves import SUBSYSTEM as MOVES
from disqued.ordered import SUBSYSTEM as ORDERED
from disqued.patterns import SUBSYSTEM as PATTERNS
from disqued.persistence import SUBSYSTEM as PERSISTENCE
from disqued.progress import SUBSYSTEM as PROGRESS
from disqued.queries import SUBSYSTEM as QUERIES
from disqued.rates import SUBSYSTEM as RATES
from disqued.repair import SUBSYSTEM as REPAIR
from disqued.replication import SUBSYSTEM as REPLICATION
from disqued.schedule import SUBSYSTEM as SCHEDULE
from disqued.settings import SUBSYSTEM as SETTINGS


class Rooms:
    """A list of rooms, and all tables that follow from them."""

    def __init__(self, *subsystems: Subsystem) -> None:
        self.subsystems: tuple[Subsystem, ...] = subsystems
        self.commands: tuple[Command, ...] = tuple(row for room in subsystems for row in room.commands)
        self.catalogue = Catalogue({key: row.categories_of(key) for row in self.commands for key in row.keys})
        self.messages: tuple[Message, ...] = tuple(row for room in subsystems for row in room.messages)
        self.message_table: MessageTable = table_of(self.messages)
        self.features: int = features_of(self.messages)
        for room in subsystems:
            self.features |= room.announced_features
        self.records: tuple[RecordKind, ...] = tuple(row for room in subsystems for row in room.records)
        self.record_table: RecordTable = record_table(self.records)
        self.directives: tuple[Option[Any], ...] = tuple(row for room in subsystems for row in room.directives)
        """In addition to the table in `disqued.config`."""
        self.node_metrics: tuple[NodeMetric, ...] = tuple(row for room in subsystems for row in room.node_metrics())
        self.queue_metrics: tuple[QueueMetric, ...] = tuple(row for room in subsystems for row in room.queue_metrics)

    def and_also(self, *subsystems: Subsystem) -> Rooms:
        """These rooms and more rooms, which hear events after them."""
        return Rooms(*self.subsystems, *subsystems)


ROOMS: Final = Rooms(
    ADMIN,
    ACCESS,
    MEMBERSHIP,
    SCHEDULE,
    SETTINGS,
    ADMISSION,
    REPLICATION,
    DELIVERY,
    ACKS,
    FATES,
    PROGRESS,
    DEPENDENCIES,
    FEDERATION,
    PATTERNS,
    RATES,
    LEAVING,
    MOVES,
    PERSISTENCE,
    REPAIR,
    INTROSPECTION,
    COUNTS,
    QUERIES,
    ORDERED,
)
