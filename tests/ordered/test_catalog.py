"""The catalog: the machine of group 0, which every replica computes alike."""

from __future__ import annotations

import pytest

from disqued.ordered.catalog import (
    DONE,
    EXISTS,
    MISSING,
    Catalog,
    MalformedCatalogError,
    QueueOptions,
    decode,
    pack_create,
    pack_drop,
    pack_replicas,
)

SALT = bytes(range(240, 256))
REPLICAS = (b"a" * 48, b"b" * 40 + b"\x00\xff" * 4)


def create(name: bytes, options: QueueOptions | None = None) -> bytes:
    return pack_create(name, options or QueueOptions(), REPLICAS, b"a" * 40, SALT)


def test_a_created_queue_is_found_by_name_and_by_group() -> None:
    catalog = Catalog()
    assert catalog.apply(5, create(b"orders\xff", QueueOptions(single=True, prefetch=3))) == DONE
    queue = catalog.by_name[b"orders\xff"]
    assert (queue.group, queue.word, queue.replicas, queue.lead, queue.salt) == (
        1,
        b"00000001",
        REPLICAS,
        b"a" * 40,
        SALT,
    )
    assert (queue.options.single, queue.options.prefetch) == (True, 3)
    assert catalog.by_group[1] is catalog.by_word[b"00000001"] is queue
    assert catalog.version == 5


def test_a_queue_is_created_once() -> None:
    catalog = Catalog()
    catalog.apply(1, create(b"q"))
    assert catalog.apply(2, create(b"q", QueueOptions(single=True))) == EXISTS
    assert not catalog.by_name[b"q"].options.single
    assert catalog.version == 1


def test_the_group_of_a_dropped_queue_is_never_used_again() -> None:
    catalog = Catalog()
    catalog.apply(1, create(b"q"))
    assert catalog.apply(2, pack_drop(b"q")) == DONE
    assert catalog.apply(3, pack_drop(b"q")) == MISSING
    catalog.apply(4, create(b"q"))
    assert catalog.by_name[b"q"].group == 2
    assert list(catalog.by_group) == [2]
    assert list(catalog.by_word) == [b"00000002"]


def test_the_replicas_of_a_queue_change() -> None:
    catalog = Catalog()
    catalog.apply(1, create(b"q"))
    assert catalog.apply(2, pack_replicas(catalog.by_name[b"q"], (b"c" * 48,), b"c" * 40)) == DONE
    assert catalog.by_name[b"q"].replicas == (b"c" * 48,)


def test_a_change_of_replicas_for_a_former_queue_of_the_name_is_ignored() -> None:
    catalog = Catalog()
    catalog.apply(1, create(b"q"))
    late = pack_replicas(catalog.by_name[b"q"], (b"c" * 48,), b"c" * 40)
    catalog.apply(2, pack_drop(b"q"))
    catalog.apply(3, create(b"q"))
    assert catalog.apply(4, late) == MISSING
    assert catalog.by_name[b"q"].replicas == REPLICAS


def test_a_catalog_survives_its_bytes() -> None:
    catalog = Catalog()
    for index, name in enumerate((b"b", b"a", b"\xf0\x00")):
        catalog.apply(index + 1, create(name))
    catalog.apply(4, pack_drop(b"a"))
    copy = decode(catalog.encode())
    assert copy.encode() == catalog.encode()
    assert copy.version == 4
    assert copy.last_group == 3
    assert list(copy.by_name) == [b"b", b"\xf0\x00"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"do":"create","name":1}', b'{"do":"create","name":"q"}', b"\xff", b"[" * 100_000],
)
def test_bytes_that_are_no_change_change_nothing(data: bytes) -> None:
    catalog = Catalog()
    assert catalog.apply(1, data) == MISSING
    assert catalog.version == 0


@pytest.mark.parametrize("data", [b"", b"null", b'{"version":1}', b'{"version":1,"last_group":1,"queues":[{}]}'])
def test_bytes_that_are_no_catalog_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedCatalogError):
        decode(data)
