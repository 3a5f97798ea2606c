// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelMetric.Kind;
import io.nereid.backend.ModelMetric.Sample;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeClock;
import io.nereid.engine.FakeModel;
import io.nereid.engine.cache.Hash128;
import io.nereid.engine.cache.ResponseCache;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.engine.servable.Client;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.servable.ModelServable;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EngineMetricsTest {
    private static final long MS = 1_000_000;
    private static final Pattern HEAD = Pattern.compile("# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
    private static final Pattern SAMPLE = Pattern.compile(
            "([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{([a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\\\\n]|\\\\[\\\\n\"])*\",?)*\\})? (\\S+)");

    private final FakeClock clock = new FakeClock();
    private final DeviceExecutor pool = new DeviceExecutor("test", 1, clock);
    private final CountedTensors tensors = new CountedTensors();

    @TempDir
    Path proc;

    @AfterEach
    void nothingIsLeft() {
        pool.close();
        tensors.assertAllFreed();
    }

    @Test
    void everyFamilyOfTritonIsThereAfterOneRequest() throws Exception {
        MetricsOptions options = MetricsOptions.DEFAULT.withHost(false);
        ModelServable servable = used(options, config("m"));
        servable.loadNanos(1_500 * MS);
        Map<String, Double> samples = parse(page(servable, options));
        String labels = "{model=\"m\",version=\"1\"}";
        assertThat(samples)
                .containsEntry("nv_inference_request_success" + labels, 1.0)
                .containsEntry("nv_inference_count" + labels, 2.0)
                .containsEntry("nv_inference_exec_count" + labels, 1.0)
                .containsEntry("nv_inference_request_duration_us" + labels, 200_000.0)
                .containsEntry("nv_inference_queue_duration_us" + labels, 0.0)
                .containsEntry("nv_inference_compute_input_duration_us" + labels, 0.0)
                .containsEntry("nv_inference_compute_infer_duration_us" + labels, 200_000.0)
                .containsEntry("nv_inference_compute_output_duration_us" + labels, 0.0)
                .containsEntry("nv_inference_pending_request_count" + labels, 0.0)
                .containsEntry("nv_model_load_duration_secs" + labels, 1.5)
                .containsEntry("nereid_inference_in_flight" + labels, 0.0)
                .containsEntry("nereid_batch_size_bucket{model=\"m\",version=\"1\",le=\"1\"}", 0.0)
                .containsEntry("nereid_batch_size_bucket{model=\"m\",version=\"1\",le=\"2\"}", 1.0)
                .containsEntry("nereid_batch_size_sum" + labels, 2.0)
                .containsEntry("nereid_compute_duration_seconds_bucket{model=\"m\",version=\"1\",le=\"0.1\"}", 0.0)
                .containsEntry("nereid_compute_duration_seconds_bucket{model=\"m\",version=\"1\",le=\"0.25\"}", 1.0);
        for (String reason : List.of("REJECTED", "CANCELED", "BACKEND", "OTHER")) {
            assertThat(samples)
                    .containsEntry(
                            "nv_inference_request_failure{model=\"m\",reason=\"" + reason + "\",version=\"1\"}", 0.0);
        }
        double cuts = 0;
        for (BatchCloseReason cut : BatchCloseReason.values()) {
            cuts += samples.get("nereid_batch_cut{model=\"m\",version=\"1\",reason=\""
                    + cut.name().toLowerCase(java.util.Locale.ROOT) + "\"}");
        }
        assertThat(cuts).isEqualTo(1);
        assertThat(samples.keySet())
                .as("metrics that are not enabled")
                .noneMatch(s -> s.contains("summary")
                        || s.contains("first_response")
                        || s.contains("nv_cache")
                        || s.contains("nv_cpu"));
        servable.unload();
    }

    @Test
    void latenciesAreShownInTheFormsThatWereAskedFor() throws Exception {
        MetricsOptions options = MetricsOptions.DEFAULT
                .withHost(false)
                .with("counter_latencies", "false")
                .with("histogram_latencies", "true")
                .with("summary_latencies", "true")
                .with("summary_quantiles", "0.5:0.05,0.75:0.01");
        ModelServable servable = used(options, config("m"));
        ModelConfig own = config("m").toBuilder()
                .histogramBuckets(Map.of("nv_inference_first_response_histogram_ms", List.of(150.0, 250.5)))
                .build();
        ModelServable other = used(options, own);
        Map<String, Double> samples = parse(page(servable, options));
        String bucket = "nv_inference_first_response_histogram_ms_bucket{model=\"m\",version=\"1\",le=\"";
        assertThat(samples)
                .containsEntry(bucket + "100\"}", 0.0)
                .containsEntry(bucket + "500\"}", 1.0)
                .containsEntry(bucket + "2000\"}", 1.0)
                .containsEntry(bucket + "5000\"}", 1.0)
                .containsEntry(bucket + "+Inf\"}", 1.0)
                .containsEntry("nv_inference_first_response_histogram_ms_sum{model=\"m\",version=\"1\"}", 200.0)
                .containsEntry("nv_inference_request_summary_us_count{model=\"m\",version=\"1\"}", 1.0)
                .containsEntry("nv_inference_request_summary_us_sum{model=\"m\",version=\"1\"}", 200_000.0)
                .containsEntry("nv_inference_queue_summary_us{model=\"m\",version=\"1\",quantile=\"0.5\"}", 0.0);
        assertThat(samples.get("nv_inference_compute_infer_summary_us{model=\"m\",version=\"1\",quantile=\"0.75\"}"))
                .isBetween(194_000.0, 206_000.0);
        assertThat(samples.keySet()).noneMatch(s -> s.contains("duration_us"));
        assertThat(parse(page(other, options)))
                .containsEntry(bucket + "150\"}", 0.0)
                .containsEntry(bucket + "250.5\"}", 1.0)
                .doesNotContainKey(bucket + "100\"}");
        servable.unload();
        other.unload();
    }

    @Test
    void whatIsDoneForALatencyObjectiveIsShown() throws Exception {
        MetricsOptions options = MetricsOptions.DEFAULT.withHost(false);
        ModelServable plain = used(options, config("m"));
        assertThat(parse(page(plain, options)).keySet()).noneMatch(s -> s.startsWith("nereid_slo"));
        plain.unload();
        ModelServable servable = used(
                options,
                config("m").toBuilder().parameters(Map.of("slo", "p95=300ms")).build());
        String labels = "{model=\"m\",version=\"1\",percentile=\"p95\"}";
        assertThat(parse(page(servable, options)))
                .containsEntry("nereid_slo_objective_seconds" + labels, 0.3)
                .containsEntry("nereid_slo_latency_seconds" + labels, 0.0)
                .containsEntry("nereid_slo_queue_delay_seconds" + labels, 0.0)
                .containsEntry("nereid_slo_batch_rows" + labels, 8.0)
                .containsEntry("nereid_slo_instances" + labels, 1.0)
                .containsEntry("nereid_slo_planned_ratio" + labels, 0.9)
                .containsEntry("nereid_slo_refused_total" + labels, 0.0)
                .containsEntry("nereid_slo_changes_total" + labels, 0.0);
        servable.unload();
    }

    @Test
    void tagsBecomeLabelsAndNothingInThemBreaksThePage() throws Exception {
        Map<String, String> tags = new LinkedHashMap<>();
        tags.put("team", "a \"b\" \\ \n c");
        tags.put("cost-centre", "7");
        tags.put("cost.centre", "8");
        ModelServable servable = used(
                MetricsOptions.DEFAULT, config("m").toBuilder().metricTags(tags).build());
        Map<String, Double> samples = parse(page(servable, MetricsOptions.DEFAULT));
        assertThat(samples)
                .containsEntry(
                        "nv_inference_count{model=\"m\",version=\"1\",_team=\"a \\\"b\\\" \\\\ \\n"
                                + " c\",_cost_centre=\"7\"}",
                        2.0);
        servable.unload();
    }

    @Test
    void cacheMetricsAreShownOnlyForModelsWithACache() throws Exception {
        MetricsOptions options = MetricsOptions.DEFAULT.with("summary_latencies", "true");
        ModelServable with =
                used(options, config("with").toBuilder().responseCache(true).build());
        ModelServable without = used(options, config("without"));
        with.cache(ResponseCache.local(1 << 20, Hash128.seeded(1), clock)
                .of(with.metadata().id(), with.config(), "f", n -> {}));
        with.statistics().cached(clock.nanos(), "", 9_000, 4_000, 1);
        with.statistics().cacheMissed(6_000);
        Map<String, Double> samples = parse(
                page(List.of(with, without), options, new HostMetrics(proc), Map.of("entries", 3L, "odd name", 4L)));
        String labels = "{model=\"with\",version=\"1\"}";
        assertThat(samples)
                .containsEntry("nv_cache_num_hits_per_model" + labels, 1.0)
                .containsEntry("nv_cache_num_misses_per_model" + labels, 1.0)
                .containsEntry("nv_cache_hit_duration_per_model" + labels, 4.0)
                .containsEntry("nv_cache_miss_duration_per_model" + labels, 6.0)
                .containsEntry("nv_cache_hit_summary_per_model_count" + labels, 1.0)
                .containsEntry("nereid_cache_entries", 3.0)
                .containsEntry("nereid_cache_odd_name", 4.0)
                .containsEntry("nv_inference_request_success" + labels, 2.0)
                .containsEntry("nv_inference_count" + labels, 2.0);
        assertThat(samples.keySet())
                .noneMatch(s -> s.startsWith("nv_cache") && s.contains("without"))
                .as("cache hits would lower it")
                .noneMatch(s -> s.startsWith("nv_inference_request_summary") && s.contains("\"with\""));
        with.unload();
        without.unload();
    }

    @Test
    void theMachineIsReadFromProc() throws IOException {
        HostMetrics host = new HostMetrics(proc);
        assertThat(parse(page(List.of(), MetricsOptions.DEFAULT, host, Map.of())))
                .as("no metric where /proc is missing")
                .isEmpty();
        stat("cpu  100 0 100 800 0 0 0 0 0 0");
        Files.writeString(proc.resolve("meminfo"), "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable:  400 kB\n");
        HostMetrics.Reading first = host.read();
        assertThat(first.totalBytes()).isEqualTo(1_024_000);
        assertThat(first.usedBytes()).isEqualTo(614_400);
        stat("cpu  130 0 120 840 10 0 0 0 0 0");
        assertThat(host.read().busy()).isEqualTo(0.5);
        assertThat(host.read().busy()).as("no time has passed").isEqualTo(0.5);
        Map<String, Double> samples = parse(page(List.of(), MetricsOptions.DEFAULT, host, Map.of()));
        assertThat(samples)
                .containsEntry("nv_cpu_utilization", 0.5)
                .containsEntry("nv_cpu_memory_used_bytes", 614_400.0);
    }

    @Test
    void invalidSettingsAreRejected() {
        rejected("latencies", "true", "metrics setting 'latencies' is unknown");
        rejected("counter_latencies", "yes", "metrics setting 'counter_latencies' is 'yes'");
        rejected("summary_quantiles", "0.5:0.05,2:0.1", "metrics setting 'summary_quantiles' has '2:0.1'");
        rejected("summary_quantiles", "half", "metrics setting 'summary_quantiles' has 'half'");
        rejected("summary_quantiles", "0.1:0.1:0.1", "metrics setting 'summary_quantiles' has '0.1:0.1:0.1'");
    }

    private static void rejected(String name, String value, String text) {
        assertThatThrownBy(() -> MetricsOptions.DEFAULT.with(name, value))
                .hasMessageStartingWith(text)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    private void stat(String line) throws IOException {
        Files.writeString(proc.resolve("stat"), line + "\ncpu0 1 1 1 1\n");
    }

    /** A version with statistics of its own. */
    private static EngineServable counting(String name, ModelMetric... metrics) {
        return new EngineServable(new ServableId(name, 1), config(name)) {
            @Override
            public List<ModelMetric> metrics() {
                return List.of(metrics);
            }

            @Override
            public long memoryBytes() {
                return 0;
            }

            @Override
            public void submit(InferenceJob job) {
                throw new IllegalStateException("not asked");
            }

            @Override
            public int queued() {
                return 0;
            }

            @Override
            public void unload() {}
        };
    }

    @Test
    void metricsOfTheModelsAreWrittenToo() {
        Map<String, String> quoted = Map.of("kind", "a \"quoted\"\none");
        ModelMetric asked = new ModelMetric(
                "asked_total", Kind.COUNTER, "Asked\nfor", List.of(new Sample(Map.of("what", "x"), 2.5)));
        ModelMetric times = new ModelMetric(
                "time_seconds",
                Kind.HISTOGRAM,
                "How long",
                List.of(new Sample(quoted, 100.65, new double[] {0.1, 1}, new long[] {2, 2, 1})));
        ModelMetric level = new ModelMetric("level", Kind.GAUGE, "Level", List.of(new Sample(Map.of(), 7)));
        ModelMetric other = new ModelMetric("level", Kind.COUNTER, "Another", List.of(new Sample(Map.of(), 1)));
        MetricsOptions options = MetricsOptions.DEFAULT.withHost(false);
        String page = page(
                List.of(counting("a", asked, times, level), counting("b", asked, times, other)),
                options,
                new HostMetrics(proc),
                Map.of());
        assertThat(parse(page))
                .containsEntry("asked_total{what=\"x\"}", 5.0)
                .containsEntry("level", 7.0)
                .containsEntry("time_seconds_bucket{kind=\"a \\\"quoted\\\"\\none\",le=\"0.1\"}", 4.0)
                .containsEntry("time_seconds_bucket{kind=\"a \\\"quoted\\\"\\none\",le=\"1\"}", 8.0)
                .containsEntry("time_seconds_bucket{kind=\"a \\\"quoted\\\"\\none\",le=\"+Inf\"}", 10.0)
                .containsEntry("time_seconds_sum{kind=\"a \\\"quoted\\\"\\none\"}", 201.3)
                .containsEntry("time_seconds_count{kind=\"a \\\"quoted\\\"\\none\"}", 10.0);
        assertThat(page).contains("# HELP asked_total Asked\\nfor\n# TYPE asked_total counter\n");
    }

    private String page(ModelServable servable, MetricsOptions options) {
        return page(List.of(servable), options, new HostMetrics(proc), Map.of());
    }

    private static String page(
            List<EngineServable> servables, MetricsOptions options, HostMetrics host, Map<String, Long> cache) {
        return MetricsWriter.page(
                MetricsFormat.TEXT, page -> new EngineMetrics(page, servables, options).write(host, cache));
    }

    /** A model that has served one request of two rows, which took 200 ms. */
    private ModelServable used(MetricsOptions options, ModelConfig config) throws InterruptedException {
        FakeModel model = new FakeModel(config, ModelTraits.DEFAULT, (in, out) -> {
            clock.advance(200 * MS);
            return FakeModel.identity(in, out);
        });
        ServableId id = new ServableId(config.name(), 1);
        ModelServable servable = ModelServable.of(
                id,
                model,
                config,
                new ModelStatistics(id, config, options, clock),
                pool,
                SchedulerOptions.DEFAULT,
                InitialStateFiles.NONE,
                clock);
        Client client = new Client(servable, clock);
        client.send(List.of(tensors.ints("IN", Shape.of(2, 1), 1, 2)));
        assertThat(client.nextText()).isEqualTo("OUT 1 2.");
        return servable;
    }

    private static ModelConfig config(String name) {
        return ModelConfig.unspecified(name)
                .completed(
                        "fake",
                        "fake",
                        8,
                        List.of(new TensorSpec("IN", DataType.INT32, Shape.of(1))),
                        List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(1))),
                        new DynamicBatching(List.of(), Duration.ZERO, false),
                        1);
    }

    /** The samples by name and labels. Checks the rules of the format. */
    private static Map<String, Double> parse(String page) {
        assertThat(page.isEmpty() || page.endsWith("\n")).isTrue();
        Map<String, Double> samples = new LinkedHashMap<>();
        Set<String> finished = new HashSet<>();
        List<String> helped = new ArrayList<>();
        String family = "";
        String type = "";
        for (String line : page.isEmpty() ? new String[0] : page.split("\n")) {
            Matcher head = HEAD.matcher(line);
            if (head.matches()) {
                if (head.group(1).equals("HELP")) {
                    assertThat(helped).as("a family occurs once").doesNotContain(head.group(2));
                    helped.add(head.group(2));
                    finished.add(family);
                    family = head.group(2);
                } else {
                    assertThat(head.group(2)).isEqualTo(family);
                    type = head.group(3);
                    assertThat(type).isIn("counter", "gauge", "histogram", "summary");
                }
                continue;
            }
            Matcher sample = SAMPLE.matcher(line);
            assertThat(sample.matches()).as(line).isTrue();
            String name = sample.group(1);
            assertThat(finished).as("samples follow their family").doesNotContain(name);
            boolean part = name.equals(family)
                    || (type.equals("histogram") && name.matches(family + "_(bucket|sum|count)"))
                    || (type.equals("summary") && name.matches(family + "_(sum|count)"));
            assertThat(part).as(line + " in " + family).isTrue();
            String labels = sample.group(2) == null ? "" : sample.group(2);
            Set<String> names = new HashSet<>();
            Matcher label = Pattern.compile("([a-zA-Z_][a-zA-Z0-9_]*)=\"").matcher(labels);
            while (label.find()) {
                assertThat(names.add(label.group(1)))
                        .as("a label occurs once: " + line)
                        .isTrue();
            }
            Double before = samples.put(name + labels, Double.valueOf(sample.group(5)));
            assertThat(before).as("a sample occurs once: " + line).isNull();
        }
        return samples;
    }
}
