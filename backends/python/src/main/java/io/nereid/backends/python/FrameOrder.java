// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;

/**
 * The order of the frames that a worker sends over two sockets, which two threads read: the result of a run is
 * handled after the frames that were sent before it, and a frame after the results that were sent before it. Each side
 * waits only for what the worker has sent before, so they cannot wait for each other. Thread-safe, by its lock.
 */
final class FrameOrder {
    @GuardedBy("this") private long frames;

    @GuardedBy("this") private int runs;

    @GuardedBy("this") private int waiting;

    @GuardedBy("this") private boolean closed;

    /** One more frame has been handled. */
    synchronized void frameHandled() {
        frames++;
        wakeAll();
    }

    /** The result of this run, the last one, has been handled. */
    synchronized void runHandled(int number) {
        runs = number;
        wakeAll();
    }

    /** The worker has ended: no wait goes on. */
    synchronized void close() {
        closed = true;
        wakeAll();
    }

    @GuardedBy("this") private void wakeAll() {
        if (waiting > 0) {
            notifyAll();
        }
    }

    /** Waits until this many frames have been handled; false when the worker has ended before. */
    synchronized boolean awaitFrames(long count) {
        boolean interrupted = false;
        waiting++;
        while (frames < count && !closed) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        waiting--;
        restore(interrupted);
        return frames >= count;
    }

    /** Waits until the result of this run has been handled, or the worker has ended. */
    synchronized void awaitRun(int number) {
        boolean interrupted = false;
        waiting++;
        // A difference, because the numbers of runs start again below zero after the largest one.
        while (runs - number < 0 && !closed) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        waiting--;
        restore(interrupted);
    }

    private static void restore(boolean interrupted) {
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
