// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

final class ScalingSettingsTest {
    private static final String PREFIX = "autoscaling.knative.dev/";

    private static Map<String, String> map(String... pairs) {
        Map<String, String> map = new LinkedHashMap<>();
        for (String pair : pairs) {
            int at = pair.indexOf('=');
            map.put(pair.substring(0, at), pair.substring(at + 1));
        }
        return map;
    }

    private static ScalingSettings of(String... annotations) {
        return ScalingSettings.of(0, 0, "concurrency", null, 0, map(annotations));
    }

    private static ScalingSettings config(String... config) {
        return ScalingSettings.of(map(config), 0, 0, "concurrency", null, 0, Map.of());
    }

    @Test
    void theDefaultsAreKnatives() {
        TestSettings expected = TestSettings.defaults();
        assertThat(of()).isEqualTo(expected.build());
    }

    private record Target(
            String metric,
            @Nullable Double given,
            int containerConcurrency,
            String config,
            String annotations,
            double target,
            double total) {}

    private static Stream<Target> targets() {
        String eighty = "container-concurrency-target-percentage=80";
        String all = "container-concurrency-target-percentage=100";
        return Stream.of(
                new Target("concurrency", null, 0, all, "", 100, 100),
                new Target("concurrency", null, 0, eighty, "", 80, 100),
                new Target("concurrency", null, 0, "", "", 70, 100),
                new Target(
                        "concurrency",
                        null,
                        0,
                        "container-concurrency-target-percentage=0.3 container-concurrency-target-default=2",
                        "",
                        0.6,
                        2),
                new Target("concurrency", null, 12, eighty, "target-utilization-percentage=75", 9, 12),
                new Target("concurrency", null, 10, eighty, "", 8, 10),
                new Target("concurrency", null, 1, eighty, "", 0.8, 1),
                new Target("concurrency", null, 1, all, "", 1, 1),
                new Target("concurrency", null, 0, all, "target=1", 1, 1),
                new Target(
                        "concurrency", null, 0, "container-concurrency-target-percentage=0.001", "target=1", 0.01, 1),
                new Target("concurrency", null, 0, "container-concurrency-target-percentage=75", "target=10", 7.5, 10),
                new Target("concurrency", null, 10, all, "target=1", 1, 1),
                new Target("concurrency", null, 0, all, "target=500", 500, 500),
                new Target("concurrency", null, 1, all, "target=10", 1, 1),
                new Target("concurrency", 10.0, 0, "", "", 7, 10),
                new Target("concurrency", 10.0, 0, "", "target=3", 7, 10),
                new Target("concurrency", 10.0, 4, "", "", 2.8, 4),
                new Target("rps", null, 1, all, "", 140, 200),
                new Target("rps", null, 0, "", "target=1", 0.7, 1),
                new Target("rps", null, 0, "", "target-utilization-percentage=75", 150, 200),
                new Target("rps", null, 0, "", "target=300", 210, 300),
                new Target("rps", null, 0, "requests-per-second-target-default=10", "", 7, 10),
                new Target("concurrency", null, 0, "", "metric=rps", 140, 200));
    }

    @ParameterizedTest
    @MethodSource("targets")
    void theTargetIsTheTotalTimesTheUtilisation(Target t) {
        ScalingSettings settings = ScalingSettings.of(
                map(words(t.config)), 0, 0, t.metric, t.given, t.containerConcurrency, map(words(t.annotations)));
        assertThat(settings.target()).isCloseTo(t.target, within(1e-9));
        assertThat(settings.total()).isCloseTo(t.total, within(1e-9));
    }

    private static String[] words(String text) {
        return Arrays.stream(text.split(" ")).filter(w -> !w.isEmpty()).toArray(String[]::new);
    }

    @Test
    void namesMayHaveThePrefixAndBothSpellings() {
        assertThat(of(PREFIX + "target-burst-capacity=5").targetBurstCapacity()).isEqualTo(5);
        assertThat(of(PREFIX + "targetBurstCapacity=5").targetBurstCapacity()).isEqualTo(5);
        assertThat(of("targetBurstCapacity=5").targetBurstCapacity()).isEqualTo(5);
        assertThat(of("target-burst-capacity=6", "targetBurstCapacity=5").targetBurstCapacity())
                .isEqualTo(6);
        assertThat(of("targetBurstCapacity=5", PREFIX + "target-burst-capacity=6")
                        .targetBurstCapacity())
                .isEqualTo(6);
    }

    @Test
    void everyAnnotationIsHonoured() {
        ScalingSettings settings = ScalingSettings.of(
                1,
                9,
                "concurrency",
                null,
                0,
                map(
                        "class=kpa.autoscaling.knative.dev",
                        "metric=rps",
                        "target=50",
                        "target-utilization-percentage=80",
                        "target-burst-capacity=-1",
                        "window=1984s",
                        "panic-window-percentage=75",
                        "panic-threshold-percentage=125",
                        "scale-to-zero-pod-retention-period=21m31s",
                        "scale-down-delay=15m",
                        "initial-scale=3",
                        "activation-scale=4",
                        "metric-aggregation-algorithm=weightedExponential",
                        "serving.knative.dev/progress-deadline=5s"));
        TestSettings expected = TestSettings.defaults();
        expected.min = 1;
        expected.max = 9;
        expected.metric = ScalingSettings.Metric.RPS;
        expected.target = 40;
        expected.total = 50;
        expected.burst = -1;
        expected.window = Duration.ofSeconds(1984);
        expected.panicWindow = Duration.ofSeconds(1488);
        expected.panicThreshold = 1.25;
        expected.retention = Duration.ofSeconds(21 * 60 + 31);
        expected.delay = Duration.ofMinutes(15);
        expected.initial = 3;
        expected.activation = 4;
        expected.aggregation = TimeWindow.Aggregation.WEIGHTED_EXPONENTIAL;
        expected.deadline = Duration.ofSeconds(5);
        assertThat(settings).isEqualTo(expected.build());
    }

    @Test
    void theServersOwnDefaultsAreHonoured() {
        ScalingSettings settings = config(
                "max-scale-up-rate=1.001",
                "max-scale-down-rate=3",
                "enable-scale-to-zero=FALSE",
                "scale-to-zero-grace-period=33s",
                "scale-to-zero-pod-retention-period=2m3s",
                "scale-down-delay=15m",
                "stable-window=5m",
                "activator-capacity=905",
                "target-burst-capacity=0",
                "allow-zero-initial-scale=true",
                "initial-scale=0");
        TestSettings expected = TestSettings.defaults();
        expected.up = 1.001;
        expected.down = 3;
        expected.toZero = false;
        expected.grace = Duration.ofSeconds(33);
        expected.retention = Duration.ofSeconds(123);
        expected.delay = Duration.ofMinutes(15);
        expected.window = Duration.ofMinutes(5);
        expected.panicWindow = Duration.ofSeconds(30);
        expected.activatorCapacity = 905;
        expected.burst = 0;
        expected.initial = 0;
        assertThat(settings).isEqualTo(expected.build());
    }

    @Test
    void thePanicWindowIsAtLeastASecond() {
        assertThat(of("window=6s", "panic-window-percentage=1").panicWindow()).isEqualTo(Duration.ofSeconds(1));
        assertThat(of("window=15s", "panic-window-percentage=10").panicWindow()).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void theFirstScaleIsTheMaximumAtMost() {
        assertThat(ScalingSettings.of(0, 2, "concurrency", null, 0, Map.of("initial-scale", "5"))
                        .initialScale())
                .isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "class=hpa.autoscaling.knative.dev | class is 'hpa.autoscaling.knative.dev'",
                "min-scale=-1                   | min-scale is '-1'",
                "max-scale=2147483648           | max-scale is '2147483648'",
                "min-scale=foo                  | min-scale is 'foo'",
                "metric=cpu                     | metric is 'cpu' (expected concurrency or rps)",
                "target=-11                     | target is '-11' (expected a number of 0.01 or more)",
                "target=0                       | target is '0'",
                "target=100}                    | target is '100}'",
                "target=NaN                     | target is 'NaN'",
                "target=Infinity                | target is 'Infinity'",
                "target=1e999                   | target is '1e999'",
                "target-burst-capacity=-11      | target-burst-capacity is '-11'",
                "target-burst-capacity=qarashen | target-burst-capacity is 'qarashen'",
                "target-utilization-percentage=0   | expected a number of 1 to 100",
                "target-utilization-percentage=101 | expected a number of 1 to 100",
                "panic-window-percentage=-1     | expected a number of 1 to 100",
                "panic-window-percentage=202    | expected a number of 1 to 100",
                "panic-window-percentage=fifty  | panic-window-percentage is 'fifty'",
                "panic-threshold-percentage=109 | expected a number of 110 to 1000",
                "panic-threshold-percentage=10009 | expected a number of 110 to 1000",
                "window=jerry                   | window is 'jerry'",
                "window=1s                      | expected a duration of 6s to 1h0m0s",
                "window=365h                    | expected a duration of 6s to 1h0m0s",
                "window=1m9s82ms                | expected whole seconds",
                "window=99999999999999999999h   | window is",
                "scale-to-zero-pod-retention-period=311m | expected a duration of 0s to 1h0m0s",
                "scale-to-zero-pod-retention-period=-42s | expected a duration of 0s to 1h0m0s",
                "scale-down-delay=42.5s         | scale-down-delay is '42.5s' (expected whole seconds)",
                "scale-down-delay=-42s          | expected a duration of 0s to 1h0m0s",
                "initial-scale=0                | initial-scale is '0'",
                "initial-scale=-1               | initial-scale is '-1'",
                "initial-scale=invalid          | initial-scale is 'invalid'",
                "activation-scale=1             | activation-scale is '1' (expected 2 or more)",
                "activation-scale=foo           | activation-scale is 'foo'",
                "metric-aggregation-algorithm=random | metric-aggregation-algorithm is 'random'"
            })
    void invalidAnnotationsAreRejected(String annotation, String message) {
        assertThatThrownBy(() -> of(annotation)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).contains(message).doesNotContain("\n");
        });
    }

    @ParameterizedTest
    @CsvSource({
        "max-scale-up-rate=not a float",
        "max-scale-up-rate=1",
        "max-scale-down-rate=-55",
        "max-scale-down-rate=1",
        "scale-down-delay=-1m23s",
        "scale-down-delay=61984ms",
        "scale-to-zero-pod-retention-period=-4m11s",
        "stable-window=not a duration",
        "stable-window=1h1s",
        "stable-window=1s",
        "stable-window=61984ms",
        "target-burst-capacity=-11",
        "container-concurrency-target-percentage=-42",
        "container-concurrency-target-percentage=142.4",
        "container-concurrency-target-default=0.001",
        "activator-capacity=0.95",
        "panic-window-percentage=0.1",
        "panic-window-percentage=110",
        "scale-to-zero-grace-period=0s",
        "initial-scale=0",
        "allow-zero-initial-scale=invalid",
        "max-scale-limit=-9",
        "max-scale-limit=9",
        "pod-autoscaler-class=some.class",
        "stable-windw=60s"
    })
    void invalidDefaultsOfTheServerAreRejected(String setting) {
        assertThatThrownBy(() -> config(setting)).hasMessageContaining(setting.substring(0, setting.indexOf('=')));
    }

    @Test
    void theRequestsPerSecondDefaultIsChecked() {
        assertThatThrownBy(() -> ScalingSettings.of(
                        Map.of("requests-per-second-target-default", "-5.25"), 0, 0, "rps", null, 0, Map.of()))
                .hasMessageContaining("-5.25");
    }

    @Test
    void everyProblemIsReportedAtOnce() {
        assertThatThrownBy(() -> ScalingSettings.of(
                        5,
                        2,
                        "cpu",
                        Double.NaN,
                        -1,
                        map(
                                "panic-threshold-percentage=fifty",
                                "panic-window-percentage=-11",
                                "activation-scale=3",
                                "window=2s")))
                .hasMessage("metric is 'cpu' (expected concurrency or rps)\n"
                        + "maximum of replicas 2 is less than the minimum 5\n"
                        + "containerConcurrency is '-1' (expected 0 for no limit, or more)\n"
                        + "target is 'NaN' (expected a number of 0.01 or more)\n"
                        + "window is '2s' (expected a duration of 6s to 1h0m0s)\n"
                        + "panic-window-percentage is '-11' (expected a number of 1 to 100)\n"
                        + "panic-threshold-percentage is 'fifty' (expected a number of 110 to 1000)\n"
                        + "minimum of replicas 5 is greater than activation-scale=3");
    }

    @Test
    void aLimitForTheMaximumNeedsAMaximum() {
        Map<String, String> limit = Map.of("max-scale-limit", "10");
        assertThat(ScalingSettings.of(limit, 0, 10, "rps", null, 0, Map.of()).max())
                .isEqualTo(10);
        assertThatThrownBy(() -> ScalingSettings.of(limit, 0, 11, "rps", null, 0, Map.of()))
                .hasMessage("maximum of replicas 11 is over max-scale-limit (expected 1 to 10)");
        assertThatThrownBy(() -> ScalingSettings.of(limit, 0, 0, "rps", null, 0, Map.of()))
                .hasMessage("maximum of replicas 0 (unlimited) is over max-scale-limit (expected 1 to 10)");
    }

    @Test
    void unknownAnnotationsAreWarnedOfAndForeignOnesIgnored() {
        Map<String, String> annotations =
                map(PREFIX + "windw=7s", "example.com/window=1s", PREFIX + "minScale=3", "window=7s");
        assertThat(ScalingSettings.of(0, 0, "concurrency", null, 0, annotations).stableWindow())
                .isEqualTo(Duration.ofSeconds(7));
        assertThat(ScalingSettings.warnings(annotations))
                .containsExactly(
                        "annotation autoscaling.knative.dev/windw is not an annotation of the autoscaler and has no"
                                + " effect (did you mean 'window'?)",
                        "annotation autoscaling.knative.dev/min-scale has no effect"
                                + " (expected minReplicas of the component)");
        assertThat(ScalingSettings.warnings(map("window=7s"))).isEmpty();
    }
}
