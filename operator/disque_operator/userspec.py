"""The `spec` of a `DisqueUser`: a user of all members of a cluster, and what it may do there."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field

from disque_operator.sections import Name, Section, rule, rules

UNNAMEABLE: Final = "default"
"""The user of connections without a login, whose password is that of the cluster."""
USER_NAME: Final = r"^[A-Za-z0-9_.@:/-]+$"
Pattern: TypeAlias = Annotated[str, Field(pattern=r"^[^\s\"'\\]+$", max_length=256)]
Permission: TypeAlias = Annotated[str, Field(pattern=r"^(@[a-z]+|[a-z]+(\|[a-z-]+)?)$", max_length=64)]
DeletionPolicy: TypeAlias = Literal["Delete", "Retain"]


class ClusterReference(Section):
    """A DisqueCluster in the same namespace."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self.name == oldSelf.name", "clusterRef cannot be changed: create another resource"),
        )
    )

    name: Name = Field(description="The name of the DisqueCluster.")


class PasswordKey(Section):
    """A key of a Secret in the same namespace."""

    name: Name = Field(description="The name of the Secret.")
    key: Name = Field(default="password", description="The key with the password.")


class UserLimits(Section):
    """Limits on each member; 0 for no limit."""

    commands_per_second: int = Field(default=0, ge=0, le=1_000_000_000, description="Commands per second.")
    connections: int = Field(default=0, ge=0, le=1_000_000_000, description="Connections at a time.")


class UserFields(Section):
    """The desired user."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.userName) == has(oldSelf.userName) && "
                "(!has(self.userName) || self.userName == oldSelf.userName)",
                "userName cannot be changed: create another resource",
            ),
            rule(
                f"!has(self.userName) || self.userName != '{UNNAMEABLE}'",
                f"userName must not be {UNNAMEABLE}: its password is that of the cluster, see spec.auth of the cluster",
            ),
            rule(
                "self.authentication == 'Password' || !has(self.passwordSecret)",
                "passwordSecret has no effect with authentication: Certificate: remove one of them",
            ),
        )
    )

    cluster_ref: ClusterReference
    user_name: Annotated[str, Field(pattern=USER_NAME, max_length=128)] | None = Field(
        default=None, description="The name with which clients log in. Defaults to the name of the resource."
    )
    enabled: bool = Field(default=True, description="Whether the user can log in. `false` ends its connections.")
    authentication: Literal["Password", "Certificate"] = Field(
        default="Password",
        description="How the user logs in: with a password, or with a TLS certificate whose common name is the name of "
        "the user. Certificates need the directive `tls-auth-clients-user cn` in the cluster.",
    )
    password_secret: PasswordKey | None = Field(
        default=None,
        description="The Secret with the password. By default, the operator generates a password, in a Secret that "
        "`status.secretName` names.",
    )
    queues: tuple[Pattern, ...] = Field(
        default=(),
        max_length=100,
        description="Patterns of queue names that the user may use, such as `mail:*`; `*` for all queues. Use `?` for "
        "blanks and quotes.",
    )
    allow: tuple[Permission, ...] = Field(
        default=(),
        max_length=100,
        description="Commands, subcommands (`config|get`) and categories (`@producer`, `@consumer`, `@inspect`, "
        "`@queueadmin`, `@clusteradmin`, `@all`) that the user may run.",
    )
    deny: tuple[Permission, ...] = Field(
        default=(), max_length=100, description="Commands and categories that `allow` does not include after all."
    )
    limits: UserLimits = UserLimits()
    adopt: bool = Field(
        default=False,
        description="Whether to take over a user of this name that exists in the cluster already. Its rules and "
        "passwords are replaced.",
    )
    deletion_policy: DeletionPolicy = Field(
        default="Delete",
        description="What happens when the resource is deleted: `Delete` removes the user and ends its connections, "
        "`Retain` keeps it with its present rules and password.",
    )
