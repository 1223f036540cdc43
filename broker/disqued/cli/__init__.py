"""The command line `disque`: single commands, the interactive mode, and subcommands with views of a node.

The package parses options, connects to one node as a client, and prints replies. It uses only the public protocol, so a
script can do everything that it does. Modules that need `rich` or `prompt_toolkit` are imported only where they are
used, so `disque ping` starts fast.
"""
