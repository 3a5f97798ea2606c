// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelMetric.Kind;
import io.nereid.backend.ModelMetric.Sample;
import io.nereid.base.Clock;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Custom metrics of models, and their {@code is_ready}. */
class MetricsAndReadinessTest {
    @TempDir
    Path directory;

    private BackendModel model;
    private ModelInstance first;
    private ModelInstance second;

    @BeforeAll
    static void python() {
        Interpreter.assumePython();
    }

    @BeforeEach
    void load() {
        model = new PythonBackend()
                .load(
                        Fixtures.copied("counting", directory),
                        ModelConfig.builder("counting").instances(2).build(),
                        new BackendContext(2, directory, Map.of("python", Interpreter.path())));
        first = model.newInstance();
        second = model.newInstance();
    }

    @AfterEach
    void unload() {
        first.close();
        second.close();
        model.close();
    }

    private static String said(ModelInstance invocation, String what) {
        try (RecordingModelRequest request =
                new RecordingModelRequest(List.of(MoodyModelTest.text("WHAT", what)), List.of("SAID"))) {
            invocation.execute(List.of(request));
            assertThat(request.failure()).isNull();
            Tensor t = request.answers().get(0).outputs().get(0);
            byte[] bytes = new byte[t.byteLength() - 4];
            t.buffer().position(4).get(bytes);
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    private ModelMetric metric(String name) {
        return model.metrics().stream()
                .filter(m -> m.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private double asked(String what) {
        return metric("asked_total").samples().stream()
                .filter(s -> what.equals(s.labels().get("what")))
                .findFirst()
                .orElseThrow()
                .value();
    }

    @Test
    void instancesCountTogether() {
        assertThat(asked("count")).isZero();
        said(first, "count 2.5");
        said(second, "count 4");
        assertThat(asked("count")).isEqualTo(6.5);
        assertThat(said(second, "value")).isEqualTo("6.5");
        assertThat(metric("asked_total").kind()).isEqualTo(Kind.COUNTER);
        assertThat(metric("asked_total").help()).isEqualTo("Requests, by what they asked");
        assertThat(metric("asked_total").samples().get(0).labels()).containsEntry("model", "counting");
        assertThat(asked("bad")).isZero();
    }

    @Test
    void gaugesAreSetAndHistogramsObserve() {
        assertThat(said(first, "level 7.5")).isEqualTo("6.5");
        assertThat(metric("level").samples()).extracting(Sample::value).containsExactly(6.5);
        said(first, "time 0.05 0.5 0.1 99");
        said(second, "time 1");
        Sample times = metric("time_seconds").samples().get(0);
        assertThat(times.bounds()).containsExactly(0.1, 1, 10);
        assertThat(times.counts()).containsExactly(2, 2, 0, 1);
        assertThat(times.value()).isEqualTo(100.65);
    }

    @Test
    void whatMakesNoSenseIsRefusedInTheModel() {
        assertThat(said(first, "count -1")).contains("'asked_total' is a COUNTER, which only grows");
        assertThat(said(first, "count nan")).contains("cannot become nan");
        assertThat(said(first, "again")).isEqualTo("done");
        assertThat(said(first, "eval pb_utils.MetricFamily('asked_total', 'other', 0)"))
                .contains("'asked_total' exists already");
        assertThat(said(first, "eval pb_utils.MetricFamily('nv_inference_count', '', 0)"))
                .contains("'nv_inference_count'");
        assertThat(said(first, "eval pb_utils.MetricFamily('a b', '', 0)")).contains("'a b'");
        assertThat(said(first, "eval pb_utils.MetricFamily('x', '', 7)")).contains("kind 7");
        assertThat(said(first, "eval pb_utils.MetricFamily('y', '', 2).Metric()"))
                .contains("needs buckets");
        assertThat(said(first, "eval pb_utils.MetricFamily('y', '', 2).Metric(buckets=[2, 1])"))
                .contains("do not ascend");
        assertThat(said(first, "eval pb_utils.MetricFamily('z', '', 1).Metric({'le': 1})"))
                .contains("'le'");
        assertThat(said(first, "eval self._level.observe(1)")).contains("is a GAUGE, which has no observe");
        assertThat(said(first, "eval self._times.value()")).contains("no single value");
        assertThat(asked("count")).isZero();
    }

    @Test
    void countsOutliveAProcess() throws Exception {
        said(first, "count 3");
        try (RecordingModelRequest request =
                new RecordingModelRequest(List.of(MoodyModelTest.text("WHAT", "die")), List.of("SAID"))) {
            first.execute(List.of(request));
            assertThat(request.failure()).isNotNull();
        }
        assertThat(asked("count")).isEqualTo(3);
        said(second, "count 1");
        assertThat(asked("count")).isEqualTo(4);
    }

    @Test
    void aModelThatSaysItIsNotReadyIsNot() throws Exception {
        assertThat(model.ready()).isTrue();
        said(second, "ready no");
        await(false);
        said(second, "ready yes");
        await(true);
        said(first, "ready broken");
        await(false);
        said(first, "ready yes");
        await(true);
    }

    private void await(boolean ready) throws InterruptedException {
        Clock clock = Clock.system();
        long until = clock.nanos() + Duration.ofSeconds(20).toNanos();
        Object lock = new Object();
        while (model.ready() != ready && clock.nanos() < until) {
            synchronized (lock) {
                lock.wait(50);
            }
        }
        assertThat(model.ready()).isEqualTo(ready);
    }
}
