"""The demo server's prompt, resources and completions."""

import pytest

from gateway.demo import library
from gateway.demo.notes import Notes
from gateway.demo.rpc import RpcError


def test_the_prompt_fills_in_its_arguments():
    prompt = library.get_prompt({"name": "welcome", "arguments": {"name": "Ada", "language": "german"}})
    assert prompt["messages"][0]["content"]["text"].endswith("Willkommen, Ada!")


@pytest.mark.parametrize(
    "params",
    [
        {"name": "other"},
        {"name": "welcome"},
        {"name": "welcome", "arguments": {"name": "Ada", "language": "klingon"}},
    ],
)
def test_a_prompt_that_cannot_be_made_is_an_invalid_request(params):
    with pytest.raises(RpcError) as caught:
        library.get_prompt(params)
    assert caught.value.code == -32602


def test_resources_are_read_by_uri_and_by_template():
    assert library.read_resource(Notes(), {"uri": "demo://readme"})["contents"][0]["mimeType"] == "text/markdown"
    assert library.read_resource(Notes(), {"uri": "demo://notes/2"})["contents"][0]["text"] == "Water the plants."


def test_a_note_that_is_added_is_a_resource():
    notes = Notes()
    assert notes.add("Sleep.") == "3"
    assert [entry["uri"] for entry in library.list_resources(notes)["resources"]] == [
        "demo://readme",
        "demo://notes",
        "demo://notes/1",
        "demo://notes/2",
        "demo://notes/3",
    ]
    assert library.read_resource(notes, {"uri": "demo://notes/3"})["contents"][0]["text"] == "Sleep."
    assert library.read_resource(notes, {"uri": "demo://notes"})["contents"][0]["text"].endswith("3. Sleep.\n")


def test_the_notebook_fills_up():
    notes = Notes()
    with pytest.raises(ValueError, match="full"):
        for _ in range(100):
            notes.add("x")


@pytest.mark.parametrize("uri", ["demo://notes/3", "demo://other", None])
def test_an_unknown_resource_is_the_legacy_error(uri):
    with pytest.raises(RpcError) as caught:
        library.read_resource(Notes(), {"uri": uri})
    assert (caught.value.code, caught.value.data) == (-32002, {"uri": uri})


@pytest.mark.parametrize(
    ("ref", "name", "value", "values"),
    [
        ({"type": "ref/prompt", "name": "welcome"}, "language", "ge", ["german"]),
        ({"type": "ref/prompt", "name": "welcome"}, "name", "", []),
        ({"type": "ref/resource", "uri": "demo://notes/{id}"}, "id", "", ["1", "2"]),
        ({"type": "ref/resource", "uri": "demo://readme"}, "id", "", []),
        (None, "id", "", []),
    ],
)
def test_completion_offers_what_begins_with_the_value(ref, name, value, values):
    result = library.complete(Notes(), {"ref": ref, "argument": {"name": name, "value": value}})
    assert result["completion"] == {"values": values, "total": len(values), "hasMore": False}


def test_completion_needs_an_argument():
    with pytest.raises(RpcError):
        library.complete(Notes(), {"ref": {"type": "ref/prompt", "name": "welcome"}})
