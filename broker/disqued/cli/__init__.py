"""The command line `disque`: shell, one-shot commands and the views people reach for.

What belongs here: reading options, talking to one node as a client does, and showing what it says. What must not happen
here: anything a script could not do over the public protocol. Modules that need `rich` or `prompt_toolkit` are imported
only by the modes that use them, so that `disque ping` starts as fast as the interpreter does.
"""
