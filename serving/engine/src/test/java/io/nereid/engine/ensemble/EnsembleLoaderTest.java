// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class EnsembleLoaderTest {
    private final StubComposingModels members = new StubComposingModels();
    private final List<EnsembleStep> steps = new ArrayList<>();
    private final DeviceExecutor pool = new DeviceExecutor("device", 1, Clock.system());
    private final ServableFactory servables =
            new ServableFactory(pool, EngineOptions.of(Path.of("models")), List.of(), Clock.system());
    private final List<TensorSpec> inputs = List.of(spec("X", DataType.FP32, 4));
    private final List<TensorSpec> outputs = List.of(spec("Y", DataType.FP32, 4));
    private int maxBatch = 8;

    @AfterEach
    void close() {
        pool.close();
    }

    @Test
    void anEnsembleDependsOnItsMembersAndIsCompletedFromThem() {
        member("a", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        members.configs.put(
                "b",
                ModelConfig.builder("b")
                        .maxBatchSize(8)
                        .inputs(List.of(spec("in", DataType.FP32, 4)))
                        .outputs(List.of(spec("out", DataType.FP32, 4)))
                        .labels(Map.of("out", List.of("cat", "dog")))
                        .decoupled(true)
                        .build());
        step("a", Map.of("in", "X"), Map.of("out", "mid"));
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        EnsembleLoader loader = loader();
        assertThat(loader.dependencies()).containsExactly("a", "b");
        EnsembleServable servable = (EnsembleServable) loader.load();
        assertThat(servable.config().decoupled()).isTrue();
        assertThat(servable.metadata().platform()).isEqualTo("ensemble");
        assertThat(servable.labels("Y")).containsExactly("cat", "dog");
        assertThat(servables.registered()).isEmpty();
        loader.warm();
        assertThat(servables.registered()).containsExactly(servable);
        loader.unload();
        assertThat(servables.registered()).isEmpty();
        assertThat(loader.newLoader().load()).isInstanceOf(EnsembleServable.class);
    }

    @Test
    void aTensorHasOneTypeAndOneShape() {
        member("a", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.BYTES, 4)));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        assertThat(refusal())
                .isEqualTo(
                        "in ensemble e, ensemble tensor Y: inconsistent data type: TYPE_FP32 is inferred from model e"
                                + " while TYPE_STRING is inferred from model a");
        member("a", 8, List.of(spec("in", DataType.FP32, 5)), List.of(spec("out", DataType.FP32, 4)));
        assertThat(refusal())
                .isEqualTo(
                        "in ensemble e, ensemble tensor X: inconsistent shape: [4] is inferred from model e while [5]"
                                + " is inferred from model a");
    }

    @Test
    void aSizeThatIsUnknownFitsAnyAndAWholeBatchFitsAModelWithoutBatches() {
        member("a", 8, List.of(spec("in", DataType.FP32, -1)), List.of(spec("out", DataType.FP32, 4)));
        member("b", 0, List.of(spec("in", DataType.FP32, -1, 4)), List.of(spec("out", DataType.FP32, -1, 4)));
        step("a", Map.of("in", "X"), Map.of("out", "mid"));
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        assertThat(loader().load()).isNotNull();
    }

    @Test
    void aStepNamesWhatItsModelHas() {
        member("a", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        step("a", Map.of("in", "X", "more", "X"), Map.of("out", "Y"));
        assertThat(refusal())
                .isEqualTo("in ensemble e, ensemble tensor X is mapping to non-existing input more in model a");
        steps.clear();
        step("a", Map.of("in", "X"), Map.of("out", "Y", "more", "Z"));
        assertThat(refusal())
                .isEqualTo("in ensemble e, ensemble tensor Z is mapping to non-existing output more in model a");
    }

    @Test
    void onlyOptionalInputsOfAModelMayBeLeftOut() {
        List<TensorSpec> in = List.of(
                spec("in", DataType.FP32, 4),
                new TensorSpec("opt", DataType.FP32, Shape.of(4), true),
                spec("need", DataType.FP32, 4));
        member("a", 8, in, List.of(spec("out", DataType.FP32, 4)));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        assertThat(refusal())
                .isEqualTo("in ensemble e, non-optional input need of model a is not mapped to an ensemble tensor");
    }

    @Test
    void anEnsembleTakesNoLargerBatchesThanItsMembers() {
        member("a", 4, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        assertThat(refusal())
                .isEqualTo("ensemble e allows maximum batch size 8, but it contains model a which only allows maximum"
                        + " batch size to be 4");
        maxBatch = 4;
        assertThat(loader().load()).isNotNull();
    }

    @Test
    void aMaximumThatTheMembersAllowIsTakenOverWithoutLoading() {
        member("a", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        maxBatch = 4;
        EnsembleLoader loader = loader();
        assertThat(loader.updateInPlace(loader())).as("not loaded yet").isFalse();
        EnsembleServable servable = (EnsembleServable) loader.load();
        loader.warm();
        for (int rows : new int[] {8, 2}) {
            maxBatch = rows;
            assertThat(loader.updateInPlace(loader())).isTrue();
            assertThat(servable.config().maxBatchSize()).isEqualTo(rows);
            assertThat(servable.config().document()).containsEntry("max_batch_size", (long) rows);
            assertThat(servable.metadata().maxBatchSize()).isEqualTo(rows);
            assertThat(loader.newLoader().load().config().maxBatchSize()).isEqualTo(rows);
        }
        for (int rows : new int[] {9, 0}) {
            maxBatch = rows;
            assertThat(loader.updateInPlace(loader())).isFalse();
        }
        maxBatch = 2;
        step("a", Map.of("in", "Y"), Map.of("out", "Z"));
        assertThat(loader.updateInPlace(loader())).as("another step").isFalse();
        assertThat(servable.config().maxBatchSize()).isEqualTo(2);
    }

    @Test
    void answersOfDifferentDecoupledMembersMayNotMeet() {
        for (String name : List.of("r", "s")) {
            member(name, 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
            ModelConfig config = members.configs.get(name);
            members.configs.put(name, config.toBuilder().decoupled(true).build());
        }
        member(
                "j",
                8,
                List.of(spec("l", DataType.FP32, 4), spec("r", DataType.FP32, 4)),
                List.of(spec("out", DataType.FP32, 4)));
        step("r", Map.of("in", "X"), Map.of("out", "p"));
        step("s", Map.of("in", "X"), Map.of("out", "q"));
        step("j", Map.of("l", "p", "r", "q"), Map.of("out", "Y"));
        assertThat(refusal())
                .isEqualTo(
                        "in ensemble e, step of model 'j' receives inputs originated from different decoupled models");
    }

    @Test
    void cyclicStepsAreRejected() {
        member(
                "a",
                8,
                List.of(spec("in", DataType.FP32, 4), spec("back", DataType.FP32, 4)),
                List.of(spec("out", DataType.FP32, 4)));
        member("b", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        step("a", Map.of("in", "X", "back", "Y"), Map.of("out", "mid"));
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        assertThat(refusal())
                .isEqualTo("in ensemble e, step 0 of model 'a' never runs: tensor 'Y' depends on a step that"
                        + " never runs");
    }

    @Test
    void aConditionIsBoolean() {
        member("a", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        steps.add(new EnsembleStep("a", -1, Map.of("in", "X"), Map.of("out", "Y"), "X"));
        assertThat(refusal())
                .isEqualTo("in ensemble e, ensemble tensor X decides whether model a runs, but is TYPE_FP32 (expected:"
                        + " TYPE_BOOL)");
    }

    @Test
    void aMemberThatIsNotLoadedIsNamedWithItsReason() {
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        members.states.put("a", List.of(state(1, Phase.FAILED, "broken weights")));
        assertThatThrownBy(() -> loader().load()).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
            assertThat(e.getMessage())
                    .isEqualTo("ensemble 'e' depends on 'a' which has no loaded version. Model 'a' loading failed with"
                            + " error: version 1 is at UNAVAILABLE state: broken weights;");
        });
        members.states.clear();
        assertThat(refusal()).isEqualTo("ensemble 'e' depends on 'a' which has no loaded version.");
    }

    @Test
    void aVersionThatIsNotLoadedIsNamed() {
        member("a", 8, List.of(spec("in", DataType.FP32, 4)), List.of(spec("out", DataType.FP32, 4)));
        steps.add(new EnsembleStep("a", 3, Map.of("in", "X"), Map.of("out", "Y"), ""));
        members.states.put("a", List.of(state(1, Phase.AVAILABLE, null)));
        assertThat(refusal()).isEqualTo("ensemble 'e' depends on 'a' whose required version 3 is not loaded.");
    }

    private static ServableState state(long version, Phase phase, @Nullable String reason) {
        return new ServableState(new ServableId("a", version), phase, reason, "", 0, -1);
    }

    private static TensorSpec spec(String name, DataType type, long... dims) {
        return new TensorSpec(name, type, Shape.of(dims));
    }

    private void member(String name, int batch, List<TensorSpec> in, List<TensorSpec> out) {
        members.configs.put(
                name,
                ModelConfig.builder(name)
                        .maxBatchSize(batch)
                        .inputs(in)
                        .outputs(out)
                        .build());
    }

    private void step(String model, Map<String, String> in, Map<String, String> out) {
        steps.add(new EnsembleStep(model, -1, in, out, ""));
    }

    private EnsembleLoader loader() {
        ModelConfig config = ModelConfig.builder("e")
                .platform("ensemble")
                .maxBatchSize(maxBatch)
                .inputs(inputs)
                .outputs(outputs)
                .ensemble(new EnsembleScheduling(List.copyOf(steps), 0))
                .build();
        return new EnsembleLoader(new ServableId("e", 1), config, "f", members, servables);
    }

    private String refusal() {
        try {
            loader().load();
        } catch (ServingException e) {
            return e.getMessage();
        }
        throw new AssertionError("not refused");
    }
}
