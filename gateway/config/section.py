"""What all sections of the configuration share."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gateway.config.values import split_texts

_ItemT = TypeVar("_ItemT")


def none_as_list(value: object) -> object:
    """An empty key is one without items."""
    return [] if value is None else value


def none_as_mapping(value: object) -> object:
    """An empty key is one without keys below it."""
    return {} if value is None else value


Listed = Annotated[tuple[_ItemT, ...], BeforeValidator(none_as_list)]
SplitList = Annotated[tuple[_ItemT, ...], BeforeValidator(split_texts)]


def key(name: str, default: str | None) -> Any:
    """A key whose Python name says the unit."""
    return Field(default, alias=name)


class Section(BaseModel):
    """A section: frozen, no unknown keys, and an empty one is one of defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _none_as_defaults(cls, value: object) -> object:
        return none_as_mapping(value)
