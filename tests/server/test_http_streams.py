"""Streams of the HTTP port, which last until the client disconnects."""

from __future__ import annotations

import asyncio
import socket

import pytest

from disqued.httproutes import OK, Answer, Exchange, Route
from disqued.server import httpport
from server.httpstage import FEED, GET, Feed, Stage, play, status_of


def test_stream_continues_until_the_client_disconnects() -> None:
    feed = Feed()

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(FEED)
        async with asyncio.timeout(10):
            head = await client.reader.readuntil(b"\r\n\r\n")
            assert b"\r\nContent-Type: text/event-stream\r\n" in head
            assert b"\r\nTransfer-Encoding: chunked\r\n" in head
            assert await client.reader.readexactly(11) == b"6\r\nfirst \r\n"
            assert await client.reader.readexactly(10) == b"5\r\npart \r\n"
        client.writer.close()
        await stage.until(lambda: feed.ended == 1)
        assert stage.port._open["/feed"] == 0

    play(act, routes=(feed.route,))


def test_head_request_gets_only_the_headers_of_a_stream() -> None:
    def begin(_node: object, exchange: Exchange) -> None:
        exchange.stream(Answer(OK, b"first"))
        exchange.push(b"second")
        exchange.finish()

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(GET.format("HEAD", "/parts").encode() + b"GET /parts HTTP/1.0\r\n\r\n")
        head, first, rest = (await client.rest()).split(b"\r\n\r\n")
        assert status_of(head) == status_of(first) == 200
        assert rest == b"firstsecond"

    play(act, routes=(Route("/parts", begin),))


def test_a_stream_of_events_ends_with_the_node() -> None:
    feed = Feed()

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(FEED)
        await stage.until(lambda: feed.sent > 2)
        stage.port.end()
        assert (await client.rest()).endswith(b"part \r\n0\r\n\r\n")
        await stage.until(lambda: feed.ended == 1)

    play(act, routes=(feed.route,))


def test_unfinished_page_is_aborted_at_shutdown() -> None:
    """The client must not consider a part to be complete: Prometheus would store it."""

    def begin(_node: object, exchange: Exchange) -> None:
        exchange.stream(Answer(OK, b"first"))

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(GET.format("GET", "/page").encode())
        await client.reader.readuntil(b"first\r\n")
        stage.port.end()
        assert await client.rest() == b""
        await stage.until(lambda: stage.port._open["/page"] == 0)

    play(act, routes=(Route("/page", begin),))


def test_client_that_does_not_read_a_stream_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data that waits for it is bounded."""
    monkeypatch.setattr(httpport, "DEADLINE_S", 0.3)
    feed = Feed(b"x" * 1_000_000)

    async def act(stage: Stage) -> None:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(stage.address)
            deaf.sendall(FEED)
            await stage.until(lambda: feed.ended == 1)
        assert feed.left_out > 0
        assert feed.sent < 20

    play(act, routes=(feed.route,))


def test_failing_stream_closes_only_its_connection() -> None:
    def begin(_node: object, exchange: Exchange) -> None:
        exchange.stream(Answer(OK, b"first"))
        exchange.call_later(0.01, lambda: fail(exchange))

    def fail(_exchange: Exchange) -> None:
        raise ZeroDivisionError

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(GET.format("GET", "/fails").encode())
        assert (await client.rest()).endswith(b"first\r\n")
        assert stage.port._open["/fails"] == 0
        assert any("the page /fails could not be made" in text for _, text in stage.local.host.log_lines)

    play(act, routes=(Route("/fails", begin),))
