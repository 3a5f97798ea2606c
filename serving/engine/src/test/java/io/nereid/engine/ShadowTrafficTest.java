// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static org.assertj.core.api.Assertions.assertThat;

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
    private static final ModelRef STABLE = EngineRig.label("m", "stable");
    private static final VersionLabel SHADOWED =
            new VersionLabel(List.of(new WeightedVersion(1, 1)), List.of(new WeightedVersion(2, 1)));

    @TempDir
    Path root;

    private EngineRig rig;

    @BeforeEach
    void rig() throws Exception {
        rig = new EngineRig(root);
    }

    @AfterEach
    void everyModelIsClosed() {
        rig.close();
        assertThat(rig.backend.open).as("no handle is open").hasValue(0);
    }

    @Test
    void aShadowGetsACopyOfEachRequestAndItsAnswersAreOnlyMeasured() throws Exception {
        start("");
        for (int i = 0; i < 5; i++) {
            assertThat(rig.ask(STABLE)).isEqualTo(1);
        }
        rig.until(() -> successes(2) == 5);
        assertThat(rig.engine().metrics())
                .contains(
                        "nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"1\",shadow=\"false\"} 5\n")
                .contains(
                        "nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"2\",shadow=\"true\"} 5\n");
    }

    @Test
    void aTracedRequestIsTheExampleOfItsLabel() throws Exception {
        start("");
        String sample = "nereid_label_requests_total{model=\"m\",label=\"stable\",version=\"1\",shadow=\"false\"} ";
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        assertThat(openMetrics()).contains(sample + "1\n");
        assertThat(rig.ask(STABLE, new RecordingTrace(false))).isEqualTo(1);
        assertThat(openMetrics())
                .contains("# TYPE nereid_label_requests counter\n")
                .contains(sample + "2 # {trace_id=\"t1\"} 1\n");
        assertThat(rig.engine().metrics()).contains(sample + "2\n");
        rig.until(() -> successes(2) == 2);
    }

    private String openMetrics() {
        return MetricsWriter.page(MetricsFormat.OPENMETRICS, rig.engine()::writeMetrics);
    }

    @Test
    void requestsThatNameNoLabelHaveNoShadow() throws Exception {
        start("");
        assertThat(rig.ask(ModelRef.exact("m", 1))).isEqualTo(1);
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        rig.until(() -> successes(2) == 1);
        assertThat(rig.backend.runs).hasSize(3);
    }

    @Test
    void aFailingShadowDoesNotFailItsOriginal() throws Exception {
        start("failing");
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        rig.until(() -> rig.engine().statistics("m", 2).get(0).failure().count() == 1);
        assertThat(rig.ask(STABLE)).isEqualTo(1);
    }

    @Test
    void aStuckShadowDoesNotDelayOriginalsAndItsCopiesAreDroppedWhenItsQueueIsFull() throws Exception {
        rig.options.maxQueueSize(3);
        start("stuck");
        for (int i = 0; i < 20; i++) {
            assertThat(rig.ask(STABLE)).isEqualTo(1);
        }
        String dropped = "nereid_shadow_dropped_total{model=\"m\",label=\"stable\",version=\"2\",shadow=\"true\"} ";
        rig.until(() -> rig.engine().metrics().contains(dropped + "16\n"));
        rig.backend.open("m/2");
        rig.until(() -> successes(2) == 4);
    }

    @Test
    void copiesUnderWayAreBounded() throws Exception {
        start("stuck");
        for (int i = 0; i < ShadowTraffic.LIMIT + 10; i++) {
            assertThat(rig.ask(STABLE)).isEqualTo(1);
        }
        assertThat(rig.engine().metrics())
                .contains(
                        "nereid_shadow_dropped_total{model=\"m\",label=\"stable\",version=\"2\",shadow=\"true\"} 10\n");
        rig.backend.open("m/2");
        rig.until(() -> successes(2) == ShadowTraffic.LIMIT);
        assertThat(rig.ask(STABLE)).isEqualTo(1);
        rig.until(() -> successes(2) == ShadowTraffic.LIMIT + 1);
    }

    @Test
    void memoryOfModelsAndItsLimitAreShown() throws Exception {
        rig.options.memoryLimitBytes(1 << 20);
        start("");
        assertThat(rig.engine().metrics())
                .contains("nereid_memory_limit_bytes 1048576\n")
                .contains("nereid_memory_reserved_bytes 2000\n")
                .contains("nereid_model_memory_bytes{model=\"m\",version=\"2\"} 1000\n");
    }

    private void start(String words) throws Exception {
        rig.version("m", 1, "");
        rig.version("m", 2, words);
        Files.writeString(root.resolve("models/m/config.pbtxt"), "backend: \"puppet\" max_batch_size: 1");
        rig.options.servedModels(List.of(rig.served("m", Map.of("stable", SHADOWED), 1L, 2L)));
        rig.start();
        rig.until(() -> !rig.engine().index().get(0).labels().isEmpty());
    }

    private long successes(long version) {
        return rig.engine().statistics("m", version).get(0).success().count();
    }
}
