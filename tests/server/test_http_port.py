"""The HTTP port in this process: its answers, and its limits for untrusted clients."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from disqued.httproutes import OK, Answer, Exchange, Request, Route
from disqued.server import httpport
from disqued.server.health import ROUTES
from disqued.server.httpport import MOST_BODIES_BYTES, MOST_CONNECTIONS
from disqued.server.httprequest import MOST_BYTES
from server.httpstage import FEED, GET, LIVE, WAITING, Feed, Stage, play, status_of, with_dead_peer

LIMIT = 8
LIMITED = GET.format("GET", "/waits").encode()

# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_bytes", "status", "text"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", 404, b"page not found; available pages: /livez, /readyz, /stopz\n"),
        (b"GET /livez/ HTTP/1.0\r\n\r\n", 404, b"page not found; available pages: "),
        (b"GET http://node/livez HTTP/1.0\r\n\r\n", 404, b"page not found; available pages: "),
        (b"POST /livez HTTP/1.0\r\n\r\n", 405, b"method not allowed; use GET\n"),
        (b"CONNECT /livez HTTP/1.0\r\n\r\n", 405, b"method not allowed; use GET\n"),
        (b"POST /livez HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", 413, b"this page accepts no request body\n"),
        (
            b"POST /x HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n",
            413,
            b"this page accepts no request body\n",
        ),
        (b"GET /x HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: gzip\r\n\r\n", 501, b"this transfer encoding is not"),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400, b"this is not an HTTP request\n"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400, b"this is not an HTTP request\n"),
        (b"*1\r\n$4\r\nPING\r\n\r\n", 400, b"this is not an HTTP request\n"),
        (b"GET /" + b"x" * MOST_BYTES, 431, b"the request is longer than 8192 bytes\n"),
        (b"GET /" + b"x" * 4 * MOST_BYTES, 431, b"the request is longer than 8192 bytes\n"),
        (b"GET /stopz?timeout= HTTP/1.0\r\n\r\n", 400, b"timeout must be a number of seconds from 0 to 3600\n"),
        (b"GET /stopz?timeout=-1 HTTP/1.0\r\n\r\n", 400, b"timeout must be"),
        (b"GET /stopz?timeout=3601 HTTP/1.0\r\n\r\n", 400, b"timeout must be"),
        (b"GET /stopz?timeout=1e3 HTTP/1.0\r\n\r\n", 400, b"timeout must be"),
        (b"GET /stopz?x=1&timeout=3600 HTTP/1.0\r\n\r\n", 200, b"safe\n"),
        (b"GET /stopz?timeouts=x HTTP/1.0\r\n\r\n", 200, b"safe\n"),
        (b"HEAD /livez HTTP/1.0\r\n\r\n", 200, b""),
    ],
)
def test_a_request_is_answered_with_a_text(request_bytes: bytes, status: int, text: bytes) -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(request_bytes)
        client.writer.write_eof()
        reply = await client.rest()
        assert status_of(reply) == status
        head, _, body = reply.partition(b"\r\n\r\n")
        assert body.startswith(text)
        assert b"\r\nContent-Type: text/plain; charset=utf-8" in head
        assert b"\r\nX-Content-Type-Options: nosniff" in head
        assert (b"\r\nAllow: GET, HEAD" in head) == (status == 405)

    play(act)


def test_refusal_is_readable_when_more_data_was_sent() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(b"POST /livez HTTP/1.1\r\nHost: n\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000)
        assert status_of(await client.rest()) in {413, 431}

    play(act)


def test_a_connection_takes_one_request_after_the_other() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        for _ in range(3):
            client.send(LIVE)
            assert await client.page() == b"alive\n"
        client.send(LIVE * 100)
        assert [await client.page() for _ in range(100)] == [b"alive\n"] * 100
        client.send(b"GET /livez HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n")
        assert (await client.rest()).endswith(b"alive\n")

    play(act)


def test_a_request_may_come_byte_by_byte() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        for byte in LIVE:
            client.send(bytes((byte,)))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert await client.page() == b"alive\n"

    play(act)


def test_failing_page_does_not_affect_others() -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(GET.format("GET", "/fails").encode())
        assert await client.page() == b"internal error; see the server's log\n"
        client.send(LIVE)
        assert await client.page() == b"alive\n"
        assert any("the page /fails could not be made" in text for _, text in stage.local.host.log_lines)

    play(act, routes=(*ROUTES, Route("/fails", fail)))


def test_a_head_with_a_body_is_refused() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(b"HEAD /livez HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\nhello")
        client.writer.write_eof()
        head, _, body = (await client.rest()).partition(b"\r\n\r\n")
        assert status_of(head) == 413
        assert body == b""

    play(act)


def test_an_invalid_request_after_a_head_is_answered_with_a_text() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(GET.format("HEAD", "/livez").encode() + b"no request\r\n\r\n")
        client.writer.write_eof()
        head, refused = (await client.rest()).split(b"\r\n\r\n", 1)
        assert status_of(head) == 200
        assert status_of(refused) == 400
        assert refused.endswith(b"\r\n\r\nthis is not an HTTP request\n")

    play(act)


# --- bodies -----------------------------------------------------------------------------------------------------------


def _echo(_node: object, exchange: Exchange) -> None:
    exchange.answer(OK, exchange.request.method + " " + exchange.request.body.decode())


ECHO = Route("/echo", _echo, methods=("POST",), max_body_bytes=10)


@pytest.mark.parametrize(
    ("request_bytes", "status", "text"),
    [
        (b"POST /echo HTTP/1.0\r\n\r\n", 200, b"POST \n"),
        (b"POST /echo HTTP/1.0\r\nContent-Length: 10\r\n\r\n0123456789", 200, b"POST 0123456789\n"),
        (
            b"POST /echo HTTP/1.0\r\nContent-Length: 11\r\n\r\n01234567890",
            413,
            b"request body too large; this page accepts 10 bytes\n",
        ),
        (
            b"POST /echo HTTP/1.0\r\nContent-Length: 99999999999999\r\n\r\n",
            413,
            b"request body too large; this page accepts 10 bytes\n",
        ),
        (
            b"POST /echo HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            411,
            b"the request needs a Content-Length header\n",
        ),
        (b"POST /echo HTTP/1.0\r\nContent-Length: -1\r\n\r\n", 400, b"this is not an HTTP request\n"),
        (b"POST /echo HTTP/1.0\r\nContent-Length: 10\r\n\r\n012", 400, b"this is not an HTTP request\n"),
        (b"GET /echo HTTP/1.0\r\n\r\n", 405, b"method not allowed; use POST\n"),
    ],
)
def test_a_page_may_take_bodies_of_a_bounded_size(request_bytes: bytes, status: int, text: bytes) -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(request_bytes)
        client.writer.write_eof()
        reply = await client.rest()
        assert status_of(reply) == status
        assert reply.partition(b"\r\n\r\n")[2] == text

    play(act, routes=(ECHO,))


def test_a_body_may_come_in_pieces_and_the_next_request_right_behind() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        for byte in b"POST /echo HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\nhello":
            client.send(bytes((byte,)))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert await client.page() == b"POST hello\n"
        client.send(b"POST /echo HTTP/1.1\r\nHost: n\r\nContent-Length: 2\r\n\r\nhi" * 3)
        assert [await client.page() for _ in range(3)] == [b"POST hi\n"] * 3

    play(act, routes=(ECHO,))


def test_handler_gets_the_request_and_the_client_address() -> None:
    asked: list[Request] = []

    def note(_node: object, exchange: Exchange) -> None:
        asked.append(exchange.request)
        exchange.answer(OK, "noted")

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(b"GET /note?a=%FF HTTP/1.1\r\nHost: n\r\nX-Odd: \xff\r\n\r\n")
        await client.page()
        (request,) = asked
        assert (request.method, request.query, request.body) == ("GET", "a=%FF", b"")
        assert (request.headers["host"], request.headers["x-odd"]) == ("n", "\xff")
        host, port = client.writer.get_extra_info("sockname")
        assert request.client == f"{host}:{port}"

    play(act, routes=(Route("/note", note),))


# --- waiting requests -------------------------------------------------------------------------------------------------


def test_waiting_request_is_answered_at_its_timeout() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        began_s = stage.loop.time()
        client.send(GET.format("GET", "/stopz?timeout=0.25").encode())
        page = await client.page()
        assert page.startswith(b"not safe: node ")
        assert page.endswith(b" does not answer\n")
        assert stage.loop.time() - began_s >= 0.25

    play(act, with_dead_peer())


def test_waiting_requests_are_limited_and_others_are_answered() -> None:
    async def act(stage: Stage) -> None:
        waiting = [await stage.client() for _ in range(LIMIT)]
        for client in waiting:
            client.send(LIMITED)
        await stage.until(lambda: stage.port._open.get("/waits", 0) == LIMIT)
        one_more = await stage.client()
        one_more.send(LIMITED)
        assert await one_more.page() == b"too many pending requests for this page\n"
        one_more.send(LIVE)
        assert await one_more.page() == b"alive\n"

        waiting[0].writer.close()
        await stage.until(lambda: stage.port._open["/waits"] < LIMIT)
        one_more.send(LIMITED)
        await stage.until(lambda: stage.port._open["/waits"] == LIMIT)

        stage.port.end()
        assert await one_more.page() == b"this node is shutting down\n"
        assert [await client.page() for client in waiting[1:]] == [b"this node is shutting down\n"] * (LIMIT - 1)

    play(act, routes=(*ROUTES, Route("/waits", lambda _node, _exchange: None, LIMIT)))


def test_waiting_requests_of_one_address_do_not_keep_others_out() -> None:
    """A preStop hook must get in, and stay in, whatever other clients request."""

    async def act(stage: Stage) -> None:
        greedy = [await stage.client() for _ in range(MOST_CONNECTIONS)]
        for client in greedy:
            client.send(WAITING)
        await stage.until(lambda: stage.port._open.get("/stopz", 0) == MOST_CONNECTIONS)

        hook = await stage.client("127.0.0.2")
        hook.send(WAITING)
        assert await greedy[0].rest() == b"", "the oldest one of the other address makes room"
        await stage.until(lambda: stage.port._open["/stopz"] == MOST_CONNECTIONS)

        for client in greedy[1:4]:
            another = await stage.client()
            another.send(WAITING)
            assert await client.rest() == b""
        probe = await stage.client("127.0.0.3")
        probe.send(LIVE)
        assert await probe.page() == b"alive\n"

        stage.port.end()
        assert await hook.page() == b"this node is shutting down\n"

    play(act, with_dead_peer())


def test_client_that_sends_too_much_while_waiting_is_disconnected() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(WAITING)
        await stage.until(lambda: stage.port._open.get("/stopz", 0) == 1)
        client.send(LIVE * 1000)
        assert await client.rest() == b""
        assert stage.port._open["/stopz"] == 0

    play(act, with_dead_peer())


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_longest_idle_connection_is_closed_for_a_new_one() -> None:
    async def act(stage: Stage) -> None:
        clients = []
        for _ in range(MOST_CONNECTIONS):
            client = await stage.client()
            client.send(LIVE)
            assert await client.page() == b"alive\n"
            clients.append(client)
        clients[0].send(LIVE)
        assert await clients[0].page() == b"alive\n"

        for _ in range(3):
            newest = await stage.client()
            newest.send(LIVE)
            assert await newest.page() == b"alive\n"
        assert stage.port.connected <= MOST_CONNECTIONS
        assert [await client.rest() for client in clients[1:4]] == [b""] * 3
        clients[0].send(LIVE)
        assert await clients[0].page() == b"alive\n"

    play(act)


def test_new_connection_is_refused_when_all_others_wait_and_have_addresses_of_their_own() -> None:
    async def act(stage: Stage) -> None:
        for number in range(MOST_CONNECTIONS):
            client = await stage.client(f"127.0.0.{2 + number}")
            client.send(GET.format("GET", "/waits").encode())
        await stage.until(lambda: stage.port._open.get("/waits", 0) == MOST_CONNECTIONS)
        newest = await stage.client()
        reply = await newest.rest()
        assert status_of(reply) == 503
        assert reply.endswith(b"too many connections\n")

    play(act, routes=(Route("/waits", lambda _node, _exchange: None, MOST_CONNECTIONS),))


@pytest.mark.parametrize("sent", [b"", b"GET /liv", LIVE, LIVE + b"GET", b"garbage\r\n\r\n"])
def test_slow_request_is_disconnected_at_its_deadline(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(httpport, "DEADLINE_S", 0.2)

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(sent)
        await client.rest()
        await stage.until(lambda: stage.port.connected == 0)

    play(act)


def test_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests are not taken, so the data sent to it is bounded."""
    monkeypatch.setattr(httpport, "DEADLINE_S", 0.3)
    answered = 0

    def long(_node: object, exchange: Exchange) -> None:
        nonlocal answered
        answered += 1
        exchange.answer(OK, "x" * 1_000_000)

    async def act(stage: Stage) -> None:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(stage.address)
            deaf.sendall(GET.format("GET", "/long").encode() * 200)
            await stage.until(lambda: answered > 0)
            await stage.until(lambda: stage.port.connected == 0)
        assert answered < 20

    play(act, routes=(Route("/long", long),))


def test_one_request_is_taken_in_a_turn_of_the_loop() -> None:
    """Clients of the broker are served in between, for any number of requests."""
    turns: list[int] = []
    turn = 0

    def note(_node: object, exchange: Exchange) -> None:
        turns.append(turn)
        exchange.answer(OK, "noted")

    async def act(stage: Stage) -> None:
        def count() -> None:
            nonlocal turn
            turn += 1
            if len(turns) < 300:
                stage.loop.call_soon(count)

        count()
        clients = [await stage.client() for _ in range(3)]
        for client in clients:
            client.send(GET.format("GET", "/note").encode() * 100)
        for client in clients:
            assert [await client.page() for _ in range(100)] == [b"noted\n"] * 100

    play(act, routes=(Route("/note", note),))
    assert len(turns) == 300
    assert len(set(turns)) == 300


def test_closed_http_connections_leave_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector of a server is off."""
    monkeypatch.setattr(httpport, "DEADLINE_S", 0.2)

    async def act(stage: Stage) -> None:
        for data in (LIVE, b"garbage\r\n\r\n", b"GET /x" + b"x" * MOST_BYTES, b"GET /x", WAITING):
            for _ in range(5):
                client = await stage.client()
                client.send(data)
                client.writer.write_eof()
                await client.rest()
        for _ in range(5):
            client = await stage.client()
            client.send(FEED)
            await client.reader.readuntil(b"part ")
            client.writer.close()
        stage.close_clients()
        await stage.until(lambda: stage.port.connected == 0)
        await stage.until(lambda: not stage.made and not stage.parsers)

    gc.collect()
    gc.disable()
    try:
        play(act, routes=(*ROUTES, Feed().route))
        play(act, with_dead_peer(), routes=(*ROUTES, Feed().route))
    finally:
        gc.enable()


def test_request_with_long_headers_is_refused_even_if_it_arrives_at_once() -> None:
    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(b"GET /livez HTTP/1.1\r\nHost: node\r\nX: " + b"x" * 3 * MOST_BYTES + b"\r\n\r\n")
        assert status_of(await client.rest()) == 431

    play(act)


def test_large_content_is_read_only_by_pages_that_accept_it() -> None:
    received: list[int] = []

    def admits(_node: object, request: Request) -> Answer | None:
        return None if "x-key" in request.headers else Answer(403, "no key")

    def take(_node: object, exchange: Exchange) -> None:
        received.append(len(exchange.request.body))
        exchange.answer(200, "taken")

    async def act(stage: Stage) -> None:
        body = b"x" * (1 << 20)
        head = b"POST /large HTTP/1.1\r\nHost: node\r\nContent-Length: %d\r\n" % len(body)
        client = await stage.client()
        for _ in range(3):
            client.send(head + b"X-Key: 1\r\n\r\n" + body)
            assert await client.page() == b"taken\n"
        client.send(head + b"\r\n" + body)
        assert status_of(await client.rest()) == 403
        assert received == [len(body)] * 3
        assert stage.port._bodies_bytes == 0

    play(act, routes=(Route("/large", take, 8, ("POST",), 1 << 20, admits=admits),))


def test_large_contents_share_a_bound_and_free_it() -> None:
    def take(_node: object, exchange: Exchange) -> None:
        exchange.answer(200, "taken")

    async def act(stage: Stage) -> None:
        size = MOST_BODIES_BYTES // 2
        head = b"POST /large HTTP/1.1\r\nHost: node\r\nContent-Length: %d\r\n\r\n" % size
        holding = [await stage.client() for _ in range(2)]
        for client in holding:
            client.send(head)
        await stage.until(lambda: stage.port._bodies_bytes == 2 * size)
        another = await stage.client()
        another.send(head)
        assert status_of(await another.rest()) == 503
        holding[0].writer.close()
        await stage.until(lambda: stage.port._bodies_bytes == size)
        another = await stage.client()
        another.send(head + b"x" * size)
        assert await another.page() == b"taken\n"

    play(act, routes=(Route("/large", take, 8, ("POST",), MOST_BODIES_BYTES),))


def test_client_that_asks_may_send_its_content() -> None:
    def take(_node: object, exchange: Exchange) -> None:
        exchange.answer(200, exchange.request.body.decode())

    async def act(stage: Stage) -> None:
        client = await stage.client()
        client.send(b"POST /p HTTP/1.1\r\nHost: node\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        client.send(b"hello")
        assert await client.page() == b"hello\n"

    play(act, routes=(Route("/p", take, 8, ("POST",), 100),))
