# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The Helm chart in the mode `server` with pods that run: a claim, a fetch into a volume of each pod, upgrades under load, TLS, keys."""
import functools
import http.client
import http.server
import json
import os
import shutil
import ssl
import subprocess
import threading
import time

import pytest

pytest.importorskip("yaml")

from cluster import KUBERNETES, NODE, cluster, on_cluster
from control_server import until
from server import EXAMPLES, ROOT, program

pytestmark = [
    pytest.mark.skipif(not on_cluster(), reason="not run against a cluster (testing/kubernetes/end-to-end.sh)"),
    pytest.mark.skipif(
        subprocess.run([KUBERNETES / "helm.sh", "binary"], capture_output=True).returncode != 0,
        reason="helm is not built (testing/kubernetes/helm.sh build)"),
]

CHART = ROOT / "deploy/helm/nereid"
REQUEST = json.dumps({"inputs": [{"name": "input", "shape": [1, 4], "datatype": "FP32", "data": [5.1, 3.5, 1.4, 0.2]}]})
# As on a small machine, where two servers start at a time; the pods end soon.
SMALL = ("--set=mode=server,image.repository=nereid,image.tag=test,server.resources.requests.cpu=10m,server.javaOptions=-Xmx128m,"
         "server.gracePeriodSeconds=3,server.drainTimeoutSeconds=10,server.probes.startup.timeoutSeconds=10")


class Release:
    """A namespace, whose pods comply with the standard `restricted`, with one release of the chart in it."""

    def __init__(self, kubernetes, namespace, folder):
        self.kubernetes = kubernetes
        self.namespace = namespace
        self.folder = folder
        self.volumes = []
        self.kubectl("create", "namespace", namespace)
        self.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")

    def kubectl(self, *arguments, **options):
        return self.kubernetes.kubectl(*arguments, "-n", self.namespace, **options)

    def helm(self, *arguments):
        homes = {name: str(self.folder / "helm") for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        ran = subprocess.run(
            [KUBERNETES / "helm.sh", *arguments, f"--kubeconfig={self.kubernetes.kubeconfig}", f"--namespace={self.namespace}"],
            env={**os.environ, **homes}, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, f"helm {arguments}: {ran.stderr}{ran.stdout}\n{self.report()}"
        return ran.stdout

    def volume(self, claim, path, mode):
        """A claim of a folder of this machine."""
        volume = f"{self.namespace}-{claim}"
        self.volumes.append(volume)
        objects = [
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
             "spec": {"capacity": {"storage": "1Gi"}, "accessModes": [mode], "hostPath": {"path": str(path)},
                      "claimRef": {"namespace": self.namespace, "name": claim}, "storageClassName": ""}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": self.namespace, "name": claim},
             "spec": {"accessModes": [mode], "storageClassName": "", "volumeName": volume,
                      "resources": {"requests": {"storage": "1Gi"}}}},
        ]
        self.kubernetes.kubectl("apply", "--server-side", "-f", "-", input="\n---\n".join(map(json.dumps, objects)))

    def wait(self, workload):
        try:
            self.kubectl("rollout", "status", workload, "--timeout=170s")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.report()}") from None

    def pods(self):
        found = json.loads(self.kubectl("get", "pods", "-l", "app.kubernetes.io/name=nereid-server", "-o", "json"))["items"]
        return {pod["metadata"]["uid"] for pod in found if "deletionTimestamp" not in pod["metadata"]}

    def address(self, service):
        return json.loads(self.kubectl("get", "service", service, "-o", "json"))["spec"]["clusterIP"]

    def report(self):
        found = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        return "".join(
            json.dumps(pod["status"])[-2000:] + "\n" + self.kubernetes.logs(self.namespace, pod["metadata"]["name"])[-4000:]
            for pod in found)

    def close(self):
        self.helm("uninstall", "iris")
        until(lambda: not self.kubectl("get", "pods", "-o", "name"), f"no pod is left in {self.namespace}", 120)
        self.kubernetes.kubectl("delete", "namespace", self.namespace, "--timeout=90s")
        for volume in self.volumes:
            self.kubernetes.kubectl("delete", "pv", volume)


@pytest.fixture
def release(request, tmp_path):
    # Pods of another user read what is below.
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    made = Release(cluster(), request.node.name.replace("_", "-")[5:40].strip("-"), tmp_path)
    yield made
    made.close()


def ask(connection, headers=None):
    """The status and the body of one inference."""
    connection.request("POST", "/v2/models/iris/infer", REQUEST, {"Content-Type": "application/json", **(headers or {})})
    reply = connection.getresponse()
    return reply.status, reply.read()


class Load:
    """Inferences all the time over kept-alive connections, and what failed of them."""

    def __init__(self, host, port, threads=4):
        self.host, self.port = host, port
        self.answers, self.failures = 0, []
        self.stopping, self.lock = threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(threads)]

    def run(self):
        connection = None
        while not self.stopping.is_set():
            try:
                if connection is None:
                    connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
                status, body = ask(connection)
                if connection.sock is None:
                    # The server is ending and has said so with its answer.
                    connection = None
                with self.lock:
                    self.answers += 1
                    if status != 200:
                        self.failures.append((status, body))
            except (OSError, http.client.HTTPException) as e:
                with self.lock:
                    self.failures.append(repr(e))
                connection = None
            time.sleep(0.01)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def test_models_of_a_claim_answer_and_no_request_is_lost_by_an_upgrade(release):
    models = release.folder / "models"
    shutil.copytree(EXAMPLES / "iris", models / "iris")
    release.volume("models", models, "ReadOnlyMany")
    values = ["iris", str(CHART), SMALL, "--set=server.models.claim=models"]
    assert "kubectl rollout status deployment/nereid-iris" in release.helm("install", *values)
    release.wait("deployment/nereid-iris")
    host = release.address("nereid-iris")
    status, body = ask(http.client.HTTPConnection(host, 80, timeout=30))
    assert status == 200, body
    assert json.loads(body)["outputs"][0]["data"] == [0]
    release.helm("test", "iris", "--timeout=90s")
    metrics = http.client.HTTPConnection(host, 8002, timeout=30)
    metrics.request("GET", "/metrics")
    assert b'nv_inference_request_success{model="iris"' in metrics.getresponse().read()

    before = release.pods()
    assert len(before) == 2
    with Load(host, 80) as load:
        until(lambda: load.answers > 20, "requests are answered", 60)
        release.helm("upgrade", *values, "--set=server.config.log-format=json")
        release.wait("deployment/nereid-iris")
        until(lambda: len(release.pods()) == 2 and not release.pods() & before, "the pods are replaced", 60)
        seen = load.answers
        until(lambda: load.answers > seen + 50, "the new pods answer", 60)
    assert not load.failures, (load.answers, load.failures[:5])


def certificate(folder, name, *options):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
         "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt", *options], check=True, capture_output=True)


def test_a_fetched_model_is_served_with_tls_and_keys(release):
    folder = release.folder
    web = folder / "web"
    web.mkdir()
    shutil.copy(EXAMPLES / "iris/1/model.onnx", web)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=web)
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept = folder / "kept"
    kept.mkdir()
    kept.chmod(0o777)
    try:
        release.volume("models-nereid-iris-0", kept, "ReadWriteOnce")
        key = subprocess.run(
            [program(), "keys", "create", "batch", "--role", "client", "--file", folder / "api-keys"],
            capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
        certificate(folder, "server")
        certificate(folder, "client")
        release.kubectl("create", "secret", "generic", "keys", f"--from-file=api-keys={folder}/api-keys")
        release.kubectl("create", "secret", "tls", "tls", f"--cert={folder}/server.crt", f"--key={folder}/server.key")
        release.kubectl("create", "secret", "generic", "clients", f"--from-file=ca.crt={folder}/client.crt")
        values = ["iris", str(CHART), SMALL, "--set=server.replicas=1,server.access.apiKeysSecretName=keys,server.tls.secretName=tls",
                  f"--set=server.models.fetch.sources[0].uri=http://{NODE}:{server.server_port}/model.onnx",
                  "--set=server.models.fetch.sources[0].path=iris,server.models.persistence.enabled=true"]
        release.helm("install", *values)
        release.wait("statefulset/nereid-iris")
        assert (kept / "iris/model.onnx").exists(), "the model is on the volume of the pod"
        host = release.address("nereid-iris")
        tls = ssl.create_default_context(cafile=folder / "server.crt")
        tls.check_hostname = False
        connection = http.client.HTTPSConnection(host, 443, timeout=30, context=tls)
        assert ask(connection)[0] == 401
        status, body = ask(connection, {"Authorization": f"Bearer {key}"})
        assert status == 200, body
        release.helm("test", "iris", "--timeout=90s")

        # With certificates that clients must present, which the probes cannot.
        before = release.pods()
        release.helm("upgrade", *values, "--set=server.tls.clientCaSecretName=clients")
        release.wait("statefulset/nereid-iris")
        until(lambda: release.pods() and not release.pods() & before, "the pod is replaced", 60)
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(http.client.HTTPSConnection(host, 443, timeout=30, context=tls), {"Authorization": f"Bearer {key}"})
        tls.load_cert_chain(folder / "client.crt", folder / "client.key")
        status, body = ask(http.client.HTTPSConnection(host, 443, timeout=30, context=tls), {"Authorization": f"Bearer {key}"})
        assert status == 200, body
    finally:
        server.shutdown()
