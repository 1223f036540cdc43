"""What the models of all resources share: objects with names of fields as in Kubernetes, rules, common types."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from disque_operator.apivalues import Json

EMBEDDED: Final = "x-embedded"
"""In a schema: the model of the Kubernetes client, such as `V1Affinity`, that describes this value."""
LONGEST_NAME: Final = 253
"""The length limit of most Kubernetes names."""
MOST_MEMBERS: Final = 100

Name: TypeAlias = Annotated[str, Field(max_length=LONGEST_NAME)]
Resources: TypeAlias = Annotated[Json, WithJsonSchema({EMBEDDED: "V1ResourceRequirements"})]


def rule(expression: str, message: str) -> dict[str, JsonValue]:
    """Return a validation rule: a condition in Kubernetes' expression language, and the error if it does not hold."""
    return {"rule": expression, "message": message}


def rules(*several: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the extension of a schema that holds validation rules."""
    return {"x-kubernetes-validations": list(several)}


def field_name(attribute: str) -> str:
    """Return the name of an attribute in the resource: `timeout_s` is `timeoutSeconds`."""
    words = attribute.removesuffix("_s").split("_") + (["seconds"] if attribute.endswith("_s") else [])
    return words[0] + "".join(word.capitalize() for word in words[1:])


class Section(BaseModel):
    """An object in the resource. A field that is null has its default, as the API server would fill it in."""

    model_config = ConfigDict(frozen=True, alias_generator=field_name, validate_by_name=True, validate_by_alias=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given
