// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.DefaultEventLoop;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Time passes only where a test says so: the event loop is that of a channel without a socket. */
class ConnectionChecksTest {
    private static final long PERIOD = 8000;

    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final ConnectionChecks checks = new ConnectionChecks(channel.eventLoop(), PERIOD);

    ConnectionChecksTest() {
        channel.freezeTime();
    }

    @AfterEach
    void close() {
        channel.close();
    }

    private void pass(long millis) {
        channel.advanceTimeBy(millis, TimeUnit.MILLISECONDS);
        channel.runScheduledPendingTasks();
    }

    @Test
    void aCheckRunsOnceInEachPeriodAndNotAtOnce() {
        List<Integer> ran = new ArrayList<>();
        var first = checks.begin(() -> ran.add(1));
        pass(PERIOD * 7 / 8);
        assertThat(ran).isEmpty();
        pass(PERIOD / 8);
        assertThat(ran).containsExactly(1);
        for (int i = 0; i < 16; i++) {
            pass(PERIOD / 16);
        }
        assertThat(ran).containsExactly(1, 1);
        first.end();
        first.end();
        pass(2 * PERIOD);
        assertThat(ran).containsExactly(1, 1);
    }

    @Test
    void withoutConnectionsNothingIsScheduled() {
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
        var check = checks.begin(() -> {});
        assertThat(channel.runScheduledPendingTasks()).isPositive();
        check.end();
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
    }

    @Test
    void aFailureDoesNotEndTheChecksOfOthers() {
        List<Integer> ran = new ArrayList<>();
        checks.begin(() -> ran.add(1));
        checks.begin(() -> {
            throw new IllegalStateException("this check fails");
        });
        checks.begin(() -> ran.add(3));
        pass(PERIOD);
        pass(PERIOD);
        assertThat(ran).contains(1, 3).hasSizeGreaterThanOrEqualTo(4);
    }

    @Test
    void checksMayEndThemselvesAndOthersBegin() {
        Random random = new Random(3);
        Map<Integer, ConnectionChecks.Check> open = new HashMap<>();
        Map<Integer, Integer> runs = new HashMap<>();
        for (int i = 0; i < 1000; i++) {
            int id = i;
            open.put(id, checks.begin(() -> {
                runs.merge(id, 1, Integer::sum);
                if (id % 3 == 0) {
                    open.remove(id).end();
                }
            }));
            if (random.nextInt(10) == 0) {
                pass(PERIOD / 16);
            }
        }
        runs.clear();
        // All that are left run exactly as often; those that have ended do not run.
        List<Integer> left = new ArrayList<>(open.keySet());
        for (int i = 0; i < 16; i++) {
            pass(PERIOD / 16);
        }
        assertThat(runs.keySet()).containsExactlyInAnyOrderElementsOf(left);
        assertThat(runs.values()).containsOnly(1);
        runs.clear();
        for (int i = 0; i < 16; i++) {
            pass(PERIOD / 16);
        }
        assertThat(runs.keySet()).allMatch(id -> id % 3 != 0).hasSize(1000 - 334);
    }

    @Test
    void aShortPeriodIsKept() throws Exception {
        EventLoop loop = new DefaultEventLoop();
        try {
            ConnectionChecks quick = new ConnectionChecks(loop, 20);
            CountDownLatch ran = new CountDownLatch(3);
            loop.submit(() -> quick.begin(ran::countDown)).get();
            assertThat(ran.await(20, TimeUnit.SECONDS)).isTrue();
        } finally {
            loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }
}
