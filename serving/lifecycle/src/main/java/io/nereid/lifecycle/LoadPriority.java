// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import io.nereid.base.Threads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives way to serving while loading: on Linux, each thread has a niceness of its own. Thread-safe.
 *
 * <p>A thread inherits the niceness of the one that starts it, and the pools that a backend starts while it loads are
 * those that serve later. So the niceness is taken back from all of them when the load ends, which takes the right to do
 * so (CAP_SYS_NICE, or a limit such as {@code ulimit -e 20}); without it, nothing is changed in the first place.
 */
final class LoadPriority {
    private static final Logger LOG = LoggerFactory.getLogger(LoadPriority.class);

    /** What {@link #lower} returns when it has done nothing. */
    static final int UNCHANGED = -1;

    private final Os os;
    private final int niceness;
    private final Set<Integer> loading = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean asked = new AtomicBoolean();
    private volatile boolean usable;
    private volatile int usual;
    private volatile int lowered;

    /** Loads are nicer by {@code niceness} (0 to 19); 0 for not at all, and then the system is not asked. */
    LoadPriority(int niceness, Os os) {
        this.niceness = niceness;
        this.os = os;
    }

    /** Makes the calling thread give way. To be undone by {@link #restore} with what this returns, on the same thread. */
    int lower() {
        if (niceness <= 0 || !usable()) {
            return UNCHANGED;
        }
        try {
            int thread = os.current();
            loading.add(thread);
            if (os.set(thread, lowered)) {
                return thread;
            }
            loading.remove(thread);
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("the priority of a load could not be changed", e);
        }
        return UNCHANGED;
    }

    /** Gives the calling thread its usual priority back, and all the threads that were started by loads. */
    void restore(int thread) {
        if (thread == UNCHANGED) {
            return;
        }
        loading.remove(thread);
        try {
            for (int other : os.all()) {
                if (!loading.contains(other) && os.get(other) == lowered) {
                    var unused = os.set(other, usual);
                }
            }
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.warn("the priority of a loaded model's threads could not be raised again", e);
        }
    }

    /** Whether what is done can be undone: tried once, on a thread of its own. */
    private synchronized boolean usable() {
        if (asked.compareAndSet(false, true)) {
            Thread trial = Threads.named("load-priority").newThread(() -> usable = tryOut());
            trial.start();
            try {
                trial.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
            if (!usable) {
                LOG.info("loads run at the usual priority: this process may not change that of its threads back"
                        + " (on Linux, CAP_SYS_NICE or 'ulimit -e 20' allow it)");
            }
        }
        return usable;
    }

    private boolean tryOut() {
        try {
            int me = os.current();
            usual = os.get(me);
            lowered = Math.min(19, usual + niceness);
            return lowered > usual && os.set(me, lowered) && os.set(me, usual) && os.get(me) == usual;
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("priorities cannot be changed here", e);
            return false;
        }
    }

    /** What the operating system knows of this process's threads, by their numbers there. Thread-safe. */
    interface Os {
        /** The calling thread. */
        int current() throws IOException;

        /** Every thread of the process. */
        List<Integer> all() throws IOException;

        /** A thread's niceness. */
        int get(int thread);

        /** Sets it; false when that is not allowed. */
        boolean set(int thread, int niceness);
    }

    /** Linux through its C library; elsewhere everything fails. */
    static Os system() {
        return new Os() {
            /** For setpriority, a number means a thread. */
            private static final int PRIO_PROCESS = 0;

            @Override
            public int current() throws IOException {
                if (!System.getProperty("os.name", "").toLowerCase(Locale.ROOT).startsWith("linux")) {
                    throw new IOException("threads have no niceness of their own here");
                }
                // Points to <process>/task/<thread>.
                Path self = Files.readSymbolicLink(Path.of("/proc/thread-self"));
                return Integer.parseInt(self.getFileName().toString());
            }

            @Override
            public List<Integer> all() throws IOException {
                List<Integer> threads = new ArrayList<>();
                try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
                    tasks.forEach(
                            p -> threads.add(Integer.parseInt(p.getFileName().toString())));
                }
                return threads;
            }

            @Override
            public int get(int thread) {
                return c("getpriority").invokeInt(new Object[] {PRIO_PROCESS, thread});
            }

            @Override
            public boolean set(int thread, int niceness) {
                return c("setpriority").invokeInt(new Object[] {PRIO_PROCESS, thread, niceness}) == 0;
            }

            private Function c(String name) {
                return NativeLibrary.getInstance("c").getFunction(name);
            }
        };
    }
}
