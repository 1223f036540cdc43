"""Three real nodes for all tests of a process, and a broker for each test: its own namespace keeps tests apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from disqued.dramatiq import DisqueBroker
from support.cluster import RealCluster

MakeBroker = Callable[..., DisqueBroker]


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three nodes that stay as they are."""
    with RealCluster(tmp_path_factory.mktemp("dramatiq"), 3) as cluster:
        yield cluster


@pytest.fixture
def make_broker(nodes: RealCluster, request: pytest.FixtureRequest) -> Iterator[MakeBroker]:
    """Makes brokers, as processes of one application have them; closed when the test ends."""
    with ExitStack() as opened:

        def make(**options: Any) -> DisqueBroker:
            options.setdefault("nodes", [node.address for node in nodes.nodes])
            broker = DisqueBroker(namespace=request.node.name, **options)
            opened.callback(broker.close)
            return broker

        yield make


@pytest.fixture
def broker(make_broker: MakeBroker) -> DisqueBroker:
    """A broker with the defaults."""
    return make_broker()
