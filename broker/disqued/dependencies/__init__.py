"""Has jobs wait until their parents are done, and decides what becomes of them if a parent can no longer be done."""

from disqued.bus.kinds import FEATURE_AFTER
from disqued.core.runtime.subsystem import Subsystem
from disqued.dependencies.counters import COUNTERS
from disqued.dependencies.metrics import QUEUE_METRICS
from disqued.dependencies.room import NAME, DependenciesRoom

SUBSYSTEM = Subsystem(
    NAME, DependenciesRoom, counters=COUNTERS, queue_metrics=QUEUE_METRICS, announced_features=FEATURE_AFTER
)
