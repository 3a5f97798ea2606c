// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static io.nereid.engine.EngineFixture.failure;
import static io.nereid.engine.EngineFixture.floats;
import static io.nereid.engine.EngineFixture.get;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Batch;
import io.nereid.spi.ModelRef;
import io.nereid.spi.management.LoadOptions;
import io.nereid.tensor.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code max_batch_size} changes while requests wait, by an edit of the configuration and by a load request. */
class ChangedBatchSizeTest {
    private static final ModelRef M = ModelRef.latest("m");

    @TempDir
    Path root;

    private EngineFixture fixture;

    @BeforeEach
    void fixture() throws Exception {
        fixture = new EngineFixture(root);
    }

    @AfterEach
    void close() {
        fixture.close();
    }

    private void config(String model, String text) throws Exception {
        Files.writeString(root.resolve("repository").resolve(model).resolve("config.pbtxt"), text);
    }

    private void maximum(int rows) throws Exception {
        config("m", "backend: 'puppet' max_batch_size: " + rows + " dynamic_batching { }");
    }

    private CompletableFuture<float[]> send(String signature, int rows) {
        String input = signature.isEmpty() ? "IN0" : "X";
        return fixture.infer(M, signature, floats(input, Shape.of(rows, 1), new float[rows]));
    }

    private ServingException refused(int rows) throws Exception {
        return failure(send("", rows));
    }

    private void answered(List<CompletableFuture<float[]>> sent) throws Exception {
        for (CompletableFuture<float[]> answer : sent) {
            assertThat(get(answer)).isNotEmpty().containsOnly(1);
        }
    }

    /** Sends a request that occupies the instance, then others, which wait. */
    private List<CompletableFuture<float[]>> waiting(int... rows) throws Exception {
        List<CompletableFuture<float[]>> sent = new ArrayList<>();
        sent.add(send("", 1));
        fixture.until(() -> !fixture.backend.runs.isEmpty());
        for (int each : rows) {
            sent.add(send("", each));
        }
        return sent;
    }

    @Test
    void aLargerMaximumTakesTheRequestsThatWaitWithoutLoading() throws Exception {
        fixture.stored("m", 1, "stuck");
        maximum(2);
        fixture.start();
        assertThat(refused(3)).hasMessageContaining("inference request batch-size must be <= 2 for 'm'. Got 3");
        List<CompletableFuture<float[]>> sent = waiting(1, 1, 1, 1, 1);
        maximum(4);
        get(fixture.engine().load("m"));
        sent.add(send("", 4));
        assertThat(refused(5)).satisfies(e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e).hasMessageContaining("inference request batch-size must be <= 4 for 'm'. Got 5");
        });
        assertThat(fixture.engine().metadata(M).maxBatchSize()).isEqualTo(4);
        assertThat(fixture.engine().config(M).document()).containsEntry("max_batch_size", 4L);
        fixture.backend.open("m/1");
        answered(sent);
        assertThat(fixture.backend.runs).containsExactly("m/1 [0] 1", "m/1 [0] 4", "m/1 [0] 1", "m/1 [0] 4");
        ModelStatisticsSnapshot report = fixture.engine().statistics("m", -1).get(0);
        assertThat(report.batches().stream().map(Batch::size)).containsExactly(1L, 4L);
        assertThat(report.success().count()).isEqualTo(7);
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(1);
    }

    @Test
    void aRequestThatWasAcceptedUnderALargerMaximumRuns() throws Exception {
        fixture.stored("m", 1, "stuck");
        maximum(8);
        fixture.start();
        List<CompletableFuture<float[]>> sent = waiting(1, 8, 1, 1, 1);
        String json = "{\"backend\":\"puppet\",\"max_batch_size\":2,\"dynamic_batching\":{}}";
        get(fixture.engine().load("m", new LoadOptions(json, Map.of())));
        assertThat(refused(3)).hasMessageContaining("inference request batch-size must be <= 2 for 'm'. Got 3");
        fixture.backend.open("m/1");
        answered(sent);
        assertThat(fixture.backend.runs)
                .containsExactly("m/1 [0] 1", "m/1 [0] 1", "m/1 [0] 8", "m/1 [0] 2", "m/1 [0] 1");
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(1);
    }

    @Test
    void everySignatureFollows() throws Exception {
        fixture.stored("m", 1, "signatures");
        maximum(2);
        fixture.start();
        assertThat(failure(send("plus_ten", 6))).hasMessageContaining("must be <= 2");
        maximum(6);
        get(fixture.engine().load("m"));
        assertThat(get(send("plus_ten", 6))).containsOnly(11).hasSize(6);
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(1);
    }

    @Test
    void aModelThatIsMadeForItsMaximumIsLoadedAgain() throws Exception {
        fixture.stored("m", 1, "sized");
        maximum(2);
        fixture.start();
        maximum(4);
        get(fixture.engine().load("m"));
        assertThat(get(send("", 4))).hasSize(4);
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(2);
    }

    @Test
    void aBatchDimensionComesAndGoesWithALoad() throws Exception {
        fixture.stored("m", 1, "");
        maximum(2);
        fixture.start();
        config("m", "backend: 'puppet' max_batch_size: 0");
        get(fixture.engine().load("m"));
        assertThat(fixture.engine().metadata(M).inputs().get(0).shape()).isEqualTo(Shape.of(-1));
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(2);
    }

    @Test
    void aMemberThatBecomesTooSmallForItsEnsembleIsLoadedAgainAndTheEnsembleSaysSo() throws Exception {
        fixture.stored("m", 1, "");
        maximum(4);
        Files.createDirectories(root.resolve("repository/e/1"));
        config("e", """
                platform: 'ensemble' max_batch_size: 4
                input [ { name: 'X' data_type: TYPE_FP32 dims: [ -1 ] } ]
                output [ { name: 'Y' data_type: TYPE_FP32 dims: [ -1 ] } ]
                ensemble_scheduling { step [ { model_name: 'm' model_version: -1
                  input_map { key: 'IN0' value: 'X' } output_map { key: 'OUT0' value: 'Y' } } ] }
                """);
        fixture.start();
        assertThat(fixture.states()).isEqualTo("e 1 AVAILABLE; m 1 AVAILABLE");
        maximum(8);
        get(fixture.engine().load("m"));
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(1);
        maximum(2);
        get(fixture.engine().load("m"));
        assertThat(fixture.backend.loads("m/1")).as("loads").isEqualTo(2);
        fixture.until(() -> fixture.engine().index().toString().contains("only allows maximum batch size to be 2"));
    }
}
