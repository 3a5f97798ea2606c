// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelRequest;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;

/**
 * The overhead of the Python backend beyond the model's own time: one input tensor, one output tensor of the same size.
 * The interpreter is {@code NEREID_TEST_PYTHON} or {@code python3}, and needs numpy. Stateless.
 */
public final class PythonBackendScenario implements Scenario {
    private static final int MEGABYTE = 1 << 20;
    private static final int RUNS = 2_000;
    private static final double MAX_MICROS = 150;

    private static final String MODEL = """
        import time
        import triton_python_backend_utils as pb_utils
        class TritonPythonModel:
            def execute(self, requests):
                responses = []
                for request in requests:
                    begun = time.perf_counter_ns()
                    out = request.inputs()[0].as_numpy() + 1
                    own = time.perf_counter_ns() - begun
                    responses.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', out)], parameters={'own': own}))
                return responses
        """;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        String named = System.getenv("NEREID_TEST_PYTHON");
        String python = named == null || named.isEmpty() ? "python3" : named;
        Backend backend = null;
        for (Backend candidate : ServiceLoader.load(Backend.class)) {
            backend = candidate.name().equals("python") ? candidate : backend;
        }
        String work = "Python model, 1 MB in and out";
        if (backend == null) {
            return List.of(BenchmarkResult.skipped(work, "the distribution has no Python backend"));
        }
        Path directory = setting.directory("python");
        Path version = directory.resolve("1");
        Files.writeString(Files.createDirectories(version).resolve("model.py"), MODEL);
        ModelConfig config = ModelConfig.builder("python")
                .inputs(List.of(new TensorSpec("IN", DataType.FP32, Shape.of(-1))))
                .outputs(List.of(new TensorSpec("OUT", DataType.FP32, Shape.of(-1))))
                .build();
        BackendContext context = new BackendContext(1, setting.scratch(), Map.of("python", python));
        ModelLocation source = new ModelLocation(new ServableId("python", 1), directory, version);
        List<BenchmarkResult> results = new ArrayList<>();
        try (BackendModel model = backend.load(source, config, context);
                ModelInstance invocation = model.newInstance()) {
            results.add(figure(setting, invocation, work, MEGABYTE, MAX_MICROS));
            results.add(figure(setting, invocation, "Python model, 64 bytes in and out", 64, 0));
        } catch (ServingException e) {
            results.add(BenchmarkResult.skipped(work, e.describe()));
        }
        return results;
    }

    private static BenchmarkResult figure(
            BenchmarkSettings setting, ModelInstance invocation, String work, int size, double most) {
        double[] beyond = new double[setting.rounds()];
        double[] own = new double[setting.rounds()];
        once(invocation, size, RUNS / 4);
        for (int round = 0; round < setting.rounds(); round++) {
            double[][] runs = once(invocation, size, RUNS);
            beyond[round] = BenchmarkResult.median(runs[0]);
            own[round] = BenchmarkResult.median(runs[1]);
        }
        double median = BenchmarkResult.median(beyond);
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(own, "us, the model"),
                BenchmarkResult.spread(beyond, "us beyond"),
                "",
                "",
                most > 0 ? String.format(Locale.ROOT, "<= %.0f us", most) : "",
                most > 0 ? BenchmarkResult.verdict(median <= most) : "-");
    }

    /** Returns the overhead and the model's own time, in microseconds. */
    private static double[][] once(ModelInstance invocation, int size, int runs) {
        double[] beyond = new double[runs];
        double[] own = new double[runs];
        try (Tensor in = Tensor.allocate("IN", DataType.FP32, Shape.of(size / 4))) {
            in.region().zero();
            for (int i = 0; i < runs; i++) {
                Timed request = new Timed(in);
                long begun = Clock.system().nanos();
                invocation.execute(List.of(request));
                long took = Clock.system().nanos() - begun;
                own[i] = request.own / 1e3;
                beyond[i] = took / 1e3 - own[i];
            }
        }
        return new double[][] {beyond, own};
    }

    /** Receives one response. Confined to one thread at a time. */
    private static final class Timed implements ModelRequest {
        private final InferenceRequest request;
        private long own;

        Timed(Tensor in) {
            request = new InferenceRequest(
                    ModelRef.latest("python"), "", List.of(in), List.of(), Map.of(), Long.MAX_VALUE, 0);
        }

        @Override
        public InferenceRequest request() {
            return request;
        }

        @Override
        public List<String> outputs() {
            return List.of("OUT");
        }

        @Override
        public boolean cancelled() {
            return false;
        }

        @Override
        public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
            complete(outputs, parameters);
        }

        @Override
        public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
            own = parameters.get("own") instanceof Long nanos ? nanos : 0;
            Tensor.closeAll(outputs);
        }

        @Override
        public void finish() {}

        @Override
        public void fail(ServingException e) {
            throw e;
        }

        @Override
        public void reschedule() {}
    }
}
