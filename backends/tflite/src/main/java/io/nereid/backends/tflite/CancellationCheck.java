// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.Interpreter;
import org.jspecify.annotations.Nullable;

/**
 * The function that TensorFlow Lite asks before each node whether to go on. It asks on the thread that runs the model,
 * so the flag of a run is kept per thread, between {@link #watch} and {@link #unwatch}. Thread-safe; one for the
 * process, because each callback object needs a native function pointer of its own.
 */
final class CancellationCheck extends Interpreter.Check_cancelled_func_Pointer {
    private static final ThreadLocal<@Nullable AtomicBoolean> FLAGS = new ThreadLocal<>();

    CancellationCheck() {}

    /** Begins a run on this thread, which stops before the next node once the flag is true. */
    void watch(AtomicBoolean cancelled) {
        FLAGS.set(cancelled);
    }

    /** Ends the run on this thread. */
    void unwatch() {
        FLAGS.remove();
    }

    /** Called by TensorFlow Lite. Must not throw, because the exception would pass through native code. */
    @Override
    public boolean call(Pointer unused) {
        AtomicBoolean cancelled = FLAGS.get();
        return cancelled != null && cancelled.get();
    }
}
