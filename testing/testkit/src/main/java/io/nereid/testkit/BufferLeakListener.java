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
 * Reports buffer leaks at the end of the test class that caused them. Netty's leak detector reports a leak only when
 * the garbage collector has found the buffer <em>and</em> another buffer is allocated afterwards. Without this listener
 * the leaks of the last tests would not be reported, and the build could not fail on them. The JUnit platform finds it
 * as a service. Stateless and thread-safe.
 */
public final class BufferLeakListener implements TestExecutionListener {
    private static final int ATTEMPTS = 3;
    private static final long WAIT_MILLIS = 500;

    /** Called by the service loader. */
    public BufferLeakListener() {}

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (test.getSource().filter(ClassSource.class::isInstance).isPresent()) {
            sweep();
        }
    }

    /** Collects garbage, waits until the references are enqueued, and allocates, so that the leak detector reports. */
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
