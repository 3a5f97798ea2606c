# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""What only real nodes show: the image in containers, their limits, modelcars, and pods that end as the kubelet ends them."""
import json
import os
import pathlib
import subprocess
import time

import pytest

pytest.importorskip("yaml")

from cluster import IMAGE, KUBERNETES, NAMESPACE, Cluster, ClusterServer
from control_fixtures import models, sklearn_rows
from control_server import until
from test_cluster import Load, pods

ARCHIVE = os.environ.get("NEREID_IMAGE")
pytestmark = pytest.mark.skipif(not ARCHIVE, reason="not run on real nodes (testing/kubernetes/node.sh test)")

NODES = ("real-1", "real-2")
LIMIT = 512 << 20


@pytest.fixture(scope="module")
def plane(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    # The servers run as another user, who reads the models on the volume.
    for place in (models, *models.parents):
        if str(place).startswith("/tmp/"):
            place.chmod(place.stat().st_mode | 0o055)
    script = str(KUBERNETES / "node.sh")
    subprocess.run([script, "images", folder], check=True, timeout=60)
    images = [f"example.com/{name}:test={folder / name}.tar" for name in ("pause", "model")] + [f"docker.io/library/{IMAGE}={ARCHIVE}"]
    kubernetes = Cluster()
    started = []
    try:
        for number, name in enumerate(NODES, 1):
            started.append(folder / name)
            ran = subprocess.run(
                [script, "start", folder / name, name, str(number), str(os.getpid()), kubernetes.kubeconfig, *images],
                capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
            assert ran.returncode == 0, ran.stderr
        # The node of processes has the addresses of Services; it runs nothing.
        kubernetes.kubectl("cordon", "node-1")
        kubernetes.install("--replicas", "1", "--gateway-replicas", "2", "--gateway-max-replicas", "2", "--deployment-mode", "Knative")
        server = ClusterServer(kubernetes, models)
        yield server
        server.close()
    finally:
        # The first one knows what the settings of the machine were before.
        for place in reversed(started):
            subprocess.run([script, "stop", place], timeout=120, stdin=subprocess.DEVNULL)
        kubernetes.close()


def applied(plane, name, uri="file://${models}/sklearn", annotations=None, **spec):
    resources = {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"cpu": "2", "memory": str(LIMIT)}}
    plane.apply(json.dumps({
        "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "demo", "annotations": annotations or {}},
        "spec": {"predictor": {**spec, "model": {
            "modelFormat": {"name": "sklearn"}, "storageUri": uri, "resources": resources}}}}))
    plane.steady(name, timeout=180)


def of(plane, name):
    return pods(plane, "demo", f"serving.kserve.io/inferenceservice={name}")


def ready(pod):
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def groups(pod):
    """The control groups of the processes of a pod's server, of the memory controller."""
    container = next(c for c in pod["status"]["containerStatuses"] if c["name"] == "kserve-container")["containerID"].split("//")[1]
    found = pathlib.Path("/sys/fs/cgroup").glob(f"**/{container}")
    return [g for g in found if (g / "memory.limit_in_bytes").exists() or (g / "memory.max").exists()]


def test_a_service_answers_from_a_container_within_its_limits(plane):
    begun = time.monotonic()
    applied(plane, "iris")
    took = time.monotonic() - begun
    rows, answers = sklearn_rows()
    assert plane.predict("iris", rows) == answers["predict"][:2]
    pod, = of(plane, "iris")
    assert pod["spec"]["nodeName"] in NODES
    group, = groups(pod)
    limit = next(f for f in (group / "memory.limit_in_bytes", group / "memory.max") if f.exists())
    assert int(limit.read_text()) == LIMIT
    commands = [pathlib.Path(f"/proc/{p}/cmdline").read_text().split("\0") for p in (group / "cgroup.procs").read_text().split()]
    assert any("serve" in c for c in commands), commands
    used = next(f for f in (group / "memory.max_usage_in_bytes", group / "memory.peak", group / "memory.current") if f.exists())
    print(f"ready after {took:.1f} s, at most {int(used.read_text()) >> 20} MiB of {LIMIT >> 20}")
    log = plane.kubernetes.kubectl("logs", "-n", "demo", pod["metadata"]["name"], "-c", "kserve-container")
    assert log, "the kubelet has the log"
    plane.delete("iris")
    until(lambda: not of(plane, "iris"), "the pod has ended", 120)
    until(lambda: not group.exists(), "its control group is gone")


def test_no_request_is_lost_when_pods_are_deleted(plane):
    applied(plane, "deleted", minReplicas=2, maxReplicas=2)
    until(lambda: sum(map(ready, of(plane, "deleted"))) == 2, "both pods are ready", 120)
    with Load(plane, "deleted", rows=sklearn_rows()[0]) as load:
        for pod in of(plane, "deleted"):
            plane.kubernetes.kubectl("delete", "pod", "-n", "demo", pod["metadata"]["name"])
            until(lambda: sum(map(ready, of(plane, "deleted"))) == 2 and len(of(plane, "deleted")) == 2, "another pod is ready", 120)
            assert not load.failures
    assert not load.failures and load.answers > 20
    print(f"2 pods deleted, {load.answers} answers, none lost")
    plane.delete("deleted")


def test_a_service_goes_to_zero_and_comes_back(plane):
    applied(plane, "asleep", minReplicas=0, annotations={"autoscaling.knative.dev/window": "6s"})
    rows, answers = sklearn_rows()
    until(lambda: not of(plane, "asleep"), "the service is at zero", 180)
    begun = time.monotonic()
    assert plane.predict("asleep", rows, timeout=120) == answers["predict"][:2], "the first request is held"
    print(f"from zero to an answer: {time.monotonic() - begun:.1f} s")
    plane.delete("asleep")


def test_a_model_comes_from_an_image(plane):
    applied(plane, "car", uri="oci+modelcar://example.com/model:test")
    rows, answers = sklearn_rows()
    assert plane.predict("car", rows) == answers["predict"][:2]
    pod, = of(plane, "car")
    assert {c["name"] for c in pod["spec"]["containers"]} >= {"kserve-container", "modelcar"}
    plane.delete("car")


def test_no_request_is_lost_while_a_node_is_drained(plane):
    applied(plane, "drained", minReplicas=2, maxReplicas=2)
    until(lambda: sum(map(ready, of(plane, "drained"))) == 2, "both pods are ready", 120)
    node = of(plane, "drained")[0]["spec"]["nodeName"]
    other = next(n for n in NODES if n != node)
    with Load(plane, "drained", rows=sklearn_rows()[0]) as load:
        plane.kubernetes.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=170s")
        until(lambda: sum(map(ready, of(plane, "drained"))) == 2, "the pods are ready on the other node", 120)
        time.sleep(1)
    assert {p["spec"]["nodeName"] for p in of(plane, "drained") if ready(p)} == {other}
    left = json.loads(plane.kubernetes.kubectl("get", "pods", "-A", "--field-selector", f"spec.nodeName={node}", "-o", "json"))["items"]
    assert not [p["metadata"]["name"] for p in left if p["metadata"]["namespace"] in ("demo", NAMESPACE)]
    assert not load.failures and load.answers > 20
    print(f"a node drained, {load.answers} answers, none lost")
    plane.kubernetes.kubectl("uncordon", node)
    plane.delete("drained")
