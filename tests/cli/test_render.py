"""The four output formats. The recorded sessions check the formats of the original; these tests check the rest."""

from __future__ import annotations

import json

import pytest

from disqued.cli.render import Form, render, render_for
from disqued.resp.replies import Failure, Pairs, Reply, Status

CASES: list[tuple[Reply, bytes, bytes, bytes, object]] = [
    (Status(b"OK"), b"OK\n", b"OK\n", b'"OK"\n', "OK"),
    (b'a"b\\\n\xff', b'"a\\"b\\\\\\n\\xff"\n', b'a"b\\\n\xff\n', b'"a\\"b\\\\\\n\\xff"\n', 'a"b\\\n\udcff'),
    ("gr\u00fcn".encode(), b'"gr\\xc3\\xbcn"\n', b"gr\xc3\xbcn\n", b'"gr\\xc3\\xbcn"\n', "gr\u00fcn"),
    (-3, b"(integer) -3\n", b"-3\n", b"-3\n", -3),
    (1.5, b"(float) 1.5\n", b"1.5\n", b"1.5\n", 1.5),
    (True, b"(bool) true\n", b"true\n", b"true\n", True),
    (None, b"(nil)\n", b"\n", b"NIL\n", None),
    (Failure(b"ERR no"), b"(error) ERR no\n", b"ERR no\n\n", b'ERROR,"ERR no"\n', {"error": "ERR no"}),
    ([], b"(empty list or set)\n", b"\n", b"\n", []),
    ([b"a", [1, None]], b'1) "a"\n2) 1) (integer) 1\n   2) (nil)\n', b"a\n1\n\n", b'"a",1,NIL\n', ["a", [1, None]]),
    (Pairs([(b"k", 1)]), b'1) "k"\n2) (integer) 1\n', b"k\n1\n", b'"k",1\n', {"k": 1}),
]


@pytest.mark.parametrize(("reply", "readable", "raw", "csv", "value"), CASES)
def test_reply_is_rendered_in_all_formats(reply: Reply, readable: bytes, raw: bytes, csv: bytes, value: object) -> None:
    assert render(reply, Form.READABLE) == readable
    assert render(reply, Form.RAW) == raw
    assert render(reply, Form.CSV) == csv
    assert json.loads(render(reply, Form.JSON)) == value


def test_json_preserves_any_bytes() -> None:
    body = bytes(range(256))
    assert json.loads(render(body, Form.JSON)).encode("utf-8", "surrogateescape") == body


def test_arrays_of_ten_and_more_are_aligned() -> None:
    lines = render([*range(10)], Form.READABLE).splitlines()
    assert (lines[0], lines[9]) == (b" 1) (integer) 0", b"10) (integer) 9")


@pytest.mark.parametrize("command", ["info", "INFO jobs", "cluster nodes", "CLIENT LIST", "latency doctor"])
def test_reports_are_printed_unchanged(command: str) -> None:
    words = [word.encode() for word in command.split()]
    assert render_for(words, b"a:1\r\n", Form.READABLE) == b"a:1\r\n"
    assert render_for(words, Failure(b"ERR no"), Form.READABLE) == b"(error) ERR no\n"
    assert json.loads(render_for(words, b"a:1\r\n", Form.JSON)) == "a:1\r\n"


def test_other_subcommands_are_not_reports() -> None:
    assert render_for([b"cluster", b"myid"], b"x", Form.READABLE) == b'"x"\n'
