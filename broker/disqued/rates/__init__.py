"""Rates and caps of queues in the whole cluster: the settings `rate`, `burst` and `inflight`.

One node per queue, its rate home, grants tokens; each node delivers a job of the queue only with a token.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.rates import tokenask, tokens
from disqued.rates.counters import COUNTERS
from disqued.rates.metrics import METRICS, QUEUE_METRICS
from disqued.rates.room import NAME, RatesRoom

SUBSYSTEM = Subsystem(
    NAME,
    RatesRoom,
    messages=(tokenask.MESSAGE, tokens.MESSAGE),
    counters=COUNTERS,
    metrics=METRICS,
    queue_metrics=QUEUE_METRICS,
)
