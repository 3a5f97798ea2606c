// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.options.CacheOptions;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
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

class SignatureTest {
    private static final ModelRef MODEL = ModelRef.latest("m");

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
    void aRequestRunsTheSignatureItNames() throws Exception {
        fixture.stored("m", 1, "signatures");
        fixture.start();
        assertThat(EngineFixture.get(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1, 2), 1, 2))))
                .containsExactly(12, 13);
        assertThat(EngineFixture.get(fixture.infer(MODEL, "", EngineFixture.floats("IN0", Shape.of(1, 1), 1))))
                .containsExactly(2);
        assertThat(EngineFixture.get(
                        fixture.infer(MODEL, "serving_default", EngineFixture.floats("IN0", Shape.of(1, 1), 5))))
                .containsExactly(6);
        assertThat(fixture.backend.runs).containsExactly("m/1 plus_ten[0] 1", "m/1 [0] 1", "m/1 [0] 1");
        assertThat(fixture.engine().statistics("m", 1).get(0).success().count())
                .as("the version counts the requests of all signatures")
                .isEqualTo(3);
    }

    @Test
    void theParametersOfARequestThatNamesNoneMayChooseTheSignature() throws Exception {
        fixture.stored("m", 1, "signatures");
        fixture.start();
        Map<String, Object> ten = Map.of("plus", 10L);
        assertThat(EngineFixture.get(fixture.infer(MODEL, "", ten, EngineFixture.floats("X", Shape.of(1, 2), 1, 2))))
                .containsExactly(12, 13);
        assertThat(EngineFixture.get(
                        fixture.infer(MODEL, "serving_default", ten, EngineFixture.floats("IN0", Shape.of(1, 1), 5))))
                .as("the signature name is part of the cache key")
                .containsExactly(6);
        assertThat(EngineFixture.get(fixture.infer(
                        MODEL, "", Map.of("other", true), EngineFixture.floats("IN0", Shape.of(1, 1), 1))))
                .containsExactly(2);
        ServingException e = EngineFixture.failure(
                fixture.infer(MODEL, "", Map.of("plus", "ten"), EngineFixture.floats("X", Shape.of(1, 2), 1, 2)));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).isEqualTo("plus what?");
    }

    @Test
    void aSignatureHasItsOwnInputsAndOutputs() throws Exception {
        fixture.stored("m", 1, "signatures");
        fixture.start();
        ServingException wrong =
                EngineFixture.failure(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("IN0", Shape.of(1, 1), 1)));
        assertThat(wrong.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(wrong.getMessage()).contains("missing required input(s) ['X']");
    }

    @Test
    void anUnknownSignatureFailsWithTensorFlowServingsMessage() throws Exception {
        fixture.stored("m", 1, "signatures");
        fixture.stored("plain", 1, "");
        fixture.start();
        ServingException e =
                EngineFixture.failure(fixture.infer(MODEL, "plus_tan", EngineFixture.floats("X", Shape.of(1, 1), 1)));
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.getMessage()).isEqualTo("Serving signature key \"plus_tan\" not found.");
        assertThat(e.remedy()).isEqualTo("did you mean 'plus_ten'?");
        ServingException plain = EngineFixture.failure(
                fixture.infer(ModelRef.latest("plain"), "other", EngineFixture.floats("IN0", Shape.of(1, 1), 1)));
        assertThat(plain.remedy()).isEqualTo("model 'plain' has [serving_default]");
        assertThat(fixture.engine().statistics("m", 1).get(0).failure().count())
                .as("a rejected request is counted as failed")
                .isEqualTo(1);
    }

    @Test
    void everySignatureIsDescribedWithItsShapesOnTheWire() throws Exception {
        fixture.stored("m", 1, "signatures");
        fixture.stored("plain", 1, "");
        fixture.start();
        ModelMetadata metadata = fixture.engine().metadata(MODEL);
        assertThat(metadata.signatures()).containsOnlyKeys("serving_default", "plus_ten", "classify");
        Signature ten = metadata.signatures().get("plus_ten");
        assertThat(ten.inputs())
                .extracting(s -> s.name() + s.shape() + s.unchecked())
                .containsExactly("X[-1,2]true");
        assertThat(metadata.signatures().get("classify").method()).isEqualTo(Signature.CLASSIFY);
        assertThat(metadata.signatures().get("classify").inputs())
                .extracting(s -> s.shape().toString())
                .containsExactly("[-1]");
        Signature own = metadata.signatures().get("serving_default");
        assertThat(own.method()).isEqualTo("own/method");
        assertThat(own.tensors()).isEqualTo(Map.of("IN0", "in:0"));
        Signature derived = fixture.engine().metadata(ModelRef.latest("plain")).signature("");
        assertThat(derived).isNotNull();
        assertThat(derived.method()).isEqualTo(Signature.PREDICT);
        assertThat(derived.inputs()).extracting(s -> s.name() + s.shape()).containsExactly("IN0[-1,-1]");
    }

    @Test
    void anUncheckedInputTakesAnyShapeOfItsTypeButKeepsItsBatchDimension() throws Exception {
        fixture.stored("m", 1, "signatures");
        fixture.start();
        assertThat(EngineFixture.get(
                        fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1, 3, 1), 1, 2, 3))))
                .containsExactly(12, 13, 14);
        assertThat(EngineFixture.get(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1), 1))))
                .containsExactly(12);
        assertThat(EngineFixture.failure(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.SCALAR, 1)))
                        .code())
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void requestsShareABatchWithinASignatureWhereTheirShapesAreEqual() throws Exception {
        fixture.stored("m", 1, "signatures stuck");
        fixture.start();
        List<CompletableFuture<float[]>> answers = new ArrayList<>();
        answers.add(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1, 2), 0, 0)));
        fixture.until(() -> fixture.backend.runs.size() == 1);
        answers.add(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1, 2), 1, 1)));
        answers.add(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(2, 2), 2, 2, 2, 2)));
        answers.add(fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1, 3), 3, 3, 3)));
        fixture.backend.open("m/1");
        for (int i = 0; i < answers.size(); i++) {
            assertThat(EngineFixture.get(answers.get(i))[0]).isEqualTo(11 + i);
        }
        assertThat(fixture.backend.runs)
                .as("three rows of two values, never one of three among them")
                .contains("m/1 plus_ten[0] 3")
                .hasSize(3);
    }

    @Test
    void aKeptAnswerIsOneOfItsSignature() throws Exception {
        fixture.stored("m", 1, "signatures");
        Files.writeString(
                root.resolve("repository/m/config.pbtxt"), "max_batch_size: 4 response_cache { enable: true }");
        fixture.options.cache(new CacheOptions("local", Map.of("size", "100000")));
        fixture.start();
        for (int i = 0; i < 2; i++) {
            assertThat(EngineFixture.get(
                            fixture.infer(MODEL, "plus_ten", EngineFixture.floats("X", Shape.of(1, 1), 1))))
                    .containsExactly(12);
            assertThat(EngineFixture.get(fixture.infer(MODEL, "", EngineFixture.floats("IN0", Shape.of(1, 1), 1))))
                    .containsExactly(2);
        }
        assertThat(fixture.backend.runs).as("each ran once").hasSize(2);
    }
}
