"""Cluster membership: the members, their identities and addresses, failure detection, and this node's own place.

Identity, address, leaving and the file with them (nodes.conf) belong here. Jobs and queues do not: CLUSTER RESET drops
them through the core. Other rooms decide from the cluster view, which this room maintains, which nodes get copies.
"""

from disqued.bus import kinds
from disqued.core.runtime.message import Message
from disqued.core.runtime.subsystem import Subsystem
from disqued.membership import authentication, commands, external, hello, hostname, tokenbits, zone
from disqued.membership.failure import handle_fail
from disqued.membership.kept import NAME
from disqued.membership.metrics import METRICS
from disqued.membership.pinghandlers import handle_ping, handle_pong
from disqued.membership.room import MembershipRoom

SUBSYSTEM = Subsystem(
    NAME,
    MembershipRoom,
    (commands.COMMAND, hello.COMMAND),
    (
        Message(
            kinds.PING,
            "PING",
            kinds.OF_GOSSIP,
            "every node, regularly, to one other node",
            "PONG on the same connection; the receiver takes in the gossip of a member",
            from_anyone=handle_ping,
        ),
        Message(
            kinds.MEET,
            "MEET",
            kinds.OF_GOSSIP,
            "a node that got CLUSTER MEET, or learned of a node by gossip",
            "as PING, and the receiver adds the sender",
            from_anyone=handle_ping,
        ),
        Message(
            kinds.PONG,
            "PONG",
            kinds.OF_GOSSIP,
            "the receiver of PING or MEET, to its sender",
            "the sender is alive: suspicion and failure end",
            from_anyone=handle_pong,
        ),
        Message(
            kinds.FAIL,
            "FAIL",
            kinds.OF_NODE_ID,
            "a node that found that the majority suspects a node, to all",
            "the receiver flags that node as failed",
            handle_fail,
        ),
        Message(
            kinds.HOST,
            "HOST",
            kinds.OF_UNKNOWN,
            "a node that announces a host name, to nodes with the feature",
            "the receiver reaches the node by that name",
            hostname.handle_host,
            feature=hostname.FEATURE_HOST,
        ),
        Message(
            kinds.ZONE,
            "ZONE",
            kinds.OF_UNKNOWN,
            "a node that announces a zone, to nodes with the feature",
            "the receiver prefers other zones for further copies of its jobs",
            zone.handle_zone,
            feature=zone.FEATURE_ZONE,
        ),
        Message(
            kinds.EXTERNAL,
            "EXTERNAL",
            kinds.OF_UNKNOWN,
            "a node that announces an address for clients outside, to nodes with the feature",
            "HELLO of the receiver shows that address to such clients",
            external.handle_external,
            feature=external.FEATURE_EXTERNAL,
        ),
        Message(
            kinds.TOKENBITS,
            "TOKENBITS",
            kinds.OF_UNKNOWN,
            "a node whose number in claims is not the one that its ID gives, to nodes with the feature",
            "the receiver takes another number for itself if it has the same one and the greater ID",
            tokenbits.handle_tokenbits,
            feature=kinds.FEATURE_CLAIMS,
        ),
        Message(
            kinds.CHALLENGE,
            "CHALLENGE",
            kinds.OF_UNKNOWN,
            "a node with a cluster secret that opened a connection, first on it",
            "RESPONSE on the same connection",
            from_anyone=authentication.handle_challenge,
        ),
        Message(
            kinds.RESPONSE,
            "RESPONSE",
            kinds.OF_UNKNOWN,
            "the receiver of CHALLENGE, or of another frame without the CHALLENGE that it requires",
            "PROOF if the sender knows a secret of the receiver; otherwise the connection is closed",
            from_anyone=authentication.handle_response,
        ),
        Message(
            kinds.PROOF,
            "PROOF",
            kinds.OF_UNKNOWN,
            "the receiver of RESPONSE, on the same connection",
            "the connection belongs to the sender if it knows a secret of the receiver; otherwise it is closed",
            from_anyone=authentication.handle_proof,
        ),
    ),
    info=commands.figures,
    metrics=METRICS,
)
