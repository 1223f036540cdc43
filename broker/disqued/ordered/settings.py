"""The settings of an ordered queue: what QCONF says about its name, as its machine needs it.

Every node knows the settings of all names, but machines must have equal ones. So the leader of a group tells its
machine (CONF) when it begins to lead and when settings change. Defaults of ADDJOB (`retry`, `ttl`, `retain`) are not
among them: the node of the client fills them in.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.queues.settings import NONE, QueueSettings
from disqued.orderedqueue.encoding import Writer
from disqued.orderedqueue.options import Settings

_PERMILLE: Final = 1000


def machine_settings(given: QueueSettings | None) -> Settings:
    """The settings of a machine; None stands for a name for which nothing is set."""
    settings = Settings()
    if given is None:
        return settings
    if given.limit_is_set:
        settings.limit = max(given.limit, 0)
        settings.limit_is_exact = given.limit_is_exact
    settings.dead = given.dead
    settings.drops_dead = given.drops_dead
    settings.dead_ttl_s = given.dead_ttl_s
    settings.dead_expired = given.dead_expired
    settings.backoff_min_ms = given.backoff_min_ms
    settings.backoff_max_ms = given.backoff_max_ms
    factor: float = given.backoff_factor * _PERMILLE
    settings.backoff_permille = i64(round(factor))
    settings.max_length = max(given.max_length, 0)
    settings.max_bytes = max(given.max_bytes, 0)
    settings.drops_oldest = given.drops_oldest
    settings.pause = given.pause
    if given.consumer_timeout_s != NONE:
        settings.consumer_timeout_ms = given.consumer_timeout_s * 1000
    return settings


def are_equal(one: Settings, other: Settings) -> bool:
    """Whether two machines with these settings behave alike."""
    return _encoded(one) == _encoded(other)


def _encoded(settings: Settings) -> bytes:
    out = Writer()
    settings.write(out)
    return out.done()
