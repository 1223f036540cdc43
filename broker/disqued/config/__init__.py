"""Configuration: directives, configuration files, the server's command line, and CONFIG GET, SET and REWRITE.

The table of directives is in `options`. This package does not access files, sockets or the clock: callers pass texts
in and get texts back. The part of the server that owns a directive applies the effect of a changed value.
"""

from disqued.config.arguments import ServerArguments, parse_arguments
from disqued.config.config import Config
from disqued.config.endpoint import Endpoint, parse_endpoint
from disqued.config.loading import ConfigError, fatal_text, load
from disqued.config.option import Option
from disqued.config.options import OPTIONS
from disqued.config.renames import rename_commands
from disqued.config.rewriting import rewrite

__all__ = [
    "OPTIONS",
    "Config",
    "ConfigError",
    "Endpoint",
    "Option",
    "ServerArguments",
    "fatal_text",
    "load",
    "parse_arguments",
    "parse_endpoint",
    "rename_commands",
    "rewrite",
]
