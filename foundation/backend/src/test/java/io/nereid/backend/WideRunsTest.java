// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.WideRuns.VariantOpener;
import io.nereid.base.Clock;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Time passes only where a test says so. */
class WideRunsTest {
    private static final long SLOW = 10_000_000;

    private final AtomicLong now = new AtomicLong();
    private final Clock clock = new Clock() {
        @Override
        public long nanos() {
            return now.get();
        }

        @Override
        public long millis() {
            return now.get() / 1_000_000;
        }
    };
    private final AtomicInteger opened = new AtomicInteger();
    private final CompletableFuture<@Nullable Wide> second = new CompletableFuture<>();
    private long available = Long.MAX_VALUE;

    /** Counts its holds. */
    private static final class Wide implements WideRuns.RunVariant {
        final AtomicInteger holds = new AtomicInteger(1);
        volatile boolean free = true;

        @Override
        public boolean hold() {
            return free && holds.incrementAndGet() > 1;
        }

        @Override
        public void drop() {
            holds.decrementAndGet();
        }
    }

    private WideRuns<Wide> wideRuns(VariantOpener<Wide> opener) {
        return new WideRuns<>(
                "m",
                "threads",
                2,
                1,
                1000,
                threads -> {
                    assertThat(threads).isEqualTo(2);
                    opened.incrementAndGet();
                    Wide wide = null;
                    try {
                        wide = opener.open(threads);
                        return wide;
                    } finally {
                        second.complete(wide);
                    }
                },
                () -> available,
                clock);
    }

    /** How a run on an idle machine was made. */
    private enum Way {
        NOT_CONSIDERED,
        NARROW,
        WIDE
    }

    private Way run(WideRuns<Wide> runs, int idle, long narrowNanos, long wideNanos) {
        return run(runs, idle, narrowNanos, wideNanos, List.of());
    }

    private Way run(WideRuns<Wide> runs, int idle, long narrowNanos, long wideNanos, List<Tensor> inputs) {
        if (!runs.considers(idle)) {
            return Way.NOT_CONSIDERED;
        }
        List<Way> used = new ArrayList<>();
        runs.run(inputs, wide -> {
            used.add(wide == null ? Way.NARROW : Way.WIDE);
            assertThat(wide == null || wide.holds.get() == 2)
                    .as("held during the run")
                    .isTrue();
            now.addAndGet(wide == null ? narrowNanos : wideNanos);
            return List.of();
        });
        assertThat(used).hasSize(1);
        return used.get(0);
    }

    /** Runs until the wide way is open. */
    private Wide opened(WideRuns<Wide> runs) throws Exception {
        for (int i = 0; i < WideRuns.RUNS; i++) {
            assertThat(runs.isOpen()).isFalse();
            assertThat(run(runs, 1, SLOW, 0)).isEqualTo(Way.NARROW);
        }
        Wide wide = second.get(30, TimeUnit.SECONDS);
        while (!runs.isOpen()) {
            Thread.onSpinWait();
        }
        return wide;
    }

    @Test
    void aSlowModelGetsWideRunsOnAnIdleMachine() throws Exception {
        WideRuns<Wide> wide = wideRuns(threads -> new Wide());
        Wide held = opened(wide);
        for (int i = 0; i < WideRuns.RUNS; i++) {
            // in turns, until each kind has been timed often enough
            assertThat(run(wide, 1, SLOW, SLOW / 2)).isEqualTo(Way.NARROW);
            assertThat(run(wide, 1, SLOW, SLOW / 2)).isEqualTo(Way.WIDE);
        }
        for (int i = 0; i < 3; i++) {
            assertThat(run(wide, 1, SLOW, SLOW / 2)).isEqualTo(Way.WIDE);
        }
        assertThat(wide.considers(0)).as("a busy machine").isFalse();
        assertThat(wide.isOpen()).isTrue();
        assertThat(opened).hasValue(1);
        held.free = false;
        assertThat(run(wide, 1, SLOW, SLOW / 2)).as("another run has it").isEqualTo(Way.NARROW);
        assertThat(held.holds).hasValue(1);
        wide.close();
        assertThat(held.holds).hasValue(0);
        assertThat(wide.isOpen()).isFalse();
        assertThat(wide.considers(1)).isFalse();
    }

    @Test
    void aWayThatGainsLittleIsClosed() throws Exception {
        WideRuns<Wide> wide = wideRuns(threads -> new Wide());
        Wide held = opened(wide);
        for (int i = 0; i < 2 * WideRuns.RUNS; i++) {
            run(wide, 1, SLOW, SLOW * 9 / 10);
        }
        assertThat(wide.isOpen()).isFalse();
        assertThat(held.holds).hasValue(0);
        assertThat(wide.considers(1)).isFalse();
    }

    @Test
    void aFastModelIsOnlyWatchedNowAndThen() {
        WideRuns<Wide> wide = wideRuns(threads -> new Wide());
        int considered = 0;
        for (int i = 0; i < 1600; i++) {
            considered += run(wide, 1, WideRuns.WORTH_NANOS / 2, 0) == Way.NOT_CONSIDERED ? 0 : 1;
        }
        assertThat(considered).isBetween(100, 110);
        assertThat(opened).hasValue(0);
        // the requests grow
        for (int i = 0; i < 1600 && opened.get() == 0; i++) {
            run(wide, 1, SLOW, 0);
        }
        assertThat(second).succeedsWithin(java.time.Duration.ofSeconds(30));
        wide.close();
    }

    @Test
    void whatCannotBeOpenedIsNotTriedAgain() throws Exception {
        for (VariantOpener<Wide> opener : List.<VariantOpener<Wide>>of(threads -> null, threads -> {
            throw new IOException("gone");
        })) {
            WideRuns<Wide> wide = wideRuns(opener);
            for (int i = 0; i < WideRuns.RUNS; i++) {
                run(wide, 1, SLOW, 0);
            }
            second.get(30, TimeUnit.SECONDS);
            while (wide.considers(1)) {
                Thread.onSpinWait();
            }
            assertThat(wide.isOpen()).isFalse();
        }
    }

    @Test
    void aModelThatIsClosedMeanwhileGetsNone() throws Exception {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        Wide made = new Wide();
        WideRuns<Wide> wide = wideRuns(threads -> {
            closed.get();
            return made;
        });
        for (int i = 0; i < WideRuns.RUNS; i++) {
            run(wide, 1, SLOW, 0);
        }
        wide.close();
        closed.complete(null);
        second.get(30, TimeUnit.SECONDS);
        while (made.holds.get() > 0) {
            Thread.onSpinWait();
        }
        assertThat(wide.isOpen()).isFalse();
    }

    @Test
    void scarceMemoryKeepsRunsNarrow() {
        available = 1999;
        WideRuns<Wide> wide = wideRuns(threads -> new Wide());
        for (int i = 0; i < WideRuns.RUNS; i++) {
            run(wide, 1, SLOW, 0);
        }
        while (wide.considers(1)) {
            Thread.onSpinWait();
        }
        assertThat(opened).hasValue(0);
    }

    @Test
    void requestsOfOtherSizesAreComparedByTheirBytes() throws Exception {
        WideRuns<Wide> wide = wideRuns(threads -> new Wide());
        opened(wide);
        try (Tensor small = Tensor.allocate("x", DataType.UINT8, Shape.of(999));
                Tensor large = Tensor.allocate("x", DataType.UINT8, Shape.of(3999))) {
            for (int i = 0; i < WideRuns.RUNS; i++) {
                // Each wide run takes twice as long as the narrow one before it, for four times the input.
                run(wide, 1, SLOW, 0, List.of(small));
                run(wide, 1, 0, 2 * SLOW, List.of(large));
            }
        }
        assertThat(run(wide, 1, SLOW, SLOW)).isEqualTo(Way.WIDE);
    }

    @Test
    void whereNothingCanBeGainedRunsStayNarrow() {
        assertThat(choice(2, true, 1000)).isNotNull();
        assertThat(choice(1, true, 0)).as("one thread").isNull();
        assertThat(choice(2, false, 1000))
                .as("models keep to the memory of their load")
                .isNull();
        assertThat(choice(2, false, 0)).as("wide runs that take no memory").isNotNull();
    }

    private static @Nullable WideRuns<Wide> choice(int cores, boolean spareMemory, long memory) {
        BackendContext context = new BackendContext(cores, Path.of("."), Map.of()).withSpareMemory(spareMemory);
        return WideRuns.of(context, "m", "threads", memory, threads -> new Wide());
    }
}
