"""What of an upstream is offered, under which names, and for how long its answers are kept."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, model_validator

from gateway.config.names import Text
from gateway.config.section import Listed, Section, key, none_as_mapping
from gateway.config.values import Duration, all_wrong, wrong

_TOOL: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")


def _parse_glob(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise wrong("not a glob", "text, in which * stands for anything", remedy='write "get_*"')
    return value


def _parse_tool_name(value: object) -> object:
    """A name that every client takes (2026-07-28, server/tools, "Tool Names")."""
    if not isinstance(value, str) or _TOOL.fullmatch(value) is None:
        raise wrong("not a name", "up to 128 letters, digits and _ - . /", remedy="choose another name")
    return value


def _parse_description(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise wrong("not a description", "text", remedy="write what the tool does")
    return value


Glob = Annotated[str, BeforeValidator(_parse_glob)]
ToolName = Annotated[str, BeforeValidator(_parse_tool_name)]
Description = Annotated[str, BeforeValidator(_parse_description)]


class Offered(Section):
    """Which of a kind are offered: those that a glob of `include` fits (none: all), and no glob of `exclude`."""

    include: Listed[Glob] = ()
    exclude: Listed[Glob] = ()


class OfferedTools(Offered):
    """Which tools are offered, and as what; the keys are the server's own names."""

    rename: Annotated[Mapping[Text, ToolName], BeforeValidator(none_as_mapping)] = {}
    describe: Annotated[Mapping[Text, Description], BeforeValidator(none_as_mapping)] = {}

    @model_validator(mode="after")
    def _check_rename(self) -> Self:
        uses = Counter(self.rename.values())
        again = [own for own, new in self.rename.items() if uses[new] > 1]
        if again:
            errors = (
                wrong(
                    "two tools of one name", found=f'"{self.rename[own]}"', at=("rename", own), remedy="choose another"
                )
                for own in again[1:]
            )
            raise all_wrong(list(errors))
        return self


class UpstreamCache(Section):
    """What is different from `cache` for one upstream."""

    ttl_s: Duration | None = key("ttl", None)
    scope: Literal["private", "public"] | None = None
