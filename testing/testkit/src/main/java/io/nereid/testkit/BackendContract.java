// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.backend.ModelSource;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What every {@link Backend} promises, checked on one small model that the subclass provides. Confined to one test.
 */
public abstract class BackendContract {
    private static final int THREADS = 4;
    private static final int RUNS = 50;

    /** A directory of this test's own. */
    @TempDir
    public Path directory;

    /** For JUnit. */
    protected BackendContract() {}

    /** The backend under test. */
    protected abstract Backend backend();

    /** A small model that works without configuration, laid out under {@code directory}. */
    protected abstract ModelSource model(Path directory);

    /** A model that the backend must refuse, laid out under {@code directory}. */
    protected abstract ModelSource brokenModel(Path directory);

    /** What is said about a model: nothing, unless the backend needs to be told something. */
    protected ModelConfig config(String name) {
        return ModelConfig.unspecified(name);
    }

    /**
     * What a run of {@link #model} is fed ({@link ModelConfig#feeds}), in that order, new ones with each call;
     * {@code seed} makes the values differ.
     */
    protected abstract List<Tensor> inputs(int seed);

    private BackendModel load() {
        ModelSource source = model(directory);
        return backend().load(source, config(source.id().model()), context());
    }

    private BackendContext context() {
        return new BackendContext(2, directory, Map.of());
    }

    private static List<String> outputs(BackendModel model) {
        return model.config().fetches().stream().map(TensorSpec::name).toList();
    }

    /** The answer to one request; the inputs are gone by then. */
    private static List<Tensor> run(
            BackendModel model, Invocation invocation, List<Tensor> inputs, List<String> wanted) {
        if (!model.traits().requests()) {
            List<Tensor> results = invocation.run(inputs, wanted);
            Tensor.closeAll(inputs);
            return results;
        }
        try (RecordingRequest request = new RecordingRequest(inputs, wanted)) {
            invocation.execute(List.of(request));
            assertThat(request.awaitEnd()).isTrue();
            assertThat(request.ends()).hasSize(1).doesNotContain("fail", "reschedule");
            List<Tensor> results = new ArrayList<>();
            for (RecordingRequest.Answer answer : request.answers()) {
                answer.outputs().forEach(t -> results.add(t.retain()));
            }
            return results;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private byte[] answer(BackendModel model, Invocation invocation, List<String> outputs, int seed) {
        List<Tensor> results = run(model, invocation, inputs(seed), outputs);
        byte[] bytes = new byte[results.stream().mapToInt(Tensor::byteLength).sum()];
        int at = 0;
        for (Tensor result : results) {
            result.region().getBytes(result.offset(), bytes, at, result.byteLength());
            at += result.byteLength();
        }
        Tensor.closeAll(results);
        return bytes;
    }

    /** {@code META-INF/services} names it, and its name is its own. */
    @Test
    public void theBackendIsFoundByItsName() {
        assertThat(ServiceLoader.load(Backend.class))
                .filteredOn(b -> b.name().equals(backend().name()))
                .hasSize(1);
        assertThat(backend().platforms()).isNotEmpty();
        assertThat(backend().unavailable()).isNull();
    }

    /** See {@link BackendModel#config()}. */
    @Test
    public void aLoadedModelHasAWholeConfiguration() {
        try (BackendModel model = load()) {
            assertThat(model.config().backend()).isEqualTo(backend().name());
            assertThat(model.config().platform()).isNotEmpty();
            assertThat(model.config().maxBatchSize()).isNotNegative();
            assertThat(model.config().instances()).isPositive();
            assertThat(model.config().outputs()).isNotEmpty();
            List<Tensor> inputs = inputs(0);
            assertThat(model.config().feeds().stream().map(TensorSpec::name))
                    .containsExactlyElementsOf(inputs.stream().map(Tensor::name).toList());
            Tensor.closeAll(inputs);
            assertThat(model.traits().alignment()).isPositive();
            assertThat(model.memoryBytes()).isGreaterThanOrEqualTo(-1);
        }
    }

    /** See {@link Invocation#run}. */
    @Test
    public void wantedOutputsComeInTheWantedOrder() {
        try (BackendModel model = load();
                Invocation invocation = model.newInvocation()) {
            List<String> wanted = new ArrayList<>(outputs(model));
            java.util.Collections.reverse(wanted);
            List<Tensor> results = run(model, invocation, inputs(1), wanted);
            assertThat(results).extracting(Tensor::name).startsWith(wanted.toArray(String[]::new));
            if (!model.config().decoupled()) {
                assertThat(results).hasSameSizeAs(wanted);
            }
            assertThat(results).noneMatch(t -> t.shape().isDynamic());
            Tensor.closeAll(results);
            assertThat(answer(model, invocation, wanted.subList(0, 1), 1)).isNotEmpty();
        }
    }

    /** Invocations share nothing that a run changes. */
    @Test
    public void runsSideBySideGiveTheirOwnAnswers() throws Exception {
        ExecutorService pool = Threads.pool("contract", THREADS);
        try (BackendModel model = load()) {
            List<String> outputs = outputs(model);
            byte[][] expected = new byte[RUNS][];
            try (Invocation invocation = model.newInvocation()) {
                for (int i = 0; i < RUNS; i++) {
                    expected[i] = answer(model, invocation, outputs, i);
                }
            }
            List<Future<Integer>> equal = new ArrayList<>();
            for (int t = 0; t < THREADS; t++) {
                equal.add(pool.submit(() -> {
                    int same = 0;
                    try (Invocation invocation = model.newInvocation()) {
                        for (int i = 0; i < RUNS; i++) {
                            same += java.util.Arrays.equals(answer(model, invocation, outputs, i), expected[i]) ? 1 : 0;
                        }
                    }
                    return same;
                }));
            }
            for (Future<Integer> same : equal) {
                assertThat(same.get(60, TimeUnit.SECONDS)).isEqualTo(RUNS);
            }
        } finally {
            pool.shutdown();
        }
    }

    /** A cancellation that comes too late, or before a run, harms no later run. */
    @Test
    public void cancellingNothingDoesNothing() {
        try (BackendModel model = load();
                Invocation invocation = model.newInvocation()) {
            invocation.cancel();
            byte[] first = answer(model, invocation, outputs(model), 2);
            invocation.cancel();
            assertThat(answer(model, invocation, outputs(model), 2)).isEqualTo(first);
        }
    }

    /** What a backend has filled in, it takes as it is, and adds nothing when it is told to add nothing. */
    @Test
    public void aWholeConfigurationIsOnlyChecked() {
        ModelSource source = model(directory);
        ModelConfig whole;
        try (BackendModel model = load()) {
            whole = model.config();
        }
        try (BackendModel again = backend().load(source, whole, new BackendContext(2, directory, Map.of(), false))) {
            assertThat(again.config()).isEqualTo(whole);
        }
    }

    /** See {@link Backend#load}. */
    @Test
    public void aBrokenModelIsTheOperatorsFaultAndSaysWhichFile() {
        ModelSource source = brokenModel(directory);
        assertThatThrownBy(() -> backend()
                        .load(source, config(source.id().model()), context())
                        .close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(Code.INVALID_ARGUMENT);
                    assertThat(e.remedy()).isNotBlank();
                });
    }
}
