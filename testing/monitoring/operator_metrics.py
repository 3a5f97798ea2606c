# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
An operator with something to do, whose metrics Prometheus records: the program against the Kubernetes control plane of testing/kubernetes. Services
are applied that it can carry out and one that it cannot, so that each result of a reconciliation occurs.
"""

import json
import os
import pathlib
import subprocess

CLUSTER = pathlib.Path(__file__).resolve().parents[1] / "kubernetes/cluster.sh"


def missing():
    """Why no operator can run here; None when one can."""
    built = subprocess.run([CLUSTER, "binary"], stdout=subprocess.PIPE, check=False).returncode == 0
    return None if built else "the control plane is not built (testing/kubernetes/cluster.sh build)"


class Operator:
    """The operator of a cluster in a folder; both end with the block."""

    def __init__(self, home, work, port):
        self.home = home
        self.folder = work / "cluster"
        self.port = port
        self.log = work / "operator.log"
        self.process = None

    def __enter__(self):
        # The owner ends the cluster when this process is killed.
        subprocess.run([CLUSTER, "start", self.folder, "--owner", str(os.getpid())], stdout=subprocess.DEVNULL, check=True, timeout=150)
        manifests = subprocess.run(
            [self.home / "bin/nereid", "operator", "manifests", "--image", "example.com/nereid:1"], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        # What needs a gateway or the operator's pods is left out: there are no nodes.
        self.kubectl("apply", "--server-side", "-f", "-", given=manifests)
        self.kubectl("delete", "validatingwebhookconfigurations", "--all")
        self.kubectl("delete", "deployments", "--all", "-n", "nereid")
        command = [self.home / "bin/nereid", "operator", "--namespace", "nereid", "--kubeconfig", self.folder / "kubeconfig"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*command, "--health-port", str(self.port)], stdout=log, stderr=log)
        return self

    def change(self, number):
        """Applies a service that can be carried out, and one that cannot."""
        self.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            service(f"iris-{number}", {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "https://example.com/iris.joblib"}}),
            service(f"wrong-{number}", {"model": {"modelFormat": {"name": "nosuchformat"}, "storageUri": "https://example.com/x"}}),
        ]}))  # fmt: skip

    def kubectl(self, *arguments, given=""):
        done = subprocess.run(
            [CLUSTER, "kubectl", self.folder, *arguments], input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120
        )
        if done.returncode != 0:
            raise SystemExit(f"kubectl {' '.join(arguments)}: {done.stdout[-2000:]}")
        return done.stdout

    def __exit__(self, *_):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)
        subprocess.run([CLUSTER, "stop", self.folder], check=False, timeout=120)


def service(name, predictor):
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "default", "annotations": {"serving.kserve.io/deploymentMode": "Standard"}},
        "spec": {"predictor": predictor},
    }
