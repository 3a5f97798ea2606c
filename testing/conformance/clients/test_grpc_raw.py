# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""grpcio without generated code: the messages come from the server's own reflection."""
import struct

import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("grpc_reflection")
pytest.importorskip("grpc_health")
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from access import SecuredServer
from server import EXAMPLES

SERVICE = "inference.GRPCInferenceService"


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(server.base) as channel:
        yield channel


@pytest.fixture(scope="module")
def pool(channel):
    return DescriptorPool(ProtoReflectionDescriptorDatabase(channel))


class Caller:
    def __init__(self, channel, pool):
        self.channel = channel
        self.service = pool.FindServiceByName(SERVICE)
        self.pool = pool

    def message(self, name):
        return GetMessageClass(self.pool.FindMessageTypeByName("inference." + name))

    def __call__(self, method, message=None, **options):
        descriptor = self.service.FindMethodByName(method)
        message = message or GetMessageClass(descriptor.input_type)()
        call = self.channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=GetMessageClass(descriptor.output_type).FromString,
        )
        return call(message, timeout=options.pop("timeout", 10), **options)


@pytest.fixture(scope="module")
def call(channel, pool):
    return Caller(channel, pool)


def infer(call, **fields):
    request = call.message("ModelInferRequest")(model_name="identity_fp32", **fields)
    tensor = request.inputs.add()
    tensor.name, tensor.datatype = "INPUT0", "FP32"
    tensor.shape.extend([1, 2])
    return request


def code(call, request, method="ModelInfer", **options):
    with pytest.raises(grpc.RpcError) as failure:
        call(method, request, **options)
    return failure.value.code(), failure.value.details()


def still_answers(call):
    request = infer(call)
    request.raw_input_contents.append(struct.pack("<2f", 1, 2))
    assert call("ModelInfer", request).raw_output_contents[0] == struct.pack("<2f", 1, 2)


def test_reflection_lists_the_services(channel):
    services = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert {SERVICE, "grpc.health.v1.Health"} <= services


def test_health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", SERVICE):
        assert stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status == 1
    with pytest.raises(grpc.RpcError) as failure:
        stub.Check(health_pb2.HealthCheckRequest(service="nosuch"), timeout=5)
    assert failure.value.code() == grpc.StatusCode.NOT_FOUND
    watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=5)
    assert next(iter(watch)).status == 1
    watch.cancel()


def test_typed_in_gives_typed_out_and_raw_in_raw_out(call):
    request = infer(call, id="x")
    request.inputs[0].contents.fp32_contents.extend([1.5, -2])
    answer = call("ModelInfer", request)
    assert answer.id == "x"
    assert list(answer.outputs[0].contents.fp32_contents) == [1.5, -2]
    assert not answer.raw_output_contents
    still_answers(call)


def test_double_and_uint64_parameters_are_known(call):
    request = infer(call)
    request.raw_input_contents.append(bytes(8))
    request.parameters["a"].double_param = 0.5
    request.parameters["b"].uint64_param = 2**62
    assert len(call("ModelInfer", request).outputs) == 1


@pytest.mark.parametrize("method", ["RepositoryModelUnload", "RepositoryModelLoad"])
@pytest.mark.parametrize("field", [1, 2])
def test_the_model_name_may_be_in_either_field(call, method, field):
    name = b"identity_uint8"
    call(method, bytes([field << 3 | 2, len(name)]) + name)
    if method == "RepositoryModelUnload":
        call("RepositoryModelLoad", bytes([0x12, len(name)]) + name)
    assert call("ModelReady", call.message("ModelReadyRequest")(name=name.decode())).ready


def bad_inputs():
    def raw(request, *buffers):
        request.raw_input_contents.extend(buffers)

    def shape(request, *dims):
        del request.inputs[0].shape[:]
        request.inputs[0].shape.extend(dims)
        raw(request, bytes(8))

    return {
        "no data at all": lambda r: None,
        "too few bytes": lambda r: raw(r, bytes(7)),
        "too many bytes": lambda r: raw(r, bytes(12)),
        "two buffers for one input": lambda r: raw(r, bytes(8), bytes(8)),
        "raw and typed": lambda r: (raw(r, bytes(8)), r.inputs[0].contents.fp32_contents.append(1)),
        "too few elements": lambda r: r.inputs[0].contents.fp32_contents.append(1),
        "elements of another type": lambda r: r.inputs[0].contents.int64_contents.extend([1, 2]),
        "negative dimension": lambda r: shape(r, 1, -2),
        "overflowing shape": lambda r: shape(r, 2**62, 2**62),
        "huge shape": lambda r: shape(r, 1, 2**40),
        "batch too large": lambda r: (shape(r, 9, 1), r.raw_input_contents.__setitem__(0, bytes(36))),
        "unknown type": lambda r: (setattr(r.inputs[0], "datatype", "FP99"), raw(r, bytes(8))),
        "other type than the model's": lambda r: (setattr(r.inputs[0], "datatype", "INT32"), raw(r, bytes(8))),
        "unknown input": lambda r: (setattr(r.inputs[0], "name", "X"), raw(r, bytes(8))),
        "duplicate input": lambda r: (r.inputs.add().CopyFrom(r.inputs[0]), raw(r, bytes(8), bytes(8))),
        "unknown output": lambda r: (setattr(r.outputs.add(), "name", "X"), raw(r, bytes(8))),
        "bad version": lambda r: (setattr(r, "model_version", "-1"), raw(r, bytes(8))),
    }


@pytest.mark.parametrize("what", bad_inputs())
def test_bad_input_is_the_clients_fault(call, what):
    request = infer(call)
    bad_inputs()[what](request)
    status, text = code(call, request)
    assert status == grpc.StatusCode.INVALID_ARGUMENT, text
    assert text and "Exception" not in text
    still_answers(call)


def test_no_such_model_method_or_service(call, channel):
    request = infer(call)
    request.model_name = "nosuch"
    request.raw_input_contents.append(bytes(8))
    assert code(call, request)[0] == grpc.StatusCode.NOT_FOUND
    request.model_name = "../../etc/passwd"
    assert code(call, request)[0] in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
    for path in (f"/{SERVICE}/NoSuch", "/no.Such/Service"):
        with pytest.raises(grpc.RpcError) as failure:
            channel.unary_unary(path, lambda m: m, lambda m: m)(b"", timeout=5)
        assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
    still_answers(call)


def test_bytes_that_are_no_message(call):
    assert code(call, b"\xff\xff\xff\xff\xff")[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert code(call, b"\xff\xff\xff\xff\xff", "ModelMetadata")[0] == grpc.StatusCode.INVALID_ARGUMENT
    still_answers(call)


def test_a_message_over_the_limit(call):
    request = infer(call)
    request.raw_input_contents.append(bytes(70 << 20))
    assert code(call, request, timeout=30)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    still_answers(call)


def test_compressed(call):
    request = infer(call)
    request.raw_input_contents.append(struct.pack("<2f", 1, 2))
    answer = call("ModelInfer", request, compression=grpc.Compression.Gzip)
    assert answer.raw_output_contents[0] == struct.pack("<2f", 1, 2)


def test_deadline_and_cancellation(call):
    request = infer(call)
    request.model_name = "slow"
    request.raw_input_contents.append(bytes(8))
    assert code(call, request, timeout=0.3)[0] == grpc.StatusCode.DEADLINE_EXCEEDED
    still_answers(call)


def test_what_is_not_served_says_so(call):
    assert code(call, None, "CudaSharedMemoryRegister")[0] == grpc.StatusCode.UNIMPLEMENTED


def test_reflection_needs_a_key_where_keys_are_configured(tmp_path):
    secured = SecuredServer(tmp_path, EXAMPLES)
    try:
        with grpc.insecure_channel(secured.base) as plain:
            with pytest.raises(grpc.RpcError) as e:
                ProtoReflectionDescriptorDatabase(plain).get_services()
            assert e.value.code() == grpc.StatusCode.UNAUTHENTICATED
            health = health_pb2_grpc.HealthStub(plain)
            assert health.Check(health_pb2.HealthCheckRequest(), timeout=10).status == health_pb2.HealthCheckResponse.SERVING
            key = secured.metadata("app")
            with_key = grpc.intercept_channel(plain, Metadata(key))
            pool = DescriptorPool(ProtoReflectionDescriptorDatabase(with_key))
            caller = Caller(plain, pool)
            assert caller("ServerMetadata", metadata=key).name
            with pytest.raises(grpc.RpcError) as e:
                caller("ServerMetadata")
            assert e.value.code() == grpc.StatusCode.UNAUTHENTICATED
            with pytest.raises(grpc.RpcError) as e:
                caller("RepositoryModelUnload", caller.message("RepositoryModelUnloadRequest")(model_name="simple"), metadata=key)
            assert e.value.code() == grpc.StatusCode.PERMISSION_DENIED
    finally:
        secured.stop()


class Metadata(grpc.StreamStreamClientInterceptor):
    """Adds metadata to every stream, as grpcurl's option -H does."""

    def __init__(self, more):
        self.more = more

    def intercept_stream_stream(self, continuation, details, requests):
        return continuation(details._replace(metadata=[*(details.metadata or []), *self.more]), requests)
