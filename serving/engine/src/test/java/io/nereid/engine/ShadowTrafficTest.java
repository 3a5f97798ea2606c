// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.engine.servable.ShadowTraffic;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.spi.ModelRef;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ShadowTrafficTest {
    private static final ModelRef STABLE = EngineFixture.label("m", "stable");
    private static final VersionLabel SHADOWED =
            new VersionLabel(List.of(new WeightedVersion(1, 1)), List.of(new WeightedVersion(2, 1)));

    @TempDir
    Path root;

    private EngineFixture fixture;

    @BeforeEach
    void fixture() throws Exception {
        fixture = new EngineFixture(root);
    }

    @AfterEach
    void everyModelIsClosed() {
        fixture.close();
        assertThat(fixture.backend.open).as("no handle is open").hasValue(0);
    }

    @Test
    void aShadowGetsACopyOfEachRequestAndItsAnswersAreOnlyMeasured() throws Exception {
        start("");
        for (int i = 0; i < 5; i++) {
            assertThat(fixture.ask(STABLE)).isEqualTo(1);
        }
        fixture.until(() -> successes(2) == 5);
        assertThat(fixture.engine().metrics())
                .contains(
                        "nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"1\",shadow=\"false\"} 5\n")
                .contains(
                        "nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"2\",shadow=\"true\"} 5\n");
    }

    @Test
    void aTracedRequestIsTheExampleOfItsLabel() throws Exception {
        start("");
        String sample = "nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"1\",shadow=\"false\"} ";
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        assertThat(openMetrics()).contains(sample + "1\n");
        assertThat(fixture.ask(STABLE, new RecordingTrace(false))).isEqualTo(1);
        assertThat(openMetrics())
                .contains("# TYPE nereid_label_requests counter\n")
                .contains(sample + "2 # {trace_id=\"t1\"} 1\n");
        assertThat(fixture.engine().metrics()).contains(sample + "2\n");
        fixture.until(() -> successes(2) == 2);
    }

    private String openMetrics() {
        return MetricsWriter.page(MetricsFormat.OPENMETRICS, fixture.engine()::writeMetrics);
    }

    @Test
    void requestsThatNameNoLabelHaveNoShadow() throws Exception {
        start("");
        assertThat(fixture.ask(ModelRef.exact("m", 1))).isEqualTo(1);
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        fixture.until(() -> successes(2) == 1);
        assertThat(fixture.backend.runs).hasSize(3);
    }

    @Test
    void aFailingShadowDoesNotFailItsOriginal() throws Exception {
        start("failing");
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        fixture.until(() -> fixture.engine().statistics("m", 2).get(0).failure().count() == 1);
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aStuckShadowDoesNotDelayOriginalsAndItsCopiesAreDroppedWhenItsQueueIsFull() throws Exception {
        fixture.options.maxQueueSize(3);
        start("stuck");
        for (int i = 0; i < 20; i++) {
            assertThat(fixture.ask(STABLE)).isEqualTo(1);
        }
        String dropped = "nereid_shadow_dropped_total{model=\"m\",label=\"stable\",version=\"2\",shadow=\"true\"} ";
        fixture.until(() -> fixture.engine().metrics().contains(dropped + "16\n"));
        fixture.backend.open("m/2");
        fixture.until(() -> successes(2) == 4);
    }

    @Test
    void copiesUnderWayAreBounded() throws Exception {
        start("stuck");
        for (int i = 0; i < ShadowTraffic.LIMIT + 10; i++) {
            assertThat(fixture.ask(STABLE)).isEqualTo(1);
        }
        assertThat(fixture.engine().metrics())
                .contains(
                        "nereid_shadow_dropped_total{model=\"m\",label=\"stable\",version=\"2\",shadow=\"true\"} 10\n");
        fixture.backend.open("m/2");
        fixture.until(() -> successes(2) == ShadowTraffic.LIMIT);
        assertThat(fixture.ask(STABLE)).isEqualTo(1);
        fixture.until(() -> successes(2) == ShadowTraffic.LIMIT + 1);
    }

    @Test
    void memoryOfModelsAndItsLimitAreShown() throws Exception {
        fixture.options.memoryLimitBytes(1 << 20);
        start("");
        assertThat(fixture.engine().metrics())
                .contains("nereid_memory_limit_bytes 1048576\n")
                .contains("nereid_memory_reserved_bytes 2000\n")
                .contains("nereid_model_memory_bytes{model=\"m\",version=\"2\"} 1000\n");
    }

    private void start(String words) throws Exception {
        fixture.version("m", 1, "");
        fixture.version("m", 2, words);
        Files.writeString(root.resolve("models/m/config.pbtxt"), "backend: \"puppet\" max_batch_size: 1");
        fixture.options.servedModels(List.of(fixture.served("m", Map.of("stable", SHADOWED), 1L, 2L)));
        fixture.start();
        fixture.until(() -> !fixture.engine().index().get(0).labels().isEmpty());
    }

    private long successes(long version) {
        return fixture.engine().statistics("m", version).get(0).success().count();
    }
}
