"""Options of a shared store's URL: those of TLS, and none that would change how the gateway talks to it."""

from pathlib import Path

import pytest

from gateway.config.environment import from_environment
from gateway.config.problems import ConfigError

ENVIRON = {"ERA_GATEWAY_UPSTREAM_URL": "https://docs.example.com/mcp", "ERA_GATEWAY_KEYS": "A" * 43 + "="}
HOST = "user:topsecret@store.test:6379/0"


def test_options_of_tls_are_taken(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    url = f"rediss://{HOST}?ssl_ca_certs={ca}&ssl_check_hostname=false&ssl_cert_reqs=required&ssl_password=x"
    settings = from_environment(ENVIRON | {"ERA_GATEWAY_STORE": url})
    assert settings.state.store.get_secret_value() == url


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        (f"rediss://{HOST}?bogus=1", "an unknown option of the store; allowed: ssl_ca_certs"),
        (f"rediss://{HOST}?socket_timeout=600", "an unknown option of the store"),
        (f"rediss://{HOST}?retry_on_timeout=true", "an unknown option of the store"),
        (f"redis://{HOST}?ssl_ca_certs=/ca.pem", "options of TLS without TLS; allowed: rediss://"),
        (f"valkey://{HOST}?max_connections=1", "options of TLS without TLS"),
        (f"valkeys://{HOST}?ssl_ca_certs=/is/not/there.pem", "does not exist"),
        (f"rediss://{HOST}?ssl_cert_reqs=maybe", "allowed: ssl_cert_reqs=required|optional|none"),
        (f"rediss://{HOST}?ssl_check_hostname=perhaps", "allowed: ssl_check_hostname=true|false"),
    ],
)
def test_other_options_are_a_problem_that_shows_no_secret(url: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_environment(ENVIRON | {"ERA_GATEWAY_STORE": url})
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith("environment: ERA_GATEWAY_STORE: ")
    assert fault in problem
    assert "topsecret" not in problem
