// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class TimerTest {
    private final List<String> ran = new CopyOnWriteArrayList<>();

    private static void await(CountDownLatch latch) throws InterruptedException {
        assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
    }

    private static void hold(CountDownLatch latch) {
        try {
            latch.await(20, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void runsTasksInTheOrderOfTheirDelaysOnItsOwnThread() throws Exception {
        CountDownLatch last = new CountDownLatch(1);
        try (Timer timer = Timer.threaded("timer-test")) {
            timer.after(TimeUnit.MILLISECONDS.toNanos(50), () -> {
                ran.add("late");
                last.countDown();
            });
            timer.after(0, () -> ran.add(Thread.currentThread().getName()));
            await(last);
        }
        assertThat(ran).containsExactly("timer-test-1", "late");
    }

    @Test
    void aCancelledTaskDoesNotRun() throws Exception {
        CountDownLatch cancelled = new CountDownLatch(1);
        CountDownLatch last = new CountDownLatch(1);
        try (Timer timer = Timer.threaded("timer-test")) {
            // Holds the timer's thread until the task behind it is cancelled.
            timer.after(0, () -> hold(cancelled));
            Timer.ScheduledTask task = timer.after(0, () -> ran.add("cancelled"));
            timer.after(0, last::countDown);
            task.cancel();
            cancelled.countDown();
            await(last);
        }
        assertThat(ran).isEmpty();
    }

    @Test
    void aClosedTimerDropsTasks() {
        Timer timer = Timer.threaded("timer-test");
        timer.after(TimeUnit.MILLISECONDS.toNanos(1), () -> ran.add("before"));
        timer.close();
        timer.after(0, () -> ran.add("after")).cancel();
        assertThat(ran).doesNotContain("after");
    }
}
