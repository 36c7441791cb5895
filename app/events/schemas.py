"""The API description of what a page receives: one event of the stream."""

from typing import Any

from marshmallow import fields, validate

from app.events.messages import Kind
from app.web.schema import Answer, Either, WholeNumber, example_metadata


class PersonalWorkspace(Answer):
    """The account's own files."""

    kind = fields.String(validate=validate.Equal("personal"))


class TeamWorkspace(Answer):
    """The files of a team."""

    kind = fields.String(validate=validate.Equal("team"))
    team_id = WholeNumber()


def _ids(description: str, example: list[int]) -> fields.Field[Any]:
    about = {"description": description, "examples": [example]}
    return fields.List(WholeNumber(), metadata=about)


class StorageEvent(Answer):
    """A change in a workspace the account can see."""

    kind = fields.Enum(
        Kind,
        by_value=True,
        metadata={
            "description": "`sync.required` means that events were missed: reload everything"
        },
    )
    workspace = Either(
        PersonalWorkspace,
        TeamWorkspace,
        allow_none=True,
        metadata={"description": "null only for `sync.required`"},
    )
    file_ids = _ids("ascending, each once", [41])
    folder_ids = _ids("ascending, each once", [])
    affected_parent_ids = _ids("the folders whose listing changed, ascending, each once", [12])
    root_affected = fields.Boolean(
        metadata={"description": "whether the listing of the root changed", "examples": [False]},
    )
    affects_quota = fields.Boolean(
        metadata={"description": "`storage_delta` is not 0; also true for `sync.required`"},
    )
    storage_delta = WholeNumber(
        allow_none=True,
        metadata={
            **example_metadata(1048576),
            "description": "bytes gained, or freed if negative; null if the quota is not involved",
        },
    )
    at = fields.DateTime()
