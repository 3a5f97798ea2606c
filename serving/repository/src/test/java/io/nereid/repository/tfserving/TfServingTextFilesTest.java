// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.tfserving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.Fakes;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.repository.problem.ConfigFuzzTest;
import io.nereid.spi.config.BatchSizePolicy;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TfServingTextFilesTest {
    private static final String BATCHING = """
        max_batch_size { value: 128 }
        batch_timeout_micros { value: 1500 }
        max_enqueued_batches { value: 1000000 }
        num_batch_threads { value: 8 }
        thread_pool_name { value: "pool" }
        allowed_batch_sizes: [ 32, 64 ] allowed_batch_sizes: 128
        pad_variable_length_inputs: true
        """;
    private static final String KEY =
            "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n-----END PRIVATE KEY-----\\n";
    private static final String CERT = "-----BEGIN CERTIFICATE-----\\nMIIC\\n-----END CERTIFICATE-----\\n";
    private static final String SSL =
            "server_key: '" + KEY + "'\nserver_cert: '" + CERT + "'\ncustom_ca: '" + CERT + "'\nclient_verify: true\n";
    private static final String MONITORING = "prometheus_config { enable: true path: '/metrics/x' }";
    private static final String MODELS =
            "model_config_list { config { name: 'm' base_path: '/b' model_platform: 'tensorflow' model_version_policy"
                    + " { specific { versions: [ 1, 2 ] } } version_labels { key: 'a' value: 1 } weighted_labels { key:"
                    + " 'c' value { targets { version: 1 weight: 9e1 } shadows { version: 2 weight: .5 } } }"
                    + " logging_config { log_collector_config { filename_prefix: '/l' } sampling_config { sampling_rate: 1"
                    + " } } } }";

    private static void refused(ThrowingCallable call, String... parts) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(parts);
        });
    }

    private static BatchingParameters batching(String text) {
        return BatchingParameters.parse(text, "b");
    }

    @Test
    void everyBatchingParameterIsRead() {
        assertThat(batching(BATCHING))
                .isEqualTo(new BatchingParameters(
                        128, 1500, 1_000_000, 8, "pool", List.of(32, 64, 128), true, false, 128));
    }

    @Test
    void batchingParametersHaveTheDefaultsOfTheOriginal() {
        assertThat(batching("")).isEqualTo(BatchingParameters.DEFAULT);
        BatchingParameters d = BatchingParameters.DEFAULT;
        assertThat(d.maxBatchSize()).isEqualTo(1000);
        assertThat(d.batchTimeoutMicros()).isZero();
        assertThat(d.maxEnqueuedBatches()).isEqualTo(10);
        assertThat(d.threadPoolName()).isEqualTo("batch_threads");
        assertThat(d.maxExecutionBatchSize()).isEqualTo(1000);
    }

    @Test
    void batchingParametersBecomeTheBatchersSettings() {
        BatchingParameters p = batching(BATCHING);
        assertThat(p.batchSizePolicy()).isEqualTo(new BatchSizePolicy(List.of(32, 64, 128), true, 0, 1_000_000));
        assertThat(p.batching().maxQueueDelay()).isEqualTo(Duration.ofNanos(1_500_000));
        assertThat(p.batching().batchSizePolicy()).isEqualTo(p.batchSizePolicy());
        assertThat(p.batchSizePolicy(50).allowedSizes()).containsExactly(32, 50);
        assertThat(p.batchSizePolicy(500).allowedSizes()).containsExactly(32, 64, 128);
    }

    @Test
    void splitRequestsMayBeLargerThanARun() {
        BatchingParameters p = batching("max_batch_size { value: 100 } enable_large_batch_splitting { value: true }"
                + " max_execution_batch_size { value: 40 } allowed_batch_sizes: [ 20, 100 ]");
        assertThat(p.batchSizePolicy()).isEqualTo(new BatchSizePolicy(List.of(20, 40), false, 100, 10));
        assertThat(batching("max_batch_size { value: 100 } enable_large_batch_splitting { value: true }"
                                + " max_execution_batch_size { value: 40 } allowed_batch_sizes: [ 20, 40 ]")
                        .batchSizePolicy()
                        .allowedSizes())
                .containsExactly(20, 40);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "max_batch_size { value: 128 } allowed_batch_sizes: [ 32, 64 ] | b: Last entry in allowed_batch_sizes"
                        + " must match max_batch_size; last entry was 64; expected 128",
                "max_batch_size { value: 4 } allowed_batch_sizes: [ 4, 4 ] | allowed_batch_sizes entries must be"
                        + " monotonically increasing",
                "max_batch_size { value: 4 } allowed_batch_sizes: [ 0, 4 ] | monotonically increasing",
                "max_batch_size { value: 0 } | max_batch_size is 0 (expected: at least 1)",
                "max_batch_size {} | max_batch_size is 0 (expected: at least 1)",
                "batch_timeout_micros { value: -1 } | batch_timeout_micros is -1",
                "max_enqueued_batches { value: 0 } | max_enqueued_batches is 0",
                "num_batch_threads { value: -1 } | num_batch_threads is -1",
                "max_execution_batch_size { value: 10 } | but requests are not split",
                "max_execution_batch_size { value: 2000 } enable_large_batch_splitting { value: true } | at most"
                        + " max_batch_size",
                "max_batch_size: 128 | write 'max_batch_size { … }'",
                "max_batchsize { value: 1 } | did you mean 'max_batch_size'?",
                "max_batch_size { valu: 1 } | b:1:18: unknown field 'valu' in 'max_batch_size'",
            })
    void batchingParametersThatCannotBeAreRefused(String text, String message) {
        refused(() -> batching(text), message);
    }

    @Test
    void anSslConfigIsReadWithItsPemTexts() {
        SslConfig ssl = SslConfig.parse(SSL, "s");
        assertThat(ssl.serverKey()).startsWith("-----BEGIN PRIVATE KEY-----\nMII");
        assertThat(ssl.serverCert()).startsWith("-----BEGIN CERTIFICATE-----\n");
        assertThat(ssl.customCa()).isEqualTo(ssl.serverCert());
        assertThat(ssl.clientVerify()).isTrue();
    }

    @Test
    void nothingOfAKeyIsEverPrinted() {
        assertThat(SslConfig.parse(SSL, "s").toString()).doesNotContain("MII");
        for (String text : List.of(
                SSL + " MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
                "server_key: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
                "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC: 1",
                "server_key { MIIEvQIBADANBgkqhkiG9w0BAQEFAASC: 1 }",
                "server_key: -MIIEvQIBADANBgkqhkiG9w0BAQEFAASC")) {
            assertThatThrownBy(() -> SslConfig.parse(text, "s"))
                    .isInstanceOfSatisfying(
                            ServingException.class,
                            e -> assertThat(e.describe()).startsWith("s:").doesNotContain("MIIEvQ"));
        }
    }

    @Test
    void anSslConfigWithoutKeyOrWithAFileNameIsRefused() {
        refused(() -> SslConfig.parse("server_cert: '" + CERT + "'", "s"), "s: server_key is not given");
        refused(() -> SslConfig.parse("server_key: '" + KEY + "'", "s"), "s: server_cert is not given");
        refused(
                () -> SslConfig.parse("server_key: '/etc/key.pem' server_cert: '" + CERT + "'", "s"),
                "server_key is not in the PEM format",
                "not its name");
        refused(() -> SslConfig.parse("server_kee: ''", "s"), "s:1:1: unknown field 'server_kee'", "'server_key'");
    }

    @Test
    void aMonitoringConfigIsRead() {
        assertThat(MonitoringConfig.parse(MONITORING, "m")).isEqualTo(new MonitoringConfig(true, "/metrics/x"));
        assertThat(MonitoringConfig.parse("", "m")).isEqualTo(MonitoringConfig.OFF);
        assertThat(MonitoringConfig.parse("prometheus_config: { enable: true }", "m"))
                .isEqualTo(new MonitoringConfig(true, "/monitoring/prometheus/metrics"));
        refused(
                () -> MonitoringConfig.parse("prometheus_config { path: 'metrics' }", "m"),
                "m: path of prometheus_config is 'metrics'");
        refused(() -> MonitoringConfig.parse("prometheus_confg { }", "m"), "did you mean 'prometheus_config'?");
    }

    @Test
    void noMutationOfATextDoesMoreThanBeRefusedForTheClientsFault() {
        List<String> seeds = List.of(MODELS, BATCHING, SSL, MONITORING);
        List<BiFunction<String, String, Object>> readers =
                List.of(ModelServerConfig::parse, BatchingParameters::parse, SslConfig::parse, MonitoringConfig::parse);
        int cases = Integer.getInteger("nereid.fuzz.cases", 20_000);
        Random random = new Random(20_261_122);
        int wrong = 0;
        for (int i = 0; i < cases; i++) {
            int which = i % seeds.size();
            String text = ConfigFuzzTest.mutate(seeds.get(which), random);
            try {
                Object read = readers.get(which).apply(text, "f");
                if (read instanceof List<?> list && !list.isEmpty()) {
                    checkedOrRefused(text);
                }
            } catch (ServingException e) {
                wrong++;
                assertThat(e.code()).as(text).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.getMessage())
                        .as(text)
                        .containsPattern("^(Error parsing text-format tensorflow\\.serving\\.\\w+: )?f:")
                        .hasSizeLessThan(20_000);
            } catch (RuntimeException | StackOverflowError e) {
                throw new AssertionError("case " + i + ": " + text, e);
            }
        }
        assertThat(wrong).isGreaterThan(cases / 2);
    }

    private static void checkedOrRefused(String text) {
        try {
            ModelServerConfig.check(ModelServerConfig.parse(text, "f"), List.of(), List.of(Fakes.ONNX));
        } catch (ServingException e) {
            assertThat(e.code()).as(text).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        }
    }
}
