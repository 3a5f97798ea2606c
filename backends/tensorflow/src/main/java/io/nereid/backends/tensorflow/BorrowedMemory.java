// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.tensor.MemoryRegion;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.bytedeco.javacpp.Pointer;
import org.tensorflow.internal.c_api.Deallocator_Pointer_long_Pointer;

/**
 * Server memory that TensorFlow borrows for its input tensors, kept alive until TensorFlow calls the tensor's
 * deallocator. That is usually at the end of a run, but a variable or a result may share an input's buffer and keep it
 * for as long as it lives; so the end of the run must not release the memory.
 *
 * <p>Each loan has a number, which travels through TensorFlow as the deallocator's {@code void*} argument and is never
 * dereferenced. One instance serves the whole process, because each callback object needs a native function pointer of
 * its own, and JavaCPP has only a small fixed number of them per callback type. Thread-safe.
 */
final class BorrowedMemory extends Deallocator_Pointer_long_Pointer {
    private static final Logger LOG = System.getLogger(BorrowedMemory.class.getName());
    private static final long serialVersionUID = 1L;

    private final transient Map<Long, Runnable> open = new ConcurrentHashMap<>();
    private final transient AtomicLong last = new AtomicLong();

    private BorrowedMemory() {}

    /** Holder class: the callback is created on first use, when TensorFlow's library has been loaded. */
    private static final class Holder {
        static final BorrowedMemory LOANS = new BorrowedMemory();
    }

    static BorrowedMemory ofProcess() {
        return Holder.LOANS;
    }

    /** Retains a region until TensorFlow returns it, and returns the loan's number. */
    long lend(MemoryRegion region) {
        region.retain();
        return lend(region::release);
    }

    /** Like {@link #lend(MemoryRegion)}, with an action to run when TensorFlow returns the memory. */
    long lend(Runnable whenBack) {
        long number = last.incrementAndGet();
        open.put(number, whenBack);
        return number;
    }

    /** The number of loans that TensorFlow has not returned yet. */
    int open() {
        return open.size();
    }

    /** Called by TensorFlow, on any of its threads, when it does not need the memory any more. */
    @Override
    public void call(Pointer data, long length, Pointer number) {
        Runnable whenBack = open.remove(number == null ? 0L : number.address());
        if (whenBack == null) {
            LOG.log(Level.ERROR, "TensorFlow returned memory that it had not borrowed");
            return;
        }
        whenBack.run();
    }
}
