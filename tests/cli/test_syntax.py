"""What can follow the words typed so far, from the syntax lines of the command table."""

from __future__ import annotations

import pytest

from disqued.cli.manual import command_table
from disqued.cli.syntax import continuations, parse_syntax

ADDJOB = "queue body ms-timeout [REPLICATE n] [DELAY sec] [ASYNC]"
GETJOB = "[NOHANG] [TIMEOUT ms] FROM queue [queue ...]"
JSCAN = "[cursor] [COUNT n] [STATE state] ... [REPLY all|id]"
CONFIG = "GET pattern | SET name value | REWRITE"
HELLO = "[2|3 [AUTH user password] [SETNAME name]]"
COMMAND = "[COUNT | DOCS [name ...]]"


@pytest.mark.parametrize(
    ("line", "typed", "rest"),
    [
        (ADDJOB, "", "queue body ms-timeout [REPLICATE n] [DELAY sec] [ASYNC]"),
        (ADDJOB, "q", "body ms-timeout [REPLICATE n] [DELAY sec] [ASYNC]"),
        (ADDJOB, "q async 0", "[REPLICATE n] [DELAY sec] [ASYNC]"),
        (ADDJOB, "q b 0 delay", "sec [REPLICATE n] [ASYNC]"),
        (ADDJOB, "q b 0 Delay 5 ASYNC", "[REPLICATE n]"),
        (ADDJOB, "q b 0 what", "[REPLICATE n] [DELAY sec] [ASYNC]"),
        (GETJOB, "timeout 5", "[NOHANG] FROM queue [queue ...]"),
        (GETJOB, "from nohang", "[queue ...]"),
        (GETJOB, "from a b c", "[queue ...]"),
        (JSCAN, "0 state queued state", "state [COUNT n] [STATE state ...] [REPLY all|id]"),
        (JSCAN, "0 reply", "all|id [COUNT n] [STATE state ...]"),
        (CONFIG, "", "GET pattern | SET name value | REWRITE"),
        (CONFIG, "set", "name value"),
        (CONFIG, "what", ""),
        (COMMAND, "", "COUNT | DOCS [name ...]"),
        (COMMAND, "docs a b", "[name ...]"),
        (HELLO, "", "2|3 [AUTH user password] [SETNAME name]"),
        (HELLO, "3 auth default", "password [SETNAME name]"),
        ("[text]", "", "[text]"),
        ("", "what ever", ""),
    ],
)
def test_rest_of_a_command(line: str, typed: str, rest: str) -> None:
    assert " | ".join(str(found) for found in continuations(line, typed.split())) == rest


def test_next_words_end_with_the_first_required_one() -> None:
    (rest,) = continuations(GETJOB, ["nohang"])
    assert rest.next_words() == {"TIMEOUT": "ms", "FROM": ""}


@pytest.mark.parametrize("name", sorted(command_table()))
def test_syntax_of_every_command_is_parsed_completely(name: str) -> None:
    line = command_table()[name].syntax
    shown = " | ".join(" ".join(map(str, parts)) for parts in parse_syntax(line))
    without_brackets = str.maketrans("", "", "[]")
    assert shown.translate(without_brackets).split() == line.translate(without_brackets).split()
