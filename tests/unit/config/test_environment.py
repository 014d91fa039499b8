import pytest

from gateway.config.environment import UPSTREAM, VARIABLES, from_environment
from gateway.config.problems import ConfigError

URL = "https://docs.example.com/mcp"
KEY = "A" * 43 + "="
ENVIRON = {"ERA_GATEWAY_UPSTREAM_URL": URL, "PATH": "/bin"}


def problems_of(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        from_environment(environ)
    return [str(problem) for problem in caught.value.problems]


def test_one_variable_is_enough() -> None:
    settings = from_environment(ENVIRON)
    assert settings.upstreams[UPSTREAM].url == URL
    assert settings.server.port == 8080


def test_every_variable_is_understood() -> None:
    settings = from_environment(
        ENVIRON
        | {
            "ERA_GATEWAY_UPSTREAM_HEADERS": "Authorization: Bearer a:b\nX-Team: blue\n\n",
            "ERA_GATEWAY_UPSTREAM_ERA": "legacy",
            "ERA_GATEWAY_HOST": "0.0.0.0",
            "ERA_GATEWAY_PORT": "9000",
            "ERA_GATEWAY_ALLOWED_ORIGINS": "https://a.test, https://b.test",
            "ERA_GATEWAY_ALLOWED_HOSTS": "a.test,b.test:80",
            "ERA_GATEWAY_KEYS": f"{KEY},{KEY}",
            "ERA_GATEWAY_STORE": "redis://:topsecret@store.test:6379/0",
            "ERA_GATEWAY_NAMESPACE": "blue",
            "ERA_GATEWAY_LOG_LEVEL": "DEBUG",
        }
    )
    upstream, server = settings.upstreams[UPSTREAM], settings.server
    assert upstream.plain_headers() == {"Authorization": "Bearer a:b", "X-Team": "blue"}
    assert upstream.era == "legacy"
    assert (server.host, server.port) == ("0.0.0.0", 9000)
    assert server.allowed_origins == ("https://a.test", "https://b.test")
    assert server.allowed_hosts == ("a.test", "b.test:80")
    assert len(settings.state.keys) == 2
    assert settings.state.store.get_secret_value() == "redis://:topsecret@store.test:6379/0"
    assert settings.state.namespace == "blue"
    assert settings.log.level == "debug"


def test_headers_may_be_a_json_object() -> None:
    settings = from_environment(ENVIRON | {"ERA_GATEWAY_UPSTREAM_HEADERS": ' {"X-Team": "blue ${NOT} replaced"}'})
    assert settings.upstreams[UPSTREAM].plain_headers() == {"X-Team": "blue ${NOT} replaced"}


@pytest.mark.parametrize("name", sorted(VARIABLES.keys() - {"ERA_GATEWAY_UPSTREAM_URL"}))
def test_empty_variable_counts_as_not_set(name: str) -> None:
    assert from_environment(ENVIRON | {name: " "}) == from_environment(ENVIRON)


def test_variables_that_kubernetes_sets_for_a_service_are_not_ours() -> None:
    links = {
        "ERA_GATEWAY_PORT": "tcp://10.0.0.1:8080",
        "ERA_GATEWAY_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "ERA_GATEWAY_PORT_8080_TCP_ADDR": "10.0.0.1",
        "ERA_GATEWAY_PORT_8080_TCP_PORT": "8080",
        "ERA_GATEWAY_PORT_8080_TCP_PROTO": "tcp",
        "ERA_GATEWAY_SERVICE_HOST": "10.0.0.1",
        "ERA_GATEWAY_SERVICE_PORT": "8080",
        "ERA_GATEWAY_SERVICE_PORT_HTTP": "8080",
    }
    assert from_environment(ENVIRON | links) == from_environment(ENVIRON)


def test_a_store_that_is_wrong_is_a_problem_that_names_the_variable_and_shows_no_password() -> None:
    for store in ("redis//:secret@store.test", "redis://:secret@store.test:port", "redis://:secret@store.test/first"):
        (problem,) = problems_of(ENVIRON | {"ERA_GATEWAY_STORE": store, "ERA_GATEWAY_KEYS": KEY})
        assert "ERA_GATEWAY_STORE" in problem
        assert "secret" not in problem


def test_missing_url_says_how_to_give_one() -> None:
    assert problems_of({}) == [
        "environment: ERA_GATEWAY_UPSTREAM_URL: not set; "
        "set ERA_GATEWAY_UPSTREAM_URL=https://docs.example.com/mcp, or give a file with -c"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ERA_GATEWAY_KEY", "ERA_GATEWAY_KEYS"),
        ("ERA_GATEWAY_UPSTREM_HEADERS", "ERA_GATEWAY_UPSTREAM_HEADERS"),
        ("ERA_GATEWAY_ALLOWED_HOST", "ERA_GATEWAY_ALLOWED_HOSTS"),
    ],
)
def test_misspelt_variable_is_a_problem(name: str, meant: str) -> None:
    assert problems_of(ENVIRON | {name: "x"}) == [f"environment: {name}: unknown variable; did you mean {meant}?"]


def test_variable_that_is_nothing_like_ours_is_left_alone() -> None:
    assert from_environment(ENVIRON | {"ERA_GATEWAY_VERSION": "1", "ERA_GATEWAY_IMAGE": "x"}) == from_environment(
        ENVIRON
    )


def test_a_shared_store_without_keys_is_a_problem_of_the_keys() -> None:
    problems = problems_of(ENVIRON | {"ERA_GATEWAY_STORE": "redis://:topsecret@store.test:6379/0"})
    assert len(problems) == 1
    assert problems[0].startswith("environment: ERA_GATEWAY_KEYS")
    assert "topsecret" not in problems[0]


def test_every_problem_is_listed_with_its_variable() -> None:
    environ = {
        "ERA_GATEWAY_UPSTREAM_URL": "docs.example.com",
        "ERA_GATEWAY_UPSTREAM_HEADERS": "Host: topsecret",
        "ERA_GATEWAY_UPSTREAM_ERA": "old",
        "ERA_GATEWAY_PORT": "http",
        "ERA_GATEWAY_ALLOWED_ORIGINS": "https://a.test,*",
        "ERA_GATEWAY_KEYS": "topsecret",
        "ERA_GATEWAY_LOG_LEVEL": "loud",
    }
    assert sorted(problems_of(environ)) == [
        'environment: ERA_GATEWAY_ALLOWED_ORIGINS [1]: not an origin; found "*"; '
        'allowed: scheme and host, such as https://app.example.com, or "null" in quotes; name each origin',
        "environment: ERA_GATEWAY_KEYS: not a state key; found *** (key 1 of 1); "
        "allowed: 32 bytes in URL-safe Base64; run era-gateway keygen",
        'environment: ERA_GATEWAY_LOG_LEVEL: not one of its values; found "loud"; '
        "allowed: debug, info, warning, error; set ERA_GATEWAY_LOG_LEVEL=info",
        'environment: ERA_GATEWAY_PORT: not a whole number; found "http"; allowed: digits only; '
        "set ERA_GATEWAY_PORT=8080",
        'environment: ERA_GATEWAY_UPSTREAM_ERA: not one of its values; found "old"; '
        "allowed: auto, modern, legacy; set ERA_GATEWAY_UPSTREAM_ERA=auto",
        "environment: ERA_GATEWAY_UPSTREAM_HEADERS Host: a header that the gateway sets itself; "
        "allowed: any other header; leave it out",
        'environment: ERA_GATEWAY_UPSTREAM_URL: not a URL; found "docs.example.com"; '
        "allowed: http:// or https://, a host and a path, such as https://docs.example.com/mcp",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("topsecret", "line 1 has no colon"),
        ("A: b\ntopsecret", "line 2 has no colon"),
        ("A: b\nA: topsecret", "A is written twice"),
        ('{"A": topsecret}', "not a JSON object"),
        ('{"A": "topsecret", "A": "b"}', "not a JSON object"),
        ('{"A": "topsecret"} x', "not a JSON object"),
    ],
)
def test_headers_that_cannot_be_read_are_a_problem_without_their_values(text: str, fault: str) -> None:
    assert problems_of(ENVIRON | {"ERA_GATEWAY_UPSTREAM_HEADERS": text}) == [
        f"environment: ERA_GATEWAY_UPSTREAM_HEADERS: {fault}; "
        "allowed: a JSON object of texts, or one Name: value per line"
    ]
