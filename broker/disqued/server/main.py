"""The command `disque-server`: reads the configuration and runs one server with it."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import sys
from pathlib import Path

from disqued import SPOKEN_VERSION, __version__
from disqued.build import FLAVOUR
from disqued.config import Config, ConfigError, ServerArguments, fatal_text, load, parse_arguments
from disqued.node import ROOMS, Rooms
from disqued.server import allocator, daemon, logs, severalnodes
from disqued.server.fatal import Fatal
from disqued.server.host import read_text
from disqued.server.memorytest import memory_test
from disqued.server.run import Run

try:
    from uvloop import new_event_loop
except ImportError:  # other implementations of Python run on asyncio's own loop
    from asyncio import new_event_loop  # type: ignore[assignment]

USAGE = """Usage: disque-server [--nodes <number>] [config-file | -] [--directive value...]...
       disque-server -v | --version
       disque-server -h | --help
       disque-server --test-memory <megabytes>

Examples:
       disque-server                                  (defaults, port 7711)
       disque-server /etc/disque/disque.conf
       disque-server --port 7777 --maxmemory 2gb
       disque-server --nodes 4                        (four nodes behind port 7711)
       disque-server /etc/disque.conf --loglevel verbose
       echo 'maxmemory 128mb' | disque-server -
"""
STANDARD_INPUT = "-"


def read_configuration(path: str | None) -> str:
    """Read the text of the configuration file, or standard input.

    Raises:
        Fatal: the file cannot be read.
    """
    if path is None:
        return ""
    try:
        return _read_standard_input() if path == STANDARD_INPUT else read_text(Path(path))
    except OSError as error:
        raise Fatal(f"Fatal error, can't open config file '{path}': {error.strerror}") from error


def configure(text: str, arguments: ServerArguments, rooms: Rooms) -> Config:
    """Return the configuration of file and command line.

    Raises:
        ConfigError: a directive is wrong.
    """
    names = [command.name.encode() for command in rooms.commands]
    return load(text, arguments.lines, lambda included: read_text(Path(included)), names, rooms.directives)


def _read_standard_input() -> str:
    with os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False) as stdin:
        return stdin.read()


def version_line() -> str:
    """What `--version` prints."""
    return f"Disque server v={SPOKEN_VERSION} disqued={__version__} python={platform.python_version()} build={FLAVOUR}"


def start(arguments: ServerArguments, rooms: Rooms) -> None:
    """Configure the server and serve until it ends.

    Raises:
        ConfigError: a directive is wrong.
        Fatal: the server cannot start.
    """
    allocator.configure()
    directory = _working_directory()
    text = read_configuration(arguments.config_path)
    config = configure(text, arguments, rooms)
    if arguments.nodes is not None:
        sys.exit(severalnodes.serve(config, text, arguments.lines, arguments.nodes, len(sys.argv) - 1))
    if config.dir:
        try:
            os.chdir(config.dir)
        except OSError as error:
            raise Fatal(f"Can't chdir to '{config.dir}': {error.strerror}") from error
    background = daemon.detach() if config.daemonize else None
    open_log(config)
    try:
        serve(config, arguments, rooms, directory, background)
    except Fatal as error:
        logs.write("warning", str(error))
        if config.logfile:
            raise
        sys.exit(1)


def _working_directory() -> str:
    try:
        return str(Path.cwd())
    except OSError as error:
        raise Fatal(f"Cannot determine the working directory; it may have been removed: {error.strerror}") from error


def open_log(config: Config) -> None:
    """Open the configured log.

    Raises:
        Fatal: the log file cannot be opened.
    """
    syslog = (config.syslog_ident, config.syslog_facility) if config.syslog_enabled else None
    try:
        logs.configure(config.loglevel, config.logfile, syslog)
    except OSError as error:
        raise Fatal(f"Can't open the log file '{config.logfile}': {error.strerror}") from error


def serve(config: Config, arguments: ServerArguments, rooms: Rooms, directory: str, background: int | None) -> None:
    """Serve until the server is stopped.

    Raises:
        Fatal: the server cannot start or must end.
    """
    config_path = arguments.config_path
    if config_path is None and not arguments.lines:
        logs.write("warning", "Warning: no config file specified, using the default config.")
    from_pipe = config_path == STANDARD_INPUT
    file = Path(directory, config_path) if config_path is not None and not from_pipe else None
    run = Run(config, rooms, file, None if from_pipe else directory)
    # Jobs form no reference cycles, and the pause of a collection would grow with the number of jobs.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(run.serve(background))
    finally:
        run.close()


def main(rooms: Rooms = ROOMS) -> None:
    """Run `disque-server` for a node made of `rooms`."""
    arguments = parse_arguments(sys.argv[1:])
    if arguments.action == "version":
        print(version_line())  # noqa: T201 - the answer to --version
        sys.exit(0)
    if arguments.action == "help":
        sys.stderr.write(USAGE)
        sys.exit(1)
    if arguments.action == "test-memory":
        sys.exit(memory_test(arguments.test_megabytes))
    try:
        start(arguments, rooms)
    except ConfigError as error:
        sys.stderr.write(fatal_text(error))
        sys.exit(1)
    except Fatal as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
