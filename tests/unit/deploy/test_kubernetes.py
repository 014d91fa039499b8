"""The Kubernetes manifests: what the API takes, and that they fit together, the image and the configuration."""

import re
import shutil
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from cryptography.fernet import Fernet
from starlette.routing import Route

from gateway.config.model import Settings
from gateway.config.problems import ConfigError
from gateway.server.site import admin_site, health_routes
from tests.support.manifests import (
    KUBERNETES,
    PLACEHOLDER,
    ROOT,
    Manifest,
    Manifests,
    every_value,
    kustomized,
    mebibytes,
    references,
    settings_of,
)

VERSIONS = ("1.29", "1.33", "1.37")
BESIDE_ROUNDS_MIB = 80 + 3 * 64
"""A gateway at which nothing waits, and three times the largest reply that it accepts."""
ROUND_KIB = 45
"""docs/rounds.md: what a suspended call holds."""


@pytest.fixture(scope="module")
def manifests() -> Manifests:
    return kustomized(KUBERNETES)


@pytest.fixture(scope="module")
def secret() -> Manifest:
    manifest: Manifest = yaml.safe_load((KUBERNETES / "secret.example.yaml").read_text())
    return manifest


@pytest.fixture(scope="module")
def settings(secret: Manifest) -> Settings:
    return settings_of(KUBERNETES / "gateway.yaml", filled_in(secret))


@pytest.fixture(scope="module")
def pod(manifests: Manifests) -> Manifest:
    template: Manifest = manifests.the("Deployment")["spec"]["template"]
    return template


@pytest.fixture(scope="module")
def container(pod: Manifest) -> Manifest:
    (only,) = pod["spec"]["containers"]
    return dict(only)


def filled_in(secret: Manifest) -> dict[str, str]:
    """The environment that the Secret gives once somebody has filled it in."""
    data: dict[str, str] = secret["stringData"]
    return {
        **{name: PLACEHOLDER.sub("secret", value) for name, value in data.items()},
        "ERA_GATEWAY_KEYS": Fernet.generate_key().decode(),
    }


def ports_of(container: Manifest) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container["ports"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", [KUBERNETES, KUBERNETES / "valkey"], ids=["gateway", "valkey"])
def test_the_api_takes_every_manifest(folder: Path, version: str, secret: Manifest) -> None:
    for manifest in [*kustomized(folder), secret]:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schemas_would_refuse_a_misspelt_key(manifests: Manifests) -> None:
    wrong = {**manifests.the("PodDisruptionBudget"), "specs": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_everything_that_the_set_should_hold_is_there(manifests: Manifests) -> None:
    assert {manifest["kind"] for manifest in manifests} == {
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "Namespace",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }


def test_check_is_content_with_the_configuration_and_the_secret(settings: Settings) -> None:
    assert settings.state.keys
    assert settings.state.shared_store is not None


def test_the_secret_holds_exactly_what_the_configuration_refers_to(secret: Manifest) -> None:
    assert set(secret["stringData"]) == references(re.sub("(?m)#.*", "", (KUBERNETES / "gateway.yaml").read_text()))


def test_nobody_starts_with_the_template_of_the_secret(secret: Manifest) -> None:
    with pytest.raises(ConfigError):
        settings_of(KUBERNETES / "gateway.yaml", secret["stringData"])


def test_the_template_of_the_secret_is_not_applied_with_the_rest(manifests: Manifests) -> None:
    assert "Secret" not in {manifest["kind"] for manifest in manifests}


def test_every_selector_finds_the_pods(manifests: Manifests, pod: Manifest) -> None:
    labels = pod["metadata"]["labels"].items()
    selectors = [
        manifests.the("Deployment")["spec"]["selector"]["matchLabels"],
        manifests.the("Service")["spec"]["selector"],
        manifests.the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        manifests.the("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *(spread["labelSelector"]["matchLabels"] for spread in pod["spec"]["topologySpreadConstraints"]),
    ]
    for selector in selectors:
        assert selector.items() <= labels


def test_the_autoscaler_scales_the_deployment_and_has_the_number_alone(manifests: Manifests) -> None:
    deployment, scaler = manifests.the("Deployment"), manifests.the("HorizontalPodAutoscaler")["spec"]
    target = scaler["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"], target["name"]) == ("apps/v1", "Deployment", "era-gateway")
    assert deployment["metadata"]["name"] == target["name"]
    assert "replicas" not in deployment["spec"]
    assert scaler["minReplicas"] >= 3


def test_the_ports_are_those_that_the_gateway_listens_on(container: Manifest, settings: Settings) -> None:
    assert settings.server.admin is not None
    assert ports_of(container) == {"http": settings.server.port, "admin": settings.server.admin.port}
    assert settings.server.host == settings.server.admin.host == "0.0.0.0"


def test_every_port_that_is_named_exists(manifests: Manifests, container: Manifest) -> None:
    named = [port["targetPort"] for port in manifests.the("Service")["spec"]["ports"]]
    named += [port["port"] for rule in manifests.the("NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
    assert set(named) <= set(ports_of(container))


def test_the_service_prefers_no_replica_and_leaves_the_operators_port_out(manifests: Manifests) -> None:
    service = manifests.the("Service")["spec"]
    assert service["sessionAffinity"] == "None"
    assert [port["targetPort"] for port in service["ports"]] == ["http"]


def test_probes_ask_for_paths_that_are_served(container: Manifest) -> None:
    served = {route.path for route in health_routes(dict)}
    for kind, path in (("startupProbe", "/healthz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
        asked = container[kind]["httpGet"]
        assert asked["path"] == path in served
        assert asked["port"] in ports_of(container)


def test_the_pod_may_take_longer_to_end_than_the_gateway(pod: Manifest, settings: Settings) -> None:
    server = settings.server
    assert pod["spec"]["terminationGracePeriodSeconds"] >= max(server.lame_duck_s, server.drain_s) + 10


def test_the_service_notices_a_draining_replica_while_it_still_serves(container: Manifest, settings: Settings) -> None:
    probe = container["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] < settings.server.lame_duck_s


def test_a_rolling_update_takes_no_replica_away_before_there_is_another(manifests: Manifests) -> None:
    assert manifests.the("Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_a_change_of_the_configuration_is_a_rolling_update(tmp_path: Path, pod: Manifest) -> None:
    folder = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, folder)
    file = folder / "gateway.yaml"
    file.write_text(file.read_text().replace("ttl: 10m", "ttl: 5m"))
    assert kustomized(folder).the("Deployment")["spec"]["template"] != pod


def test_the_configuration_is_mounted_where_the_gateway_looks(
    manifests: Manifests, pod: Manifest, container: Manifest
) -> None:
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    config = manifests.the("ConfigMap")
    assert mounted["/etc/era-gateway"]["configMap"]["name"] == config["metadata"]["name"]
    assert container["args"] == ["serve", "-c", "/etc/era-gateway/gateway.yaml"]
    assert list(config["data"]) == ["gateway.yaml"]


def test_the_user_is_that_of_the_image(pod: Manifest) -> None:
    user = re.search(r"(?m)^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text())
    assert user is not None
    context = pod["spec"]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (int(user[1]), int(user[2]))


@pytest.mark.parametrize("folder", [KUBERNETES, KUBERNETES / "valkey"], ids=["gateway", "valkey"])
def test_pods_have_no_rights_that_they_do_not_need(folder: Path) -> None:
    spec = kustomized(folder).the("Deployment")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not spec["automountServiceAccountToken"]
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_memory_is_enough_for_the_rounds_that_are_allowed(container: Manifest, settings: Settings) -> None:
    needed_mib = BESIDE_ROUNDS_MIB + settings.rounds.max * ROUND_KIB / 1024
    resources = container["resources"]
    assert mebibytes(resources["requests"]["memory"]) >= needed_mib
    assert "cpu" not in resources["limits"]


def test_the_operators_port_is_open_to_monitoring_alone(manifests: Manifests) -> None:
    rules = manifests.the("NetworkPolicy")["spec"]["ingress"]
    (admin,) = (rule for rule in rules if "admin" in every_value(rule, "port"))
    assert list(every_value(admin["from"], "matchLabels")) == [{"kubernetes.io/metadata.name": "monitoring"}]


def test_metrics_are_read_where_they_are_served(pod: Manifest, container: Manifest) -> None:
    told = pod["metadata"]["annotations"]
    assert int(told["prometheus.io/port"]) == ports_of(container)["admin"]
    served = {route.path for route in admin_site(dict, bytes).routes if isinstance(route, Route)}
    assert told["prometheus.io/path"] in served


def test_a_replica_reaches_names_the_store_and_upstreams_but_no_metadata_service(
    manifests: Manifests, secret: Manifest
) -> None:
    egress: list[Any] = manifests.the("NetworkPolicy")["spec"]["egress"]
    ports = {port["port"] for rule in egress for port in rule.get("ports", [])}
    assert ports == {53, 6379, 443}
    assert ":6379/" in secret["stringData"]["ERA_GATEWAY_STORE"]
    everywhere = next(block for block in every_value(egress, "ipBlock") if block["cidr"] == "0.0.0.0/0")
    assert "169.254.0.0/16" in everywhere["except"]


def test_the_valkey_to_try_out_is_the_one_that_the_gateway_looks_for(manifests: Manifests, secret: Manifest) -> None:
    valkey = kustomized(KUBERNETES / "valkey")
    service, pod = valkey.the("Service"), valkey.the("Deployment")["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert (
        f"@{service['metadata']['name']}:{service['spec']['ports'][0]['port']}/"
        in (secret["stringData"]["ERA_GATEWAY_STORE"])
    )
    assert service["spec"]["selector"].items() <= labels.items()
    reached = list(every_value(manifests.the("NetworkPolicy")["spec"]["egress"], "matchLabels"))
    assert service["spec"]["selector"] in reached
    assert manifests.the("Service")["metadata"]["namespace"] == service["metadata"]["namespace"]
