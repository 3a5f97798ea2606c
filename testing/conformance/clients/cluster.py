# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster with nodes of processes, in which the operator and the gateway are installed; see testing/kubernetes."""
import atexit
import base64
import glob
import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.parse

import yaml

from control_server import CONTROL, ControlApi, Refused, until
from server import ROOT, Address, program

KUBERNETES = ROOT / "testing/kubernetes"
IMAGE = "nereid:test"
NAMESPACE = "nereid"
# The address of the nodes, under which pods reach the servers of the tests.
NODE = "10.244.255.254"


def java():
    home = os.environ.get("JAVA_HOME")
    return os.path.realpath(home + "/bin/java" if home else shutil.which("java"))


class Cluster:
    """Control plane and nodes; one for all tests of a run. The tests run under testing/kubernetes/network.sh."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nereid-cluster-"))
        self.distribution = pathlib.Path(program()).resolve().parents[1]
        jdk = pathlib.Path(java()).parents[1]
        runtime = {"JAVA_HOME": str(jdk)}
        images = [
            # The image of the project, and images of the tests: any program of this machine, which is their command.
            {"name": IMAGE, "entrypoint": ["/opt/nereid/bin/nereid"], "environment": {**runtime, "PATH": PATH},
             "mounts": {str(self.distribution): "/opt/nereid"}, "user": 65532},
            {"name": "example/*", "entrypoint": ["/bin/false"], "environment": {}, "mounts": {str(ROOT): str(ROOT)}, "user": 0},
        ]
        file = self.folder / "images.json"
        file.write_text(json.dumps(images))
        jars = glob.glob(str(KUBERNETES / "target/nereid-testing-kubernetes-*.jar"))
        assert jars, "testing/kubernetes is not built (expected: ./mvnw -Pquick -DskipTests package)"
        jars += glob.glob(f"{self.distribution}/lib/*.jar") + glob.glob(f"{self.distribution}/lib/kubernetes/*.jar")
        self.log = open(self.folder / "cluster.log", "w")
        self.process = subprocess.Popen(
            [java(), "-Xmx512m", "-cp", ":".join(jars), "io.nereid.testing.kubernetes.node.ProcessCluster", self.folder, file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.kubeconfig = self.process.stdout.readline().strip()
        if not os.path.isfile(self.kubeconfig):
            raise RuntimeError(f"no cluster: {self.kubeconfig}\n" + (self.folder / "cluster.log").read_text())
        atexit.register(self.close)
        config = yaml.safe_load(pathlib.Path(self.kubeconfig).read_text())
        self.address = urllib.parse.urlsplit(config["clusters"][0]["cluster"]["server"])
        user = config["users"][0]["user"]
        self.tls = ssl.create_default_context(
            cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile("wb") as pair:
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]))
            pair.flush()
            self.tls.load_cert_chain(pair.name)

    def command(self, line):
        """`add NODE` or `lose NODE`."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer == "done", answer

    def kubectl(self, *arguments, input=None, check=True):
        ran = subprocess.run(
            [KUBERNETES / "cluster.sh", "kubectl", self.folder / "cluster", *map(str, arguments)], input=input,
            capture_output=True, text=True, timeout=180)
        assert not check or ran.returncode == 0, f"kubectl {arguments}: {ran.stderr}"
        return ran.stdout

    def restart_api_server(self):
        subprocess.run([KUBERNETES / "cluster.sh", "restart-api-server", self.folder / "cluster"], check=True, timeout=180,
                       stdin=subprocess.DEVNULL, capture_output=True)

    def logs(self, namespace, pod):
        """What the containers of a pod have printed, of all starts."""
        text = ""
        for log in sorted(glob.glob(f"{self.folder}/pods/**/{namespace}_{pod}*/**/*.log", recursive=True)):
            text += f"== {log}\n{pathlib.Path(log).read_text(errors='replace')}"
        return text

    def report(self, namespace):
        """What is in a namespace and what the operator says, for people who read why a test failed."""
        text = self.kubectl("get", "isvc,inferencegraphs,deployments,pods", "-n", namespace, "-o", "wide") + "\n"
        for kind in ("isvc", "pods"):
            for item in json.loads(self.kubectl("get", kind, "-n", namespace, "-o", "json"))["items"]:
                meta = {k: item["metadata"].get(k) for k in ("name", "deletionTimestamp", "finalizers")}
                text += json.dumps([meta, item.get("status")])[:1500] + "\n"
        for pod in json.loads(self.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]:
            text += self.logs(NAMESPACE, pod["metadata"]["name"])[-3000:]
        text += (self.folder / "cluster.log").read_text()[-3000:]
        return text

    def install(self, *options):
        """Applies what `nereid operator manifests` prints, and waits until all Deployments are available."""
        printed = subprocess.run(
            [program(), "operator", "manifests", "--image", IMAGE, "--namespace", NAMESPACE, *options],
            capture_output=True, text=True, timeout=120)
        assert printed.returncode == 0, printed.stderr
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=printed.stdout)
        try:
            self.kubectl("wait", "deployment", "--all", "-n", NAMESPACE, "--for=condition=Available", "--timeout=150s")
        except AssertionError as e:
            pods = json.loads(self.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
            said = "".join(self.logs(NAMESPACE, pod["metadata"]["name"])[-3000:] for pod in pods)
            raise AssertionError(f"{e}\n{json.dumps([p.get('status') for p in pods], indent=1)[-4000:]}\n{said}") from None

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.log.close()
        if not os.environ.get("NEREID_KEEP_CLUSTER"):
            shutil.rmtree(self.folder, ignore_errors=True)


PATH = "/opt/nereid/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ClusterServer(ControlApi, Address):
    """The cluster as the suites of the control plane use it: models are on a volume that the claim `models` names."""

    cluster = True

    def __init__(self, kubernetes, models=None, values=None):
        self.kubernetes = kubernetes
        self.namespaces = set()
        self.models = models
        self.values = {"python": sys.executable, "control": str(CONTROL), "models": "", **(values or {})}
        service = json.loads(kubernetes.kubectl("get", "service", "nereid-gateway", "-n", NAMESPACE, "-o", "json"))
        self.base = f"{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"

    def connection(self, timeout):
        address = self.kubernetes.address
        return http.client.HTTPSConnection(address.hostname, address.port, timeout=timeout, context=self.kubernetes.tls)

    def text(self, file, **values):
        # A cluster has no folders of this machine: the same files are on a volume. The images of KServe's runtimes are not there.
        return super().text(file, **values).replace("file:///", "pvc://models/").replace("runtime: kserve-", "runtime: nereid-")

    def apply(self, file, **values):
        for document in yaml.safe_load_all(self.text(file, **values)):
            self.namespace(document["metadata"].get("namespace", "demo"))
        return super().apply(file, **values)

    def namespace(self, name):
        """Creates a namespace with the models' volume, once."""
        if name in self.namespaces:
            return
        self.namespaces.add(name)
        volume = f"models-{name}-{os.getpid()}"
        objects = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": name, "annotations": {"nereid.io/serving-engine": "nereid"}}},
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
             "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], "hostPath": {"path": str(self.models)},
                      "claimRef": {"namespace": name, "name": "models"}, "storageClassName": ""}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": name, "name": "models"},
             "spec": {"accessModes": ["ReadOnlyMany"], "storageClassName": "", "volumeName": volume,
                      "resources": {"requests": {"storage": "1Gi"}}}},
        ]
        self.kubernetes.kubectl("apply", "--server-side", "-f", "-", input="\n---\n".join(map(json.dumps, objects)))

    def close(self):
        """Deletes what the suite has made, and waits until nothing of it runs."""
        for name in self.namespaces:
            try:
                # While there are pods, the deletion of a namespace waits for half of their grace period before it looks again.
                # One request for all of them: kubectl deletes five a second, one after the other.
                for kind in ("v1beta1/namespaces/%s/inferenceservices", "v1alpha1/namespaces/%s/inferencegraphs"):
                    self.kubernetes.kubectl("delete", "--raw", "/apis/serving.kserve.io/" + kind % name)
                until(lambda: not self.kubernetes.kubectl("get", "isvc,inferencegraphs", "-n", name, "-o", "name"), f"no service is left in {name}", 300)
                until(lambda: not self.kubernetes.kubectl("get", "pods", "-n", name, "-o", "name"), f"no pod is left in {name}", 120)
                self.kubernetes.kubectl("delete", "namespace", name, "--timeout=90s")
            except AssertionError as e:
                raise AssertionError(f"{e}\n{self.kubernetes.report(name)}") from None
            self.kubernetes.kubectl("delete", "pv", f"models-{name}-{os.getpid()}")
        self.namespaces.clear()


_cluster = None


def cluster():
    """The cluster of this run, with everything installed; made when it is first wanted."""
    global _cluster
    if _cluster is None:
        _cluster = Cluster()
        _cluster.install("--replicas", "1", "--gateway-replicas", "1", "--deployment-mode", "Knative")
    return _cluster


def on_cluster():
    """Whether the suites of the control plane run against the cluster: NEREID_TARGET=cluster."""
    return os.environ.get("NEREID_TARGET") == "cluster"
