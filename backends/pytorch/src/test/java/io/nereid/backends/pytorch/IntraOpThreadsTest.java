// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.pytorch.jni.JniUtils;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** How many threads a run has, and which thread makes it. */
@Engine
class IntraOpThreadsTest {
    private static final IntraOpThreads ONE = new IntraOpThreads(1);
    private static final IntraOpThreads TWO = new IntraOpThreads(2);
    private static final IntraOpThreads THREE = new IntraOpThreads(3);

    @BeforeAll
    static void start() {
        assertThat(Models.BACKEND.unavailableReason()).isNull();
    }

    @Test
    void eachRunHasTheThreadsOfItsModelWhateverRanBefore() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            assertThat(ONE.run(JniUtils::getNumThreads)).isEqualTo(1);
            assertThat(TWO.run(JniUtils::getNumThreads)).isEqualTo(2);
            assertThat(ONE.run(JniUtils::getNumThreads)).isEqualTo(1);
            assertThat(THREE.run(JniUtils::getNumThreads)).isEqualTo(3);
            assertThat(TWO.run(JniUtils::getNumThreads)).isEqualTo(2);
            assertThat(other.submit(JniUtils::getNumThreads).get())
                    .as("a thread that libtorch starts")
                    .isEqualTo(1);
            assertThat(other.submit(() -> ONE.run(JniUtils::getNumThreads)).get())
                    .isEqualTo(1);
            assertThat(TWO.runHere(JniUtils::getNumThreads)).isEqualTo(2);
            assertThat(ONE.run(JniUtils::getNumThreads)).isEqualTo(1);
        } finally {
            other.shutdown();
        }
    }

    @Test
    void oneThreadMakesTheRunsOfManyThreadsThatFollowEachOther() throws Exception {
        Thread maker = TWO.run(Thread::currentThread);
        assertThat(maker).isNotSameAs(Thread.currentThread());
        assertThat(ONE.run(Thread::currentThread)).isSameAs(Thread.currentThread());
        for (int i = 0; i < 50; i++) {
            CompletableFuture<Thread> used = new CompletableFuture<>();
            new Thread(() -> used.complete(TWO.run(Thread::currentThread))).start();
            assertThat(used.get(30, TimeUnit.SECONDS)).isSameAs(maker);
        }
    }

    @Test
    void runsAtTheSameTimeDoNotWaitForEachOther() throws Exception {
        CountDownLatch both = new CountDownLatch(2);
        Supplier<Boolean> meeting = () -> {
            both.countDown();
            try {
                return both.await(30, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        CompletableFuture<Boolean> other = new CompletableFuture<>();
        new Thread(() -> other.complete(TWO.run(meeting))).start();
        assertThat(TWO.run(meeting)).isTrue();
        assertThat(other.get(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void failuresAndInterruptsReachTheOneWhoAsked() {
        assertThatThrownBy(() -> TWO.run(() -> {
                    throw new IllegalArgumentException("wrong");
                }))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("wrong");
        Thread.currentThread().interrupt();
        assertThat(TWO.run(() -> "done")).isEqualTo("done");
        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void configuredThreadsWinAndAnswersAreTheSame() {
        // Large enough that libtorch divides the work among threads.
        int count = 100_000;
        float[] alone = answer(Map.of("INTRA_OP_THREAD_COUNT", "1"), count);
        assertThat(answer(Map.of("INTRA_OP_THREAD_COUNT", "2"), count)).isEqualTo(alone);
        assertThat(answer(Map.of(), count)).isEqualTo(alone);
        assertThat(alone[count - 1]).isEqualTo((count - 1) / 2f + 2);
        try (PtModel one = model(Map.of("INTRA_OP_THREAD_COUNT", "1"));
                PtModel open = model(Map.of())) {
            assertThat(one.wide()).isNull();
            assertThat(open.wide()).isNotNull();
        }
    }

    private static PtModel model(Map<String, String> parameters) {
        ModelConfig config = ModelConfig.unspecified("half_plus_two").toBuilder()
                .parameters(parameters)
                .build();
        return (PtModel) Models.BACKEND.load(
                Models.source("half_plus_two"), config, new BackendContext(2, Models.root(), Map.of()));
    }

    /** The last of many answers, of runs on a machine that is now idle and now busy. */
    private static float[] answer(Map<String, String> parameters, int count) {
        float[] values = new float[count];
        try (BackendModel model = model(parameters);
                ModelInstance instance = model.newInstance();
                Tensor input = Tensor.allocate("x", DataType.FP32, Shape.of(count))) {
            for (int i = 0; i < count; i++) {
                input.buffer().putFloat(4 * i, i);
            }
            for (int idle = 0; idle < 60; idle++) {
                List<Tensor> outputs = instance.run(List.of(input), List.of("OUTPUT__0"), idle % 3);
                outputs.get(0).buffer().asFloatBuffer().get(values);
                Tensor.closeAll(outputs);
            }
        }
        return values;
    }
}
