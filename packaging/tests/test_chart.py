# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: what helm renders is what the cluster's schemas allow, with few rights.

`make test-chart` builds helm, which takes minutes: these tests are not among those of `make test`.
"""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from penstock.execution import build

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "packaging" / "chart"
HELM = os.environ.get("HELM", str(ROOT / "target" / "go" / "bin" / "helm"))
KUBERNETES = ["1.30", "1.37"]
BEFORE_APPARMOR = "1.29"
"""The last version whose containers have no appArmorProfile."""


def helm(*arguments):
    done = subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def rendered(*sets, kubernetes=KUBERNETES[0]):
    """The objects of a release, by kind and name."""
    options = [word for one in sets for word in ("--set", one)]
    code, text, errors = helm(
        "template", "node", str(CHART), "--kube-version", f"{kubernetes}.0", *options
    )
    assert code == 0, errors
    objects = [document for document in yaml.safe_load_all(text) if document]
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


def template(*sets, **options):
    return rendered(*sets, **options)["DaemonSet", "node"]["spec"]["template"]


def pod(*sets, **options):
    return template(*sets, **options)["spec"]


def configuration(*sets):
    return rendered(*sets)["ConfigMap", "node"]["data"]["penstockd.toml"]


def test_helm_has_no_complaint():
    code, text, errors = helm("lint", "--strict", str(CHART))
    assert code == 0, text + errors


@pytest.mark.parametrize("version", [BEFORE_APPARMOR, *KUBERNETES])
def test_the_objects_are_those_of_the_schemas(version):
    objects = rendered(kubernetes=version)
    for one in objects.values():
        kubernetes_validate.validate(one, version, strict=True)
    assert sorted(objects) == [
        ("ConfigMap", "node"),
        ("ConfigMap", "node-alerts"),
        ("ConfigMap", "node-dashboard"),
        ("DaemonSet", "node"),
        ("ServiceAccount", "node"),
    ], "no role: it asks nothing of the cluster"


def test_the_pod_has_three_powers_and_two_folders_of_the_node():
    made = pod()
    (container,) = made["containers"]
    assert made["automountServiceAccountToken"] is False
    assert not {"hostPID", "hostIPC"} & set(made)
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["BPF", "NET_ADMIN", "PERFMON"]}
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "privileged" not in security
    folders = {volume["hostPath"]["path"] for volume in made["volumes"] if "hostPath" in volume}
    assert folders == {"/sys/fs/bpf", "/run/penstock"}
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in made["volumes"]}


def test_apparmor_leaves_the_bpffs_writable():
    key = "container.apparmor.security.beta.kubernetes.io/penstockd"
    for version in KUBERNETES:
        (container,) = pod(kubernetes=version)["containers"]
        assert container["securityContext"]["appArmorProfile"] == {"type": "Unconfined"}
        assert key not in template(kubernetes=version)["metadata"]["annotations"]
    (container,) = pod(kubernetes=BEFORE_APPARMOR)["containers"]
    assert "appArmorProfile" not in container["securityContext"]
    annotations = template(kubernetes=BEFORE_APPARMOR)["metadata"]["annotations"]
    assert annotations[key] == "unconfined"
    without = template("metrics.annotations=false", kubernetes=BEFORE_APPARMOR)
    assert set(without["metadata"]["annotations"]) == {key, "checksum/configuration"}


def test_a_type_of_selinux_is_given_when_wanted():
    assert "seLinuxOptions" not in pod()["containers"][0]["securityContext"]
    (container,) = pod("seLinuxOptions.type=spc_t")["containers"]
    assert container["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}


def test_pods_are_on_nodes_whose_programs_the_image_has():
    linux = {"kubernetes.io/os": "linux"}
    assert pod()["nodeSelector"] == linux | {"kubernetes.io/arch": "amd64"}
    assert pod("nodeSelector.kubernetes\\.io/arch=null")["nodeSelector"] == linux


def test_the_service_of_systemd_has_the_same_powers():
    unit = (ROOT / "packaging" / "penstockd.service").read_text("utf-8")
    line = next(one for one in unit.splitlines() if one.startswith("CapabilityBoundingSet="))
    powers = {
        f"CAP_{name}" for name in pod()["containers"][0]["securityContext"]["capabilities"]["add"]
    }
    assert set(line.partition("=")[2].split()) == powers


GRANT = """
[port.eth0]
scheme = "grant"
window = { side = "receiver" }
[port."lxc*"]
scheme = "observe"
buffer = "1 MB"
"""


@pytest.mark.parametrize("ports", [None, GRANT])
def test_the_agent_accepts_the_configuration(tmp_path, ports):
    sets = [] if ports is None else ["ports=" + ports.replace("{", "\\{").replace("}", "\\}")]
    text = configuration(*sets, 'agent=stale = "3 s"', "metrics.port=9999")
    document = tomllib.loads(text)
    assert document["metrics"] == {"listen": "0.0.0.0:9999", "allow_remote": True}
    assert document["agent"]["stale"] == "3 s"
    assert set(document["port"]) == ({"e*"} if ports is None else {"eth0", "lxc*"})
    path = tmp_path / "penstockd.toml"
    path.write_text(text, "utf-8")
    command = [build.find(build.AGENT), "run", "--check-config", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]"])
def test_metrics_are_where_the_probes_and_prometheus_look(address):
    sets = (f"metrics.address={address}", "metrics.port=9999")
    assert tomllib.loads(configuration(*sets))["metrics"]["listen"] == f"{address}:9999"
    made = template(*sets)
    (container,) = made["spec"]["containers"]
    # In the node's network both are the same, and a node where it is taken gets no second pod.
    (port,) = container["ports"]
    assert port == {"name": "metrics", "containerPort": 9999, "hostPort": 9999}
    for probe in ("readinessProbe", "livenessProbe"):
        # Without a host: the node's address, which differs from node to node.
        assert container[probe]["httpGet"] == {"path": "/metrics", "port": "metrics"}
    assert made["metadata"]["annotations"]["prometheus.io/port"] == "9999"


def test_a_changed_configuration_makes_new_pods():
    def checksum(*sets):
        return template(*sets)["metadata"]["annotations"]["checksum/configuration"]

    assert checksum() == checksum("maxUnavailable=2") != checksum('agent=stale = "3 s"')


def test_nothing_stays_unless_it_is_wanted():
    assert pod()["containers"][0]["args"][-1] == "--detach"
    assert "--detach" not in pod("detachAtEnd=false")["containers"][0]["args"]


def test_dashboard_and_alerts_are_those_of_the_packages():
    objects = rendered()
    monitoring = ROOT / "packaging" / "monitoring"
    dashboard = objects["ConfigMap", "node-dashboard"]
    assert json.loads(dashboard["data"]["penstock.json"]) == json.loads(
        (monitoring / "dashboard.json").read_text("utf-8")
    )
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    alerts = objects["ConfigMap", "node-alerts"]["data"]["penstock.yml"]
    assert alerts.strip() == (monitoring / "alerts.yml").read_text("utf-8").strip()
    without = rendered("dashboard.enabled=false", "alerts.enabled=false")
    assert [name for kind, name in without if kind == "ConfigMap"] == ["node"]


def test_the_image_is_that_of_the_charts_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert pod()["containers"][0]["image"] == f"penstockd:{chart['appVersion']}"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("metrics.port=0", "/metrics/port"),
        ("port.eth1=observe", "port"),
        ("metrics.address=node7", "/metrics/address"),
        ("metrics.address=127.0.0.1", "/metrics/address"),
        ("metrics.address=10.0.0.7", "/metrics/address"),
        ("metrics.address=...", "/metrics/address"),
        ("seLinuxOptions.kind=spc_t", "/seLinuxOptions"),
        ("maxUnavailable=0", "/maxUnavailable"),
        ("maxUnavailable=some", "/maxUnavailable"),
        ("bpffs=relative", "/bpffs"),
        ("locks=/it's", "/locks"),
    ],
)
def test_wrong_values_are_refused(value, reason):
    code, _, errors = helm("template", "node", str(CHART), "--set", value)
    assert code != 0
    assert reason in errors
