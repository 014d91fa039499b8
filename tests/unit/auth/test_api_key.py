import hashlib

import pytest

from gateway.auth.anonymous import Anonymous
from gateway.auth.api_key import ApiKey, ApiKeys
from gateway.core.front_door import Headers
from gateway.core.principal import ANONYMOUS, Principal
from gateway.errors import ProtocolError, to_reply

ALICE, BOB = "alice-key-1", "bob-key-\u00e9"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


KEYS = ApiKeys([ApiKey("alice", _digest(ALICE)), ApiKey("bob", _digest(BOB), frozenset({"docs"}))])


def _who(*headers: tuple[str, str]) -> Principal:
    return KEYS.authenticate(Headers([(name.lower().encode(), value.encode()) for name, value in headers]))


@pytest.mark.parametrize(
    "header",
    [
        ("Authorization", f"Bearer {ALICE}"),
        ("Authorization", f"bearer {ALICE}"),
        ("Authorization", f"BEARER  {ALICE} "),
        ("X-API-Key", ALICE),
    ],
)
def test_a_key_names_its_principal(header: tuple[str, str]) -> None:
    assert _who(header) == Principal("api_key:alice", "alice")


def test_a_principal_has_the_scopes_of_its_key() -> None:
    bob = _who(("X-API-Key", BOB))
    assert bob.may_use("docs")
    assert not bob.may_use("git")
    assert _who(("X-API-Key", ALICE)).may_use("git")


def test_a_key_may_stand_beside_another_kind_of_authorization() -> None:
    assert _who(("Authorization", "Basic abc"), ("X-API-Key", ALICE)).name == "alice"


def test_a_key_may_stand_beside_the_callers_token_for_an_upstream() -> None:
    assert _who(("Authorization", "Bearer of-another-issuer"), ("X-API-Key", ALICE)).name == "alice"
    assert _who(("Authorization", f"Bearer {BOB}"), ("X-API-Key", ALICE)).name == "alice"


def test_authorization_is_an_upstreams_only_where_it_is_not_the_key() -> None:
    token = (b"authorization", b"Bearer t")
    assert KEYS.takes_authorization(Headers([token]))
    assert not KEYS.takes_authorization(Headers([token, (b"x-api-key", b"k")]))
    assert not Anonymous().takes_authorization(Headers([token]))


def test_a_replaced_key_is_the_same_principal() -> None:
    renewed = ApiKeys([ApiKey("alice", _digest("alice-key-2"))])
    headers = Headers([(b"x-api-key", b"alice-key-2")])
    assert renewed.authenticate(headers).id == _who(("X-API-Key", ALICE)).id


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ([], "Bearer"),
        ([("Authorization", "Basic abc")], "Bearer"),
        ([("Authorization", "Bearer")], "Bearer"),
        ([("Authorization", ALICE)], "Bearer"),
        ([("Authorization", "Bearer ")], "Bearer"),
        ([("Authorization", "Bearer nobody")], 'Bearer error="invalid_token"'),
        ([("Authorization", f"Bearer {ALICE}x")], 'Bearer error="invalid_token"'),
        ([("Authorization", f"Bearer {_digest(ALICE)}")], 'Bearer error="invalid_token"'),
        ([("X-API-Key", "")], 'Bearer error="invalid_token"'),
        ([("X-API-Key", ALICE.upper())], 'Bearer error="invalid_token"'),
        ([("X-API-Key", ALICE), ("X-API-Key", BOB)], 'Bearer error="invalid_request"'),
        ([("Authorization", f"Bearer {ALICE}")] * 2, 'Bearer error="invalid_request"'),
        ([("Authorization", f"Bearer {ALICE}"), ("X-API-Key", "nobody")], 'Bearer error="invalid_token"'),
    ],
)
def test_nobody_else_comes_in(headers: list[tuple[str, str]], challenge: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        _who(*headers)
    reply = to_reply(caught.value)
    assert (reply.status, dict(reply.headers)) == (401, {"www-authenticate": challenge})
    for key in (ALICE, BOB, "nobody"):
        assert key not in repr(reply)


def test_without_authentication_everybody_is_the_same() -> None:
    assert Anonymous().authenticate(Headers([(b"authorization", b"Bearer x")])) == ANONYMOUS


def test_a_key_that_is_sent_in_both_headers_goes_to_no_upstream() -> None:
    for key in (ALICE, BOB):
        both = [(b"authorization", b"Bearer " + key.encode()), (b"x-api-key", ALICE.encode())]
        assert KEYS.takes_authorization(Headers(both))


@pytest.mark.parametrize("header", [("Authorization", "Bearer "), ("X-API-Key", ""), ("X-API-Key", "  ")])
def test_no_key_is_none_even_if_the_digest_of_nothing_is_configured(header: tuple[str, str]) -> None:
    keys = ApiKeys([ApiKey("unset", _digest(""))])
    with pytest.raises(ProtocolError) as refused:
        keys.authenticate(Headers([(header[0].lower().encode(), header[1].encode())]))
    assert refused.value.status == 401
