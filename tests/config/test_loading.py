"""Reading configuration files: what is understood, and what a start-up error says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.config import OPTIONS, Config, ConfigError, fatal_text, load
from disqued.config.kinds import MemoryShare

COMMANDS = (b"getjob", b"addjob", b"debug")
FILES = {
    "more.conf": "timeout 7\nhz 20",
    "bad.conf": "# fine\nhz 20\nport x\n",
    "self.conf": "include self.conf",
    "sub/more.conf": "timeout 8",
}


def read_file(path: str) -> str:
    """A directory of files."""
    try:
        return FILES[path]
    except KeyError:
        raise FileNotFoundError(2, "No such file or directory") from None


def read(text: str, lines: Sequence[str] = ()) -> Config:
    return load(text, lines, read_file, COMMANDS)


def refusal(text: str, lines: Sequence[str] = ()) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        read(text, lines)
    return refused.value


def test_without_lines_all_directives_have_their_defaults() -> None:
    assert vars(read("")) == vars(Config())
    assert vars(read("\n  \n\t# port 1\n#\n")) == vars(Config())


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        ("port 7000", "port", 7000),
        ("  PORT 7000 \r", "port", 7000),
        ('port "7000"', "port", 7000),
        ("port 1\nport 2", "port", 2),
        ("maxmemory 2GB", "maxmemory", MemoryShare(2 << 30)),
        ("maxmemory 5m", "maxmemory", MemoryShare(5_000_000)),
        ("maxmemory 60%", "maxmemory", MemoryShare(percent=60)),
        ("auto-aof-rewrite-min-size 0", "auto_aof_rewrite_min_size", 0),
        ("daemonize YES", "daemonize", True),
        ("unixsocketperm 755", "unixsocketperm", 0o755),
        ("hz 100000", "hz", 500),
        ("slowlog-log-slower-than -1", "slowlog_log_slower_than", -1),
        ("syslog-facility LOCAL3", "syslog_facility", "local3"),
        ("bind 127.0.0.1 ::1", "bind", ("127.0.0.1", "::1")),
        ('requirepass "a b\\xff"', "requirepass", b"a b\xff"),
        ('requirepass ""', "requirepass", b""),
        ("logfile ''", "logfile", ""),
        ("logfile /tmp/\udcff", "logfile", "/tmp/\udcff"),
        ("client-output-buffer-limit normal 1mb 1kb 9", "client_output_buffer_limit", (1 << 20, 1 << 10, 9)),
        ("dir /a\ndir b", "dir", "/a/b"),
        ("dir /a\ndir /c", "dir", "/c"),
        (
            'rename-command DEBUG ""\nrename-command getjob take',
            "rename_command",
            ((b"DEBUG", b""), (b"getjob", b"take")),
        ),
        ("include more.conf", "timeout", 7),
        ("timeout 5\ninclude more.conf", "timeout", 7),
        ("include more.conf\ntimeout 5", "timeout", 5),
        ("dir sub\ninclude more.conf", "timeout", 8),
    ],
)
def test_a_line_sets_its_value(line: str, attribute: str, value: object) -> None:
    assert getattr(read(line), attribute) == value


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nosuch 1", "Bad directive or wrong number of arguments"),
        ("port", "Bad directive or wrong number of arguments"),
        ("port 1 2", "Bad directive or wrong number of arguments"),
        ("include", "Bad directive or wrong number of arguments"),
        ("watchdog-period 5", "Bad directive or wrong number of arguments"),
        ("rename-command getjob", "Bad directive or wrong number of arguments"),
        ("client-output-buffer-limit normal 1 2", "Bad directive or wrong number of arguments"),
        ('""', "Bad directive or wrong number of arguments"),
        ('logfile "x', "Unbalanced quotes in configuration line"),
        ("daemonize 1", "argument must be 'yes' or 'no'"),
        ("port 65536", "Invalid port"),
        ("port x", "Invalid port"),
        ("tcp-backlog -1", "Invalid backlog value"),
        ("unixsocketperm 1000", "Invalid socket file permissions"),
        ("unixsocketperm 9", "Invalid socket file permissions"),
        ("timeout -1", "Invalid timeout value"),
        ("tcp-keepalive -1", "Invalid tcp-keepalive value"),
        ("maxclients 0", "Invalid max clients limit"),
        ("maxmemory 0", "You need to specify a memory limit greater than zero"),
        ("maxmemory 0%", "memory percentage must be a whole number from 1% to 100%"),
        ("maxmemory 101%", "memory percentage must be a whole number from 1% to 100%"),
        ("maxmemory 7.5%", "memory percentage must be a whole number from 1% to 100%"),
        ("cluster-node-timeout 0", "cluster node timeout must be 1 or greater"),
        ("appendfilename a/b", "appendfilename can't be a path, just a filename"),
        ("appendfilename 'a\\b'", "appendfilename can't be a path, just a filename"),
        ("bind " + "127.0.0.1 " * 17, "Too many bind addresses specified"),
        ("bind 'a b'", "a bind address must be an IP address or a host name"),
        ("rename-command nosuch x", "No such command in rename-command"),
        ("rename-command getjob ADDJOB", "Target command name already exists"),
        ("loglevel loud", "argument must be one of debug, verbose, notice, warning"),
        ("requirepass " + "x" * 513, "Password is longer than 512 bytes"),
        ("client-output-buffer-limit slave 0 0 0", "Unrecognized client limit class, the only one is 'normal'"),
        (
            "maxmemory 1gx",
            "argument must be a memory size: digits and one of the units b, k, kb, m, mb, g, gb or none",
        ),
        ("include missing.conf", "Can't open the included file 'missing.conf': No such file or directory"),
    ],
)
def test_a_bad_line_is_an_error_that_says_why(line: str, message: str) -> None:
    error = refusal(f"hz 10\n{line}\nnosuch")
    shown = "requirepass (redacted)" if line.startswith("requirepass") else line.strip()
    assert (error.line_number, error.line, error.message) == (2, shown, message)


def test_the_start_up_error_has_the_original_form() -> None:
    assert fatal_text(refusal("\n  nosuch  'a'\n")) == (
        "\n*** FATAL CONFIG FILE ERROR ***\n"
        "Reading the configuration file, at line 2\n"
        ">>> 'nosuch  'a''\n"
        "Bad directive or wrong number of arguments\n"
    )


def test_an_error_in_an_included_file_names_that_file() -> None:
    assert "at line 3 of 'bad.conf'\n>>> 'port x'\n" in fatal_text(refusal("\n\n\ninclude bad.conf"))


def test_a_file_that_includes_itself_is_refused() -> None:
    error = refusal("include self.conf")
    assert error.message == "'self.conf' is included more than 16 levels deep; check whether it includes itself"


def test_the_command_line_wins_and_its_lines_are_counted_behind_the_file() -> None:
    assert read("port 1\n", ['port "2"']).port == 2
    assert refusal("", ['port "x"']).line_number == 2
    assert refusal("port 1\nhz 5", ['port "3"', "nosuch"]).line_number == 4


def test_names_can_be_swapped_by_renaming() -> None:
    text = "rename-command getjob x\nrename-command addjob getjob\nrename-command x addjob"
    assert read(text).rename_command == ((b"getjob", b"x"), (b"addjob", b"getjob"), (b"x", b"addjob"))


WORDS = st.sampled_from(
    [
        *(option.name for option in OPTIONS),
        "include",
        "self.conf",
        "1",
        "-1",
        "yes",
        "1gb",
        "'a b'",
        '"',
        "#",
        "\\x",
        "/",
    ]
) | st.text(max_size=6)


@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=6).map("\n".join))
def test_any_text_is_loaded_or_refused_with_its_line(text: str) -> None:
    error = None
    try:
        read(text)
    except ConfigError as caught:
        error = caught
    if error is not None:
        assert error.message in fatal_text(error)
        line = text.split("\n")[error.line_number - 1].strip(" \t\r\n")
        assert error.file is not None or error.line == line or error.line.endswith(" (redacted)")
