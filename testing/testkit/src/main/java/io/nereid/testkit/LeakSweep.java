// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import io.netty.buffer.PooledByteBufAllocator;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/**
 * Makes buffer leaks visible at the end of the test class that caused them. Netty's leak detector only speaks when the collector
 * has found a buffer <em>and</em> another buffer is allocated afterwards: without help the leaks of the last tests stay unsaid,
 * and the leak gate of the build has nothing to read. Found by the JUnit platform as a service. Stateless, hence thread-safe.
 */
public final class LeakSweep implements TestExecutionListener {
    private static final int ATTEMPTS = 3;
    private static final long WAIT_MILLIS = 500;

    /** Called by the service loader. */
    public LeakSweep() {}

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (test.getSource().filter(ClassSource.class::isInstance).isPresent()) {
            sweep();
        }
    }

    /** Collects garbage, waits until the collector has handed over what it found, and lets the leak detector report it. */
    static void sweep() {
        ReferenceQueue<Object> collected = new ReferenceQueue<>();
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            WeakReference<Object> marker = new WeakReference<>(new Object(), collected);
            System.gc();
            try {
                if (collected.remove(WAIT_MILLIS) == marker) {
                    break;
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
        PooledByteBufAllocator.DEFAULT.buffer(1).release();
    }
}
