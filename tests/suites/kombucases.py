"""The tests that kombu has for every transport, for this one: copied beside them as `t/integration/test_disque.py`."""

from __future__ import annotations

import os
from typing import Any

import kombu
import pytest
from t.integration.common import (
    BaseEventLoop,
    BaseExchangeTypes,
    BaseFailover,
    BaseMessage,
    BasePriority,
    BaseTimeToLive,
    BasicFunctionality,
)

import disqued.kombu  # noqa: F401 - names the transport

URL = os.environ["TEST_BROKER"]
NOBODY = "disque://localhost:1"


class DrainsAll(kombu.Connection):
    """A connection whose `drain_events` delivers all that has arrived, as with AMQP; virtual transports deliver one."""

    def drain_events(self, **options: Any) -> None:
        super().drain_events(**options)
        while True:
            try:
                super().drain_events(timeout=0.5)
            except TimeoutError:
                return


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> Any:
    return DrainsAll(URL) if request.cls is test_Priority else kombu.Connection(URL)


@pytest.fixture
def invalid_connection() -> Any:
    return kombu.Connection(NOBODY)


@pytest.fixture
def failover_connection() -> Any:
    return kombu.Connection(f"{NOBODY};{URL.split(',')[0]}")


class test_Basic(BasicFunctionality): ...  # noqa: N801 - names that kombu's settings collect


class test_Exchanges(BaseExchangeTypes): ...  # noqa: N801 - as above


class test_TimeToLive(BaseTimeToLive): ...  # noqa: N801 - as above


class test_Priority(BasePriority): ...  # noqa: N801 - as above


class test_Failover(BaseFailover): ...  # noqa: N801 - as above


class test_Messages(BaseMessage): ...  # noqa: N801 - as above


class test_EventLoop(BaseEventLoop): ...  # noqa: N801 - as above
