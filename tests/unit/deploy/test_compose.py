"""The compose files: that their services fit together, the configuration, and the load balancer in front."""

import re
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet

from tests.support.manifests import DEPLOY, ROOT, references, seconds, settings_of

REPLICAS = DEPLOY / "compose.replicas.yml"
ENVIRONMENT = {"STORE_PASSWORD": "secret", "ERA_GATEWAY_KEYS": Fernet.generate_key().decode()}

Services = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def services() -> Services:
    return dict(yaml.safe_load(REPLICAS.read_text())["services"])


@pytest.fixture(scope="module")
def replicas(services: Services) -> Services:
    return {name: service for name, service in services.items() if name.startswith("gateway-")}


def nginx_conf() -> str:
    return re.sub(r"(?m)#.*$", "", (DEPLOY / "nginx.conf").read_text())


def test_three_replicas_are_alike(replicas: Services) -> None:
    first, *others = replicas.values()
    assert len(others) == 2
    assert all(other == first for other in others)


def test_check_is_content_with_the_configuration_of_the_replicas(services: Services) -> None:
    settings = settings_of(DEPLOY / "gateway.replicas.yaml", ENVIRONMENT)
    assert settings.state.shared_store == "redis://gateway:secret@valkey:6379/0"
    assert {"valkey", "legacy"} <= set(services)
    assert settings.upstreams["demo"].url == "http://legacy:8081/mcp"


def test_what_has_to_be_given_is_asked_for(replicas: Services, services: Services) -> None:
    text = re.sub(r"(?m)#.*$", "", REPLICAS.read_text())
    assert references(text) == set(ENVIRONMENT)
    assert all(given in text for given in re.findall(r"\$\{\w+:\?[^}]+\}", text))
    assert "environment" not in services["balancer"]
    for replica in replicas.values():
        assert replica["environment"].keys() == ENVIRONMENT.keys()


def test_the_balancer_has_every_replica_in_its_turn(replicas: Services) -> None:
    settings = settings_of(DEPLOY / "gateway.replicas.yaml", ENVIRONMENT)
    servers = re.findall(r"(?m)^\s*server (\S+) resolve ", nginx_conf())
    assert servers == [f"{name}:{settings.server.port}" for name in replicas]
    assert not re.search(r"\b(ip_hash|hash|least_conn|sticky)\b", nginx_conf())


def test_the_balancer_sends_no_call_twice_and_holds_no_event_back() -> None:
    conf = nginx_conf()
    assert "proxy_next_upstream error timeout;" in conf
    assert "non_idempotent" not in conf
    assert "proxy_buffering off;" in conf


def test_the_balancer_waits_longer_than_the_gateway_is_silent() -> None:
    server = settings_of(DEPLOY / "gateway.replicas.yaml", ENVIRONMENT).server
    waits = re.search(r"proxy_read_timeout (\w+);", nginx_conf())
    assert waits is not None
    assert seconds(waits[1]) > 2 * max(server.keepalive_s, server.stream_after_s)


def test_only_the_balancer_can_be_reached_and_only_from_this_machine(services: Services) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"balancer": ["127.0.0.1:8080:8080"]}
    assert "listen 8080;" in nginx_conf()


def test_containers_may_take_longer_to_end_than_the_gateway(replicas: Services) -> None:
    server = settings_of(DEPLOY / "gateway.replicas.yaml", ENVIRONMENT).server
    for replica in replicas.values():
        assert seconds(replica["stop_grace_period"]) >= max(server.lame_duck_s, server.drain_s) + 10


def test_containers_have_no_rights_that_they_do_not_need(services: Services) -> None:
    for service in services.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_a_replica_may_open_what_its_rounds_need(replicas: Services) -> None:
    rounds = settings_of(DEPLOY / "gateway.replicas.yaml", ENVIRONMENT).rounds
    for replica in replicas.values():
        assert replica["ulimits"]["nofile"] >= 8 * rounds.max


def test_what_is_mounted_exists(services: Services) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            assert (DEPLOY / volume.split(":")[0]).is_file()
            assert volume.endswith(":ro")


def test_what_is_waited_for_has_a_health_check(services: Services) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "HEALTHCHECK" in dockerfile
    for service in services.values():
        for name, wanted in service.get("depends_on", {}).items():
            assert wanted == {"condition": "service_healthy"}
            assert "healthcheck" in services[name] or "build" in services[name]


def test_the_plain_compose_file_passes_check_too() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    settings = settings_of(DEPLOY / "gateway.yaml", {})
    assert settings.state.shared_store is None
    assert seconds(services["gateway"]["stop_grace_period"]) >= settings.server.drain_s + 10
