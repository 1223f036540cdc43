"""What can be configured, and how: directives, files, the server's command line, CONFIG GET, SET and REWRITE.

`options` has the one table of directives; all else follows from it. Nothing here touches files, sockets or the clock:
texts come in and go out as arguments, and the effects of a changed value belong to the part that owns the directive.
"""

from disqued.config.arguments import ServerArguments, parse_arguments
from disqued.config.config import Config
from disqued.config.endpoint import Endpoint, parse_endpoint
from disqued.config.loading import ConfigError, fatal_text, load
from disqued.config.options import OPTIONS, Option
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
