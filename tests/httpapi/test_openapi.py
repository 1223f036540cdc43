"""The documents about the API: OpenAPI for programs, a page for people, a page of docs."""

from __future__ import annotations

import json
import re

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from disqued.console.guard import HEADERS
from disqued.core.commands.command import Command
from disqued.httpapi import page
from disqued.httpapi.openapi import document
from disqued.httpapi.operation import Operation
from disqued.httpapi.table import OPERATIONS
from disqued.node import ROOMS
from httpapi.nodes import OpenNode


def test_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(document()).validate()


def test_document_has_all_operations() -> None:
    paths = document()["paths"]
    found = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert found == {(operation.method, f"/v1/{operation.path}") for operation in OPERATIONS}
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)


def reads_only(operation: Operation, command: Command) -> bool:
    """Whether the request of a command that can change something does not."""
    return command.audited is not None and not command.audited([word.encode() for word in operation.words])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_operation_is_a_command_with_its_options(operation: Operation) -> None:
    command = next(row for row in ROOMS.commands if row.name == operation.words[0].lower())
    words = {*operation.words, *(parameter.option for parameter in operation.parameters)} - {""}
    for word in words:
        if word.isalpha() and word != operation.words[0]:
            assert word in re.split(r"[\[\] |]+", command.syntax), word
    assert operation.changes == ("write" in command.flags and not reads_only(operation, command))
    segments = re.findall(r"\{(\w+)\}", operation.path)
    assert segments == [parameter.name for parameter in operation.among("path")]


def test_documents_need_no_password_and_load_nothing(open_node: OpenNode) -> None:
    node = open_node("--requirepass", "secret", "--http-api", "read")
    answer = node.ask("GET", "openapi.json")
    assert answer.json == json.loads(json.dumps(document()))
    for path, kind in (("docs", "text/html; charset=utf-8"), ("docs.css", "text/css; charset=utf-8")):
        answer = node.ask("GET", path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
        assert all(answer.headers[name] == value for name, value in HEADERS)


def test_page_shows_every_operation_and_has_no_script() -> None:
    text = page.html()
    for operation in OPERATIONS:
        assert f'id="{operation.name}"' in text
        for parameter in operation.parameters:
            assert f"<code>{parameter.name}</code>" in text
    assert "<script" not in text
    assert "style=" not in text
    assert set(re.findall(r'(?:href|src)="([^"#]+)"', text)) == {"/v1/docs.css", "/v1/openapi.json"}
