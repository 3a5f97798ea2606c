// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The results of runs and the other frames of a worker are handled in the order in which the worker has sent them. */
class FrameOrderTest {
    private final FrameOrder order = new FrameOrder();
    private final List<String> handled = Collections.synchronizedList(new ArrayList<>());

    /** Starts a thread that handles something after a wait; returns when it waits, or has not waited at all. */
    private CompletableFuture<Void> waiting(Consumer<FrameOrder> wait, String then) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            wait.accept(order);
            handled.add(then);
            done.complete(null);
        });
        thread.start();
        while (thread.isAlive() && thread.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        return done;
    }

    private void frame(String name) {
        handled.add(name);
        order.frameHandled();
    }

    @Test
    void aResultIsHandledAfterTheFramesThatWereSentBeforeIt() throws Exception {
        frame("frame 1");
        CompletableFuture<Void> result = waiting(o -> o.awaitFrames(3), "result");
        frame("frame 2");
        frame("frame 3");
        result.get(30, TimeUnit.SECONDS);
        assertThat(handled).containsExactly("frame 1", "frame 2", "frame 3", "result");
    }

    @Test
    void aFrameIsHandledAfterTheResultsThatWereSentBeforeIt() throws Exception {
        CompletableFuture<Void> frame = waiting(o -> o.awaitRun(2), "frame");
        handled.add("result 1");
        order.runHandled(1);
        handled.add("result 2");
        order.runHandled(2);
        frame.get(30, TimeUnit.SECONDS);
        assertThat(handled).containsExactly("result 1", "result 2", "frame");
    }

    @Test
    void theNumbersOfRunsStartAgainBelowZero() throws Exception {
        order.runHandled(Integer.MAX_VALUE);
        CompletableFuture<Void> frame = waiting(o -> o.awaitRun(Integer.MIN_VALUE), "frame");
        handled.add("result");
        order.runHandled(Integer.MIN_VALUE);
        frame.get(30, TimeUnit.SECONDS);
        assertThat(handled).containsExactly("result", "frame");
    }

    @Test
    void theEndOfTheWorkerEndsTheWaits() throws Exception {
        CompletableFuture<Void> result =
                waiting(o -> assertThat(o.awaitFrames(1)).isFalse(), "result");
        CompletableFuture<Void> frame = waiting(o -> o.awaitRun(1), "frame");
        order.close();
        result.get(30, TimeUnit.SECONDS);
        frame.get(30, TimeUnit.SECONDS);
        assertThat(order.awaitFrames(0)).isTrue();
    }
}
