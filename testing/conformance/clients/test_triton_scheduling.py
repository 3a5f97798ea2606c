# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Triton's schedulers as tritonclient sees them: batches, queues, priorities, sequences, ensembles, decoupled models."""
import queue
import shutil
import threading
import time

import numpy as np
import pytest

triton = pytest.importorskip("tritonclient.grpc")
from tritonclient.utils import InferenceServerException

import scenarios
from server import FIXTURES, Server, samples, until


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = scenarios.build(tmp_path_factory.mktemp("scenarios"))
    shutil.copy(FIXTURES / "ragged_sum.onnx", scenarios.add(repository, "ragged", scenarios.RAGGED) / "1" / "model.onnx")
    server = Server(
        repository,
        "--model-control-mode=none", "--cache-config=local,size=16777216", "--allow-client-shm=true",
        environment=samples(),
    )
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.lines)
    assert server.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.base) as client:
        yield client


def fp32(*values):
    return np.array([values], dtype=np.float32)


def tensor(name, array, datatype=None):
    kinds = {np.dtype(np.float32): "FP32", np.dtype(np.int32): "INT32", np.dtype(np.uint32): "UINT32"}
    tensor = triton.InferInput(name, list(array.shape), datatype or kinds[array.dtype])
    tensor.set_data_from_numpy(array)
    return tensor


class Answers:
    """Collects the responses of async_infer and streams, in order of arrival."""

    def __init__(self):
        self.all = queue.Queue()

    def of(self, key):
        return lambda result, error: self.all.put((key, result, error))

    def __call__(self, result, error):
        self.all.put((None, result, error))

    def take(self, count, timeout=20):
        return [self.all.get(timeout=timeout) for _ in range(count)]


def statistics(client, model):
    return client.get_inference_statistics(model, as_json=True)["model_stats"][0]


def executions(client, model):
    return int(statistics(client, model).get("execution_count", 0))


def send(client, model, key, answers, array=None, **options):
    client.async_infer(model, [tensor("INPUT0", fp32(1, 2) if array is None else array)], answers.of(key), request_id=str(key), **options)


# --- the dynamic batcher


def test_a_preferred_size_is_reached_without_waiting_for_the_delay(client):
    before = executions(client, "batched")
    answers = Answers()
    start = time.monotonic()
    for i in range(4):
        send(client, "batched", i, answers)
    for _, _, error in answers.take(4):
        assert error is None
    assert time.monotonic() - start < 0.4
    assert executions(client, "batched") == before + 1
    sizes = {int(b["batch_size"]) for b in statistics(client, "batched")["batch_stats"]}
    assert 4 in sizes


def test_a_lone_request_waits_for_the_delay(client):
    start = time.monotonic()
    client.infer("batched", [tensor("INPUT0", fp32(1, 2))])
    assert 0.4 < time.monotonic() - start < 2


def test_requests_of_other_shapes_are_other_batches(client):
    before = executions(client, "batched")
    answers = Answers()
    for i in range(2):
        send(client, "batched", i, answers, fp32(1, 2))
    for i in range(2, 4):
        send(client, "batched", i, answers, fp32(1, 2, 3))
    for key, result, error in answers.take(4):
        assert error is None
        assert result.as_numpy("OUTPUT0").shape == (1, 2 if key < 2 else 3)
    assert executions(client, "batched") == before + 2


def test_order_is_kept_over_instances(client):
    for _ in range(3):
        answers = Answers()
        for i in range(12):
            send(client, "ordered", i, answers)
        got = answers.take(12)
        assert all(error is None for _, _, error in got)


def test_a_full_queue_refuses(client):
    answers = Answers()
    for i in range(8):
        send(client, "queue_limit", i, answers)
    errors = [error for _, _, error in answers.take(8) if error is not None]
    assert 4 <= len(errors) <= 5
    assert all("Exceeds maximum queue size" in str(e) and "UNAVAILABLE" in str(e.status()) for e in errors)


def test_a_default_timeout_rejects_promptly(client):
    answers = Answers()
    start = time.monotonic()
    for i in range(3):
        send(client, "queue_timeout", i, answers)
    got = answers.take(2)
    rejected = [e for _, _, e in got if e is not None]
    assert len(rejected) == 2 and all("Request timeout expired" in str(e) for e in rejected)
    assert 0.15 < time.monotonic() - start < 0.5, "by a timer, not when the instance is free"
    assert answers.take(1)[0][2] is None


def test_a_request_may_shorten_its_timeout(client):
    answers = Answers()
    send(client, "queue_timeout", 0, answers)
    start = time.monotonic()
    send(client, "queue_timeout", 1, answers, timeout=50_000)
    key, _, error = answers.take(1)[0]
    assert key == 1 and "Request timeout expired" in str(error)
    assert time.monotonic() - start < 0.19
    answers.take(1)


def test_a_timeout_counts_although_no_default_is_set(client):
    answers = Answers()
    send(client, "queue_override", 0, answers)
    send(client, "queue_override", 1, answers, timeout=50_000)
    key, _, error = answers.take(1)[0]
    assert key == 1 and "Request timeout expired" in str(error)
    assert answers.take(1)[0][2] is None


def test_a_delayed_request_is_served_after_the_others(client):
    answers = Answers()
    send(client, "queue_delay", 0, answers)
    time.sleep(0.05)
    send(client, "queue_delay", 1, answers, timeout=50_000)
    time.sleep(0.12)
    send(client, "queue_delay", 2, answers)
    got = answers.take(3)
    assert [key for key, _, _ in got] == [0, 2, 1]
    assert all(error is None for _, _, error in got)


def test_priorities_are_served_first(client):
    answers = Answers()
    send(client, "priorities", "first", answers)
    time.sleep(0.05)
    for key, priority in (("low", 3), ("middle", 0), ("high", 1), ("also high", 1)):
        send(client, "priorities", key, answers, priority=priority)
        time.sleep(0.005)
    assert [key for key, _, _ in answers.take(5)] == ["first", "high", "also high", "middle", "low"]


def test_a_cancelled_request_leaves_the_queue(client):
    answers = Answers()
    send(client, "slow_default", 0, answers)
    time.sleep(0.05)
    call = client.async_infer("slow_default", [tensor("INPUT0", fp32(1))], answers.of(1))
    time.sleep(0.05)
    call.cancel()
    key, _, error = answers.take(1)[0]
    assert key == 1 and "CANCELLED" in str(error).upper()
    assert answers.take(1)[0][2] is None


# --- what models receive


def test_reshape_is_invisible_to_clients(client):
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert np.array_equal(client.infer("reshaped", [tensor("INPUT0", array)]).as_numpy("OUTPUT0"), array)
    assert [o.shape for o in client.get_model_metadata("reshaped").inputs] == [[-1, 4]]


def test_optional_inputs_may_be_left_out_and_never_share_a_batch_with_others(client):
    answers = Answers()
    one = fp32(1, 2, 3, 4)
    for i in range(4):
        inputs = [tensor("INPUT0", one * i)] + ([tensor("INPUT1", one * 10)] if i % 2 else [])
        client.async_infer("optional", inputs, answers.of(i))
    for key, result, error in answers.take(4):
        assert error is None
        assert np.array_equal(result.as_numpy("OUTPUT0"), one * key)
        assert np.array_equal(result.as_numpy("OUTPUT1"), one * 10 if key % 2 else one * 0)


def test_ragged_requests_share_a_batch(client):
    before = executions(client, "ragged")
    answers = Answers()
    for i, values in enumerate(((1, 2), (3,), (4, 5, 6), (7, 8, 9, 10))):
        client.async_infer("ragged", [tensor("VALUES", fp32(*values))], answers.of(i))
    got = {key: float(result.as_numpy("SUM").ravel()[0]) for key, result, error in answers.take(4)}
    assert got == {0: 3, 1: 3, 2: 15, 3: 34}
    assert executions(client, "ragged") == before + 1


def test_a_models_parameters_come_back(client):
    response = client.infer("echo", [tensor("INPUT0", np.array([5], dtype=np.int32))]).get_response()
    assert response.parameters["param0"].string_param == "an example string parameter"
    assert response.parameters["param1"].int64_param == 42
    assert response.parameters["param2"].bool_param is False
    assert response.parameters["param3"].double_param == pytest.approx(123.123)


# --- the response cache


def test_an_equal_request_is_answered_from_the_cache(client):
    array = fp32(*np.random.default_rng().random(4))
    client.infer("cached", [tensor("INPUT0", array)])
    before = statistics(client, "cached")
    start = time.monotonic()
    result = client.infer("cached", [tensor("INPUT0", array)], request_id="again")
    assert time.monotonic() - start < 0.08
    assert np.array_equal(result.as_numpy("OUTPUT0"), array)
    assert result.get_response().id == "again"
    after = statistics(client, "cached")
    assert after["execution_count"] == before["execution_count"]
    assert int(after["inference_stats"]["cache_hit"]["count"]) == int(before["inference_stats"].get("cache_hit", {}).get("count", 0)) + 1
    assert int(after["inference_stats"]["success"]["count"]) == int(before["inference_stats"]["success"]["count"]) + 1
    before = executions(client, "cached")
    client.infer("cached", [tensor("INPUT0", array.reshape(2, 2))])
    assert executions(client, "cached") == before + 1, "another shape of the same bytes is another request"


# --- sequences


def step(client, model, sequence, value, start=False, end=False, **options):
    result = client.infer(
        model, [tensor("INPUT", np.array([[value]], dtype=np.int32))],
        sequence_id=sequence, sequence_start=start, sequence_end=end, **options)
    return int(result.as_numpy("OUTPUT").ravel()[0])


@pytest.mark.parametrize("model", ["direct", "state"])
def test_a_sequence_adds_up(client, model):
    assert [step(client, model, 901, v, i == 0, i == 2) for i, v in enumerate((1, 2, 3))] == [1, 3, 6]


def test_a_last_request_brings_the_id_with_oldest(client):
    assert [step(client, "oldest", 77, v, i == 0, i == 2) for i, v in enumerate((1, 2, 3))] == [1, 3, 6 + 77]


def test_ids_may_be_texts(client):
    assert [step(client, "texts", "25", v, i == 0, i == 1) for i, v in enumerate((1, 2))] == [1, 3 + 25]


def test_a_state_may_start_from_a_file(client):
    assert [step(client, "state_file", 5, v, i == 0, i == 1) for i, v in enumerate((1, 2))] == [101, 103]


@pytest.mark.parametrize("model", ["direct", "oldest", "state"])
def test_many_sequences_interleave_on_a_stream(server, model):
    with triton.InferenceServerClient(server.base) as client:
        answers = Answers()
        client.start_stream(answers)
        length, sequences = 5, list(range(1001, 1013))
        for i in range(length):
            for s in sequences:
                client.async_stream_infer(
                    model, [tensor("INPUT", np.array([[s + i]], dtype=np.int32))], request_id=f"{s}/{i}",
                    sequence_id=s, sequence_start=i == 0, sequence_end=i == length - 1)
        got = {}
        for _, result, error in answers.take(length * len(sequences)):
            assert error is None, error
            got[result.get_response().id] = int(result.as_numpy("OUTPUT").ravel()[0])
        for s in sequences:
            total = 0
            for i in range(length):
                total += s + i
                expected = total + (s if model == "oldest" and i == length - 1 else 0)
                assert got[f"{s}/{i}"] == expected
        client.stop_stream()


def test_a_sequence_needs_its_start_and_an_id(client):
    with pytest.raises(InferenceServerException, match="must specify the START flag on the first request of the sequence"):
        step(client, "direct", 4242, 1)
    with pytest.raises(InferenceServerException, match="must specify a non-zero or non-empty correlation ID"):
        step(client, "direct", 0, 1, start=True)
    with pytest.raises(InferenceServerException, match="must specify batch-size 1 due to requirements of sequence batcher"):
        client.infer("direct", [tensor("INPUT", np.array([[1], [2]], dtype=np.int32))], sequence_id=7, sequence_start=True)
    with pytest.raises(InferenceServerException, match="CORRID"):
        step(client, "oldest", "a text", 1, start=True)


def test_a_waiting_sequence_gets_the_slot_when_the_other_falls_silent(client):
    assert step(client, "one_slot", 1, 5, start=True) == 5
    start = time.monotonic()
    assert step(client, "one_slot", 2, 7, start=True, end=True) == 7
    assert time.monotonic() - start > 0.3
    with pytest.raises(InferenceServerException, match="START"):
        step(client, "one_slot", 1, 5)


def test_a_new_start_ends_the_old_sequence(client):
    assert step(client, "direct", 31, 5, start=True) == 5
    assert step(client, "direct", 31, 6, start=True) == 6
    assert step(client, "direct", 31, 1, end=True) == 7


# --- decoupled models


def stream(server, requests, **options):
    """Sends (model, inputs, id) on one stream; returns the responses by id."""
    with triton.InferenceServerClient(server.base) as client:
        answers = Answers()
        client.start_stream(answers)
        for model, inputs, key in requests:
            client.async_stream_infer(model, inputs, request_id=key, enable_empty_final_response=True, **options)
        got, open_requests = {key: [] for _, _, key in requests}, len(requests)
        while open_requests:
            _, result, error = answers.take(1)[0]
            assert error is None, error
            response = result.get_response()
            final = response.parameters["triton_final_response"].bool_param
            if response.outputs:
                got[response.id].append(result)
            open_requests -= final
        client.stop_stream()
        return got


def repeated(values, delays, wait=0):
    return [
        tensor("IN", np.array(values, dtype=np.int32)), tensor("DELAY", np.array(delays, dtype=np.uint32)),
        tensor("WAIT", np.array([wait], dtype=np.uint32)),
    ]


def test_a_request_may_have_many_answers_or_none(server):
    got = stream(server, [("repeat", repeated([4, 2, 0, 1], [10, 20, 0, 5]), "a"), ("repeat", repeated([], []), "b")])
    assert [int(r.as_numpy("OUT")[0]) for r in got["a"]] == [4, 2, 0, 1]
    assert [int(r.as_numpy("IDX")[0]) for r in got["a"]] == [0, 1, 2, 3]
    assert got["b"] == []


def test_answers_of_two_requests_interleave(server):
    with triton.InferenceServerClient(server.base) as client:
        answers = Answers()
        client.start_stream(answers)
        client.async_stream_infer("repeat", repeated([1, 1, 1], [0, 400, 400]), request_id="slow")
        client.async_stream_infer("square", [tensor("IN", np.array([2], dtype=np.int32))], request_id="quick")
        order = [r.get_response().id for _, r, _ in answers.take(5)]
        assert order.index("quick") < 2 and order[-1] == "slow"
        client.stop_stream()


def test_square_answers_as_often_as_it_is_told(server):
    got = stream(server, [("square", [tensor("IN", np.array([n], dtype=np.int32))], str(n)) for n in (3, 0, 2)])
    assert {k: [int(r.as_numpy("OUT")[0]) for r in v] for k, v in got.items()} == {"3": [3, 3, 3], "0": [], "2": [2, 2]}


def test_an_iterative_sequence_runs_until_the_model_is_done(server):
    got = stream(server, [("countdown", [tensor("INPUT", np.array([3], dtype=np.int32))], "x")])
    assert [int(r.as_numpy("OUTPUT")[0]) for r in got["x"]] == [2, 1, 0]


def test_a_unary_call_of_a_decoupled_model_is_refused(client):
    with pytest.raises(InferenceServerException, match="ModelInfer RPC doesn't support models with decoupled transaction policy"):
        client.infer("square", [tensor("IN", np.array([1], dtype=np.int32))])


def test_closing_a_stream_cancels_what_it_asked(server):
    with triton.InferenceServerClient(server.base) as client:
        answers = Answers()
        client.start_stream(answers)
        client.async_stream_infer("repeat", repeated([1] * 50, [200] * 50), request_id="long")
        answers.take(1)
        client.stop_stream(cancel_requests=True)
    with triton.InferenceServerClient(server.base) as client:
        until(lambda: server.metric("nereid_in_flight") == 0, "nothing is in flight", 10)


# --- ensembles


def sixteen(value):
    return np.full((1, 16), value, dtype=np.int32)


def test_an_ensemble_runs_its_steps(client):
    result = client.infer("ensemble", [tensor("A", sixteen(5)), tensor("B", sixteen(2))])
    assert np.array_equal(result.as_numpy("SUM"), sixteen(7))
    assert np.array_equal(result.as_numpy("TWICE_A"), sixteen(10))


def test_steps_that_nobody_asks_for_are_left_out(client):
    before = executions(client, "add_sub")
    result = client.infer(
        "ensemble", [tensor("A", sixteen(5)), tensor("B", sixteen(2))], outputs=[triton.InferRequestedOutput("SUM")])
    assert np.array_equal(result.as_numpy("SUM"), sixteen(7))
    assert executions(client, "add_sub") == before + 1


def test_ensembles_nest(client):
    assert np.array_equal(client.infer("nested", [tensor("A", sixteen(5))]).as_numpy("FOUR_A"), sixteen(20))


def test_an_ensemble_of_a_decoupled_model_is_decoupled(server):
    got = stream(server, [("decoupled_ensemble", [tensor("N", np.array([n], dtype=np.int32))], str(n)) for n in (3, 0)])
    assert [int(r.as_numpy("RESULT")[0]) for r in got["3"]] == [3, 3, 3]
    assert got["0"] == []


def test_an_ensembles_errors_name_it(client):
    with pytest.raises(InferenceServerException, match="unexpected shape for input 'A' for model 'ensemble'"):
        client.infer("ensemble", [tensor("A", np.zeros((1, 3), dtype=np.int32)), tensor("B", sixteen(2))])


def test_a_cancelled_ensemble_stops_between_steps(client):
    before = executions(client, "slow_default")
    answers = Answers()
    call = client.async_infer("slow_ensemble", [tensor("X", fp32(1))], answers.of(0))
    time.sleep(0.1)
    call.cancel()
    assert "CANCELLED" in str(answers.take(1)[0][2]).upper()
    time.sleep(1)
    assert executions(client, "slow_default") <= before + 1


def test_an_ensembles_statistics_are_the_sums_of_its_steps(client):
    client.infer("ensemble", [tensor("A", sixteen(5)), tensor("B", sixteen(2))])
    stats = statistics(client, "ensemble")
    assert int(stats["inference_count"]) == int(stats["execution_count"]) >= 1
    assert int(stats["inference_stats"]["compute_infer"]["ns"]) > 0


# --- the rate limiter


def test_resources_let_one_model_run_at_a_time(tmp_path):
    limited = "instance_group { kind: KIND_CPU count: 1 rate_limiter { resources { name: \"R\" count: 2 } priority: %d } }\n"
    for name, priority in (("one", 1), ("two", 2)):
        scenarios.add(tmp_path, name, scenarios.identity(delay=200, extra=limited % priority))
    server = Server(tmp_path, "--rate-limit=execution_count", "--rate-limit-resource=R:3", environment=samples())
    try:
        with triton.InferenceServerClient(server.base) as client:
            answers = Answers()
            start = time.monotonic()
            for i in range(3):
                send(client, "one", ("one", i), answers)
                send(client, "two", ("two", i), answers)
            got = answers.take(6)
            assert all(error is None for _, _, error in got)
            assert time.monotonic() - start > 1.1, "3 of R let only one instance that needs 2 run"
            first = [key[0] for key, _, _ in got[:3]]
            assert first.count("one") == 2, "priority 1 is served twice as often as 2"
    finally:
        server.stop()


def test_a_model_that_could_never_run_is_not_loaded(tmp_path):
    scenarios.add(
        tmp_path, "greedy",
        scenarios.identity(extra="instance_group { kind: KIND_CPU count: 1 rate_limiter { resources { name: \"R\" count: 4 } } }\n"))
    server = Server(tmp_path, "--rate-limit=execution_count", "--rate-limit-resource=R:3", environment=samples())
    try:
        listed = server.ask("POST", "/v2/repository/index")[2].decode()
        assert "limited to 3 which will prevent scheduling of one or more model instances, the minimum required count is 4" in listed
    finally:
        server.stop()
