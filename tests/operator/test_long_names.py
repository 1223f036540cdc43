"""The longest name that a cluster may have: Kubernetes accepts the names of the services of its members."""

from __future__ import annotations

from typing import Final

import pytest

from disque_operator import names
from disque_operator.schema.definition import _LONGEST_NAME
from support.manifests import bodies, children

LONGEST: Final = "a" + "-long" * 10 + "n"
LONGEST_SERVICE: Final = 63


def test_longest_name_is_the_one_that_the_definition_allows() -> None:
    assert len(LONGEST) == _LONGEST_NAME


def test_services_of_members_have_names_within_the_limit() -> None:
    body = bodies()["exposed"]
    body["metadata"]["name"] = LONGEST
    body["spec"]["replicas"] = 100
    services = [one["metadata"]["name"] for one in children(body) if one["kind"] == "Service"]
    assert len({*services}) == len(services) == 102
    assert max(map(len, services)) <= LONGEST_SERVICE


@pytest.mark.parametrize("ordinal", [0, 9, 10, 99])
def test_members_are_known_by_their_services(ordinal: int) -> None:
    name = names.external_service(LONGEST, ordinal)
    assert names.external_ordinal(LONGEST, name) == ordinal
    assert names.external_ordinal(LONGEST[:-1] + "x", name) is None
