# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
InferenceServices through the clients of the kserve SDK, and with processes that are written with it. Against one machine, or with
NEREID_TARGET=cluster against a cluster.
"""
import asyncio

import numpy as np
import pytest
import yaml

kserve = pytest.importorskip("kserve")

from kubernetes import client as kubernetes

from cluster import ClusterServer, cluster, on_cluster
from control_fixtures import over
from control_server import ControlServer
from server import EXAMPLES

IRIS = [[5.1, 3.5, 1.4, 0.2], [6.9, 3.1, 5.4, 2.1]]
TENFOLD = [[10 * x for x in row] for row in IRIS]
PROTOCOLS = ["v1", "v2", "grpc-v2"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    if on_cluster():
        plane = ClusterServer(cluster(), EXAMPLES)
    else:
        plane = ControlServer(tmp_path_factory.mktemp("plane"), values={"models": EXAMPLES})
    plane.apply(plane.text("onnx.yaml").replace("/onnx\n", "/iris/1\n"))
    yield plane
    if on_cluster():
        plane.close()
    else:
        over(plane)


@pytest.fixture(scope="module")
def package(plane):
    """The plane with predictors and transformers that are written with the package."""
    # Importing the package takes seconds: all processes start in parallel.
    plane.apply("kserve-custom.yaml")
    for protocol in PROTOCOLS:
        plane.apply("kserve-transformer.yaml", name=f"scaler-{protocol}", protocol=protocol)
    return plane


@pytest.fixture(scope="module")
def sdk(plane, tmp_path_factory):
    """The client of the resources, which takes its server and credentials from a kubeconfig."""
    if on_cluster():
        return kserve.KServeClient(config_file=plane.kubernetes.kubeconfig)
    file = tmp_path_factory.mktemp("kubeconfig") / "config"
    file.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": plane.control_url}}],
        "users": [{"name": "here", "user": {}}],
    }))
    return kserve.KServeClient(config_file=str(file))


def address(plane, name, by="host"):
    """The clients' parameters: the server's address, and headers."""
    if by == "path":
        return f"http://{plane.base}/serving/demo/{name}", {}
    return f"http://{plane.base}", {"Host": f"{name}-demo.example.com"}


def request(name, rows, kind="FP32"):
    tensor = kserve.InferInput("input", list(np.shape(rows)), kind)
    tensor.set_data_from_numpy(np.array(rows, {"FP32": np.float32, "FP64": np.float64}[kind]), binary_data=False)
    return kserve.InferRequest(name, [tensor])


async def by_v1(plane, name, rows, by="host"):
    base, headers = address(plane, name, by)
    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1", retries=0))
    try:
        assert await client.is_model_ready(base, name, headers=headers)
        return (await client.infer(base, {"instances": rows}, name, headers=headers))["predictions"]
    finally:
        await client.close()


async def by_v2(plane, name, rows, output, by="host"):
    base, headers = address(plane, name, by)
    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", retries=0))
    try:
        assert await client.is_server_ready(base, headers=headers)
        assert await client.is_model_ready(base, name, headers=headers)
        answer = await client.infer(base, request(name, rows), name, headers=headers)
        return list(next(o for o in answer.outputs if o.name == output).data)
    finally:
        await client.close()


async def by_grpc(plane, name, rows, output):
    client = kserve.InferenceGRPCClient(
        plane.base, channel_args=[("grpc.default_authority", f"{name}-demo.example.com")])
    try:
        assert await client.is_model_ready(name)
        answer = await client.infer(request(name, rows))
        return np.ravel(next(o for o in answer.outputs if o.name == output).as_numpy()).tolist()
    finally:
        await client.close()


@pytest.mark.parametrize("by", ["host", "path"])
def test_the_clients_speak_to_a_service(plane, by):
    plane.steady("onnx-iris")
    assert [p["label"] for p in asyncio.run(by_v1(plane, "onnx-iris", IRIS, by))] == [[0], [2]]
    assert asyncio.run(by_v2(plane, "onnx-iris", IRIS, "label", by)) == [0, 2]
    if by == "host":
        assert asyncio.run(by_grpc(plane, "onnx-iris", IRIS, "label")) == [0, 2]


def test_the_clients_explain(plane):
    plane.steady("onnx-iris")

    async def explain():
        base, headers = address(plane, "onnx-iris")
        client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v1", retries=0))
        body = {"instances": IRIS, "parameters": {"background": [[5, 3, 1.5, 0.2], [6, 3, 4, 1.2]]}}
        try:
            return await client.explain(base, "onnx-iris", body, headers=headers)
        finally:
            await client.close()

    assert len(asyncio.run(explain())["explanations"]) == 2


def test_a_predictor_of_the_package_answers_in_every_protocol(package):
    package.steady("kserve-custom")
    rows = [[1, 2], [3, 4]]
    assert asyncio.run(by_v1(package, "kserve-custom", rows)) == [30, 70]
    assert asyncio.run(by_v2(package, "kserve-custom", rows, "output-0")) == [30, 70]
    assert asyncio.run(by_grpc(package, "kserve-custom", rows, "output-0")) == [30, 70]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_transformers_of_the_package_stand_between_every_two_protocols(package, protocol):
    name = f"scaler-{protocol}"
    package.steady(name)
    assert asyncio.run(by_v1(package, name, TENFOLD)) == [0, 2]
    assert asyncio.run(by_v1(package, name, TENFOLD, "path")) == [0, 2]
    assert asyncio.run(by_v2(package, name, TENFOLD, "label")) == [0, 2]
    assert asyncio.run(by_grpc(package, name, TENFOLD, "label")) == [0, 2]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_of_the_predictor_come_through_the_transformer(package, protocol):
    name = f"scaler-{protocol}"
    package.steady(name)
    status, _, answer = package.call(name, f"/v1/models/{name}:predict", {"instances": [[1, 2]]})
    # the package turns it into 500; the predictor's message is included
    assert status >= 400 and ("400" in answer["error"] or "INVALID_ARGUMENT" in answer["error"]), (status, answer)


def service(plane, name, model, **more):
    predictor = kserve.V1beta1PredictorSpec(
        model=kserve.V1beta1ModelSpec(
            model_format=kserve.V1beta1ModelFormat(name="onnx"), storage_uri=plane.text("file://${models}/" + model)), **more)
    return kserve.V1beta1InferenceService(
        api_version="serving.kserve.io/v1beta1", kind="InferenceService",
        metadata=kubernetes.V1ObjectMeta(name=name, namespace="demo", annotations={"example.com/by": "sdk"}),
        spec=kserve.V1beta1InferenceServiceSpec(predictor=predictor))


def test_the_client_of_the_resources_creates_changes_and_deletes_a_service(plane, sdk, capsys):
    name = "by-sdk"
    created = sdk.create(service(plane, name, "iris/1"), namespace="demo")
    assert created["metadata"]["generation"] == 1
    sdk.wait_isvc_ready(name, namespace="demo", timeout_seconds=150)
    assert sdk.is_isvc_ready(name, namespace="demo")
    assert [p["label"] for p in asyncio.run(by_v1(plane, name, IRIS))] == [[0], [2]]

    with pytest.raises(RuntimeError, match="409"):
        sdk.create(service(plane, name, "iris/1"), namespace="demo")
    assert name in [one["metadata"]["name"] for one in sdk.get(namespace="demo")["items"]]

    # What a patch does not name stays.
    patched = sdk.patch(name, service(plane, name, "iris/1", min_replicas=1, max_replicas=2), namespace="demo")
    assert patched["metadata"]["generation"] == 2 and patched["spec"]["predictor"]["maxReplicas"] == 2
    plane.steady(name)
    sdk.get(name, namespace="demo", watch=True, timeout_seconds=60)
    printed = capsys.readouterr().out
    assert name in printed and "True" in printed

    # A replacement is the whole resource: the client reads the version that it replaces.
    replaced = sdk.replace(name, service(plane, name, "iris/1", max_replicas=3), namespace="demo")
    assert replaced["spec"]["predictor"]["maxReplicas"] == 3 and "minReplicas" not in replaced["spec"]["predictor"]
    plane.steady(name)
    assert [p["label"] for p in asyncio.run(by_v1(plane, name, IRIS))] == [[0], [2]]

    sdk.delete(name, namespace="demo")
    plane.gone(name)
    with pytest.raises(RuntimeError, match="404"):
        sdk.get(name, namespace="demo")


def test_the_client_of_the_resources_gets_the_words_of_a_refusal(plane, sdk):
    with pytest.raises(RuntimeError) as refused:
        sdk.create(service(plane, "refused", "iris/1", min_replicas=3, max_replicas=2), namespace="demo")
    assert "spec.predictor.minReplicas" in str(refused.value) and "3 is more than maxReplicas, 2" in str(refused.value)
