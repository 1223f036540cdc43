"""`disque console`: opens the web console of a node, or prints its address."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser

from disqued.cli.arguments import Parser
from disqued.cli.connection import CommandRefusedError
from disqued.cli.endpoint import DEFAULT_HOST, Endpoint, choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import connected_client
from disqued.client import Client


def run(options: argparse.Namespace) -> Exit:
    """Print the address, and open it if standard output is a terminal."""
    parser = Parser("disque console", None, "Open the web console of a node in the browser.", [endpoint_options()])
    parser.add_argument(
        "--node", metavar="NODE", help="another node of the cluster: its address, its ID or a prefix of its ID"
    )
    parser.add_argument("--print", dest="only_print", action="store_true", help="print the address without opening it")
    options = parser.parse(options.command[1:], options)
    endpoint = choose_endpoint(options)
    if options.node is not None:
        with connected_client(endpoint) as client:
            endpoint = _member(client, endpoint, options.node)
    address = _address(endpoint)
    sys.stdout.write(address + "\n")
    sys.stdout.flush()
    on_terminal = sys.stdout.isatty() or "FAKETTY" in os.environ
    if on_terminal and not options.only_print and not webbrowser.open(address):
        sys.stderr.write("No browser found; open the address in a browser that can reach the node.\n")
    return Exit.OK


def _member(client: Client, asked: Endpoint, wanted: str) -> Endpoint:
    """Return the client endpoint of the node that `wanted` names."""
    found = []
    for node in client.hello().nodes:
        at = asked.at(node.host, node.port)
        if node.id.startswith(wanted) or str(at) == wanted:
            found.append(at)
    if len(found) != 1:
        how_many = "No node matches" if not found else f"{len(found)} nodes match"
        raise CommandRefusedError(f"{how_many} '{wanted}'; see 'disque nodes'")
    return found[0]


def _address(endpoint: Endpoint) -> str:
    """Return the address of the console."""
    with connected_client(endpoint) as client:
        port = _directive(client, "http-port")
        scheme = "https" if _directive(client, "http-tls") == "yes" else "http"
    if port in {"", "0"}:
        raise CommandRefusedError(f"node {endpoint} has no console; set http-port in its configuration")
    host = endpoint.host if endpoint.path is None else DEFAULT_HOST
    return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"


def _directive(client: Client, name: str) -> str:
    """The value of a directive; empty if the node does not know it."""
    reply = client.execute("CONFIG", "GET", name, repeat=True)
    return reply[1].decode() if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], bytes) else ""
