// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.engine.EngineFixture;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BatchingDefaultsTest {
    private static final BatchingParameters PARAMETERS = BatchingParameters.parse(
            "max_batch_size { value: 8 } batch_timeout_micros { value: 2000 } max_enqueued_batches { value: 5 }"
                    + " allowed_batch_sizes: 4 allowed_batch_sizes: 8 num_batch_threads { value: 3 }",
            "parameters");

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
        assertThat(fixture.backend.open).hasValue(0);
    }

    @Test
    void parametersOfTheServerHoldForModelsThatSayNothingThemselves() throws Exception {
        fixture.stored("m", 1, "");
        fixture.options.batching(PARAMETERS);
        fixture.start();
        ModelConfig config = config();
        assertThat(config.maxBatchSize()).isEqualTo(8);
        DynamicBatching batching = Objects.requireNonNull(config.batching());
        assertThat(batching.maxQueueDelay()).isEqualTo(Duration.ofNanos(2_000_000));
        assertThat(batching.batchSizePolicy().allowedSizes()).containsExactly(4, 8);
        assertThat(batching.batchSizePolicy().maxEnqueuedBatches()).isEqualTo(5);
        assertThat(fixture.ask(ModelRef.latest("m"))).isEqualTo(1);
        assertThat(fixture.backend.runs).as("padded to an allowed size").containsExactly("m/1 [0] 4");
    }

    @Test
    void aModelThatTakesFewerRowsIsFittedToThese() throws Exception {
        fixture.stored("m", 1, "");
        configure("max_batch_size: 6");
        fixture.options.batching(PARAMETERS);
        fixture.start();
        assertThat(config().maxBatchSize()).isEqualTo(6);
        assertThat(Objects.requireNonNull(config().batching()).batchSizePolicy().allowedSizes())
                .containsExactly(4, 6);
    }

    @Test
    void theModelsOwnBatchingTakesPrecedence() throws Exception {
        fixture.stored("m", 1, "");
        configure("max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 1 }");
        fixture.options.batching(PARAMETERS);
        fixture.start();
        assertThat(config().maxBatchSize()).isEqualTo(2);
        assertThat(Objects.requireNonNull(config().batching()).maxQueueDelay()).isEqualTo(Duration.ofNanos(1000));
        assertThat(Objects.requireNonNull(config().batching()).batchSizePolicy().allowedSizes())
                .isEmpty();
    }

    @Test
    void aModelWithoutABatchDimensionStaysWithout() throws Exception {
        fixture.stored("m", 1, "");
        configure("max_batch_size: 0");
        fixture.options.batching(PARAMETERS);
        fixture.start();
        assertThat(config().batched()).isFalse();
        assertThat(config().batching()).isNull();
    }

    @Test
    void aVersionsOwnFileDefinesTheBatchingIfEnabled() throws Exception {
        Path version = fixture.stored("m", 1, "");
        Files.writeString(version.resolve("batching_params.pbtxt"), "max_batch_size { value: 16 }");
        fixture.options.batching(PARAMETERS).perModelBatching(true);
        fixture.start();
        assertThat(config().maxBatchSize()).isEqualTo(16);
        assertThat(Objects.requireNonNull(config().batching()).batchSizePolicy().allowedSizes())
                .isEmpty();
    }

    @Test
    void aVersionWithoutTheFileIsThenNotBatched() throws Exception {
        fixture.stored("m", 1, "");
        fixture.options.batching(PARAMETERS).perModelBatching(true);
        fixture.start();
        assertThat(config().batching()).isNull();
        assertThat(EngineFixture.get(fixture.infer(
                        ModelRef.latest("m"), "", EngineFixture.floats("IN0", Shape.of(5), 1, 2, 3, 4, 5))))
                .as("any number of rows is allowed")
                .hasSize(5);
    }

    @Test
    void aWrongFileFailsItsVersionAlone() throws Exception {
        Path version = fixture.stored("m", 1, "");
        Files.writeString(version.resolve("batching_params.pbtxt"), "max_batch_size { value: 0 }");
        fixture.stored("n", 1, "");
        fixture.options.perModelBatching(true);
        fixture.start();
        assertThat(fixture.states()).isEqualTo("m 1 FAILED; n 1 AVAILABLE");
        assertThat(fixture.engine().index().get(0).versions().get(0).reason())
                .contains("batching_params.pbtxt")
                .contains("max_batch_size is 0");
    }

    @Test
    void aTooLargeRequestIsRejectedUnlessItIsSplit() throws Exception {
        fixture.stored("m", 1, "");
        fixture.options.batching(PARAMETERS);
        fixture.start();
        assertThat(EngineFixture.failure(fixture.infer(
                                ModelRef.latest("m"), "", EngineFixture.floats("IN0", Shape.of(9, 1), new float[9])))
                        .code())
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void aLargeRequestIsCutWhereThatIsAskedFor() throws Exception {
        fixture.stored("m", 1, "");
        fixture.options.batching(BatchingParameters.parse(
                "max_batch_size { value: 64 } enable_large_batch_splitting { value: true }"
                        + " max_execution_batch_size { value: 8 }",
                "parameters"));
        fixture.start();
        assertThat(EngineFixture.get(fixture.infer(
                        ModelRef.latest("m"), "", EngineFixture.floats("IN0", Shape.of(20, 1), new float[20]))))
                .hasSize(20)
                .containsOnly(1f);
        assertThat(fixture.backend.runs).containsExactlyInAnyOrder("m/1 [0] 8", "m/1 [0] 8", "m/1 [0] 4");
    }

    private ModelConfig config() {
        return fixture.engine().config(ModelRef.latest("m"));
    }

    private void configure(String text) throws Exception {
        Files.writeString(root.resolve("repository/m/config.pbtxt"), text);
    }
}
