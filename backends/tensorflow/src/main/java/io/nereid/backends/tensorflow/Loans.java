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
 * Memory of ours that the engine reads, kept until the engine lets go of it: usually at the end of a run, but a variable
 * or a result may hold on to what it was given for as long as it likes. Thread-safe. One for the process, because the
 * engine is given the address of a function, of which there are few.
 */
final class Loans extends Deallocator_Pointer_long_Pointer {
    private static final Logger LOG = System.getLogger(Loans.class.getName());
    private static final long serialVersionUID = 1L;

    private final transient Map<Long, Runnable> open = new ConcurrentHashMap<>();
    private final transient AtomicLong last = new AtomicLong();

    private Loans() {}

    /** Held apart so that the engine's library is loaded first. */
    private static final class Holder {
        static final Loans LOANS = new Loans();
    }

    static Loans ofProcess() {
        return Holder.LOANS;
    }

    /** Keeps a region, and gives the number under which the engine gives it back. */
    long lend(MemoryRegion region) {
        region.retain();
        return lend(region::release);
    }

    /** As {@link #lend(MemoryRegion)}, with something else to do when the engine has let go. */
    long lend(Runnable whenBack) {
        long number = last.incrementAndGet();
        open.put(number, whenBack);
        return number;
    }

    /** How many are out. */
    int open() {
        return open.size();
    }

    /** Called by the engine, on any thread. */
    @Override
    public void call(Pointer data, long length, Pointer number) {
        Runnable whenBack = open.remove(number == null ? 0L : number.address());
        if (whenBack == null) {
            LOG.log(Level.ERROR, "the engine gave back memory that it was not lent");
            return;
        }
        whenBack.run();
    }
}
