// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import com.sun.jna.Native;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives way to serving while loading and unloading: on Linux, each thread has a niceness and a policy of its own. Thread-safe.
 *
 * <p>Niceness alone divides the processors' time; who waits for a processor that a nicer thread is on waits for the end of its
 * slice, some milliseconds. Under the policy for idle time a thread gives its processor back at once. But it may also never
 * get one while others want them all, and meanwhile hold what serving needs. So whoever has got next to nothing is merely nice for a while.
 *
 * <p>A thread inherits both from the one that starts it, and a process as well, and the pools and workers that a backend starts
 * while it loads are those that serve later. So both are taken back from all of them when the load ends, which takes the right to do so (CAP_SYS_NICE, or a
 * limit such as {@code ulimit -e 20}); without it, nothing is changed in the first place.
 */
final class LoadPriority {
    private static final Logger LOG = LoggerFactory.getLogger(LoadPriority.class);

    /** What {@link #lower} returns when it has done nothing. */
    static final int UNCHANGED = -1;

    private static final long SMALL = 32L << 20;

    /** How often is looked whether loads get anything. */
    static final Duration LOOK = Duration.ofMillis(250);

    /** How long loads are merely nice after they have got too little. */
    static final Duration CROWDED = Duration.ofSeconds(10);

    /** Most time that loads wait for processors, as a multiple of the time that they are on one. */
    private static final long MOST_WAITING = 50;

    private final Os os;
    private final int niceness;
    private final Clock clock;
    private final Delays delays;
    private final Set<Integer> loading = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean asked = new AtomicBoolean();
    private final AtomicBoolean looking = new AtomicBoolean();
    private volatile boolean usable;
    private volatile boolean idleUsable;
    private volatile int usual;
    private volatile int lowered;
    private volatile @Nullable Long crowdedUntil;

    /** Loads are nicer by {@code niceness} (0 to 19); 0 for not at all, and then the system is not asked. */
    LoadPriority(int niceness, Os os, Clock clock, Delays delays) {
        this.niceness = niceness;
        this.os = os;
        this.clock = clock;
        this.delays = delays;
    }

    /** Whether somebody may wait for a load, and the others will hardly notice it: a small model that nothing serves yet. */
    static boolean hurries(boolean served, long bytes) {
        return !served && bytes < SMALL;
    }

    /**
     * Makes the calling thread give way. To be undone by {@link #restore} with what this returns, on the same thread.
     *
     * @param hurries whether it is merely nice
     */
    int lower(boolean hurries) {
        if (niceness <= 0 || !usable()) {
            return UNCHANGED;
        }
        try {
            int thread = os.current();
            loading.add(thread);
            boolean idle = !hurries && idleUsable && !crowded();
            if (idle) {
                // Before anything is lowered: the thread that looks may have to be started, and must not inherit it.
                lookLater();
            }
            if (os.set(thread, lowered)) {
                if (idle) {
                    var unused = os.idle(thread, true);
                }
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
            raiseStarted(thread);
            raise(thread);
            for (int other : os.all()) {
                if (!loading.contains(other) && os.get(other) == lowered) {
                    raiseStarted(other);
                    raise(other);
                }
            }
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.warn("the priority of a loaded model's threads could not be raised again", e);
        }
    }

    private void raiseStarted(int thread) {
        lowerStarted(thread).forEach(this::raise);
    }

    /** The lowered threads of processes that a thread has started. */
    private List<Integer> lowerStarted(int thread) {
        try {
            return os.started(thread).stream()
                    .filter(started -> os.get(started) == lowered)
                    .toList();
        } catch (IOException e) {
            LOG.debug("thread {} ended while it was looked at, or nobody knows what it started", thread, e);
            return List.of();
        }
    }

    private void raise(int thread) {
        if (idleUsable) {
            var unused = os.idle(thread, false);
        }
        var unused = os.set(thread, usual);
    }

    private boolean crowded() {
        Long until = crowdedUntil;
        return until != null && clock.nanos() - until < 0;
    }

    private void lookLater() {
        if (looking.compareAndSet(false, true)) {
            Map<Integer, Os.Share> before = shares();
            delays.after(LOOK, () -> look(before));
        }
    }

    /** Looks whether loads have got anything since the last look. */
    private void look(Map<Integer, Os.Share> before) {
        looking.set(false);
        if (loading.isEmpty() || crowded()) {
            return;
        }
        long ran = 0;
        long waited = 0;
        for (Map.Entry<Integer, Os.Share> now : shares().entrySet()) {
            Os.Share then = before.get(now.getKey());
            if (then != null) {
                ran += now.getValue().ran() - then.ran();
                waited += now.getValue().waited() - then.waited();
            }
        }
        if (waited > LOOK.toNanos() / 2 && waited > MOST_WAITING * ran) {
            crowdedUntil = clock.nanos() + CROWDED.toNanos();
            LOG.debug("loads get next to no processor time; for {} s they are merely nice", CROWDED.toSeconds());
            try {
                for (int thread : givingWay()) {
                    var unused = os.idle(thread, false);
                }
            } catch (IOException | RuntimeException | LinkageError e) {
                LOG.warn("loads that wait for a processor could not be given more of it", e);
            }
        } else {
            lookLater();
        }
    }

    /** Threads that give way, those of processes that they have started among them. */
    private List<Integer> givingWay() throws IOException {
        List<Integer> threads = new ArrayList<>();
        for (int thread : os.all()) {
            if (os.get(thread) == lowered) {
                threads.add(thread);
                threads.addAll(lowerStarted(thread));
            }
        }
        return threads;
    }

    /** What each thread that gives way has had so far. */
    private Map<Integer, Os.Share> shares() {
        Map<Integer, Os.Share> shares = new HashMap<>();
        try {
            for (int thread : givingWay()) {
                shares.put(thread, os.share(thread));
            }
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("a thread ended while it was looked at", e);
        }
        return shares;
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
            if (!(lowered > usual && os.set(me, lowered) && os.set(me, usual) && os.get(me) == usual)) {
                return false;
            }
            idleUsable = tryIdle(me);
            return true;
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("priorities cannot be changed here", e);
            return false;
        }
    }

    /** Whether any thread is said to have run; of a new one the system may not know it yet. */
    private boolean sharesAreKnown() throws IOException {
        for (int thread : os.all()) {
            if (os.share(thread).ran() > 0) {
                return true;
            }
        }
        return false;
    }

    private boolean tryIdle(int me) {
        try {
            // Where nobody knows how long threads wait, or which processes they start, these might wait for ever.
            return os.started(me).isEmpty()
                    && sharesAreKnown()
                    && os.idle(me, true)
                    && os.idle(me, false)
                    && !os.idle(me);
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("there is no policy for idle time here", e);
            return false;
        }
    }

    /** What the operating system knows of this process's threads, by their numbers there. Thread-safe. */
    interface Os {
        /** The calling thread. */
        int current() throws IOException;

        /** Every thread of the process. */
        List<Integer> all() throws IOException;

        /** Every thread of the processes that a thread of this one has started, and of those that they have started. */
        List<Integer> started(int thread) throws IOException;

        /** A thread's niceness. */
        int get(int thread);

        /** Sets it; false when that is not allowed. */
        boolean set(int thread, int niceness);

        /** Whether a thread gets only time that nobody else wants. */
        boolean idle(int thread);

        /** Has a thread get only such time, or its usual share; false when that is not allowed. */
        boolean idle(int thread, boolean idle);

        /** What a thread has had of the processors since it began. */
        Share share(int thread) throws IOException;

        /** Times in nanoseconds on a processor, and waiting for one. */
        record Share(long ran, long waited) {}
    }

    /** Linux through its C library; elsewhere everything fails. */
    static Os system() {
        return new Os() {
            /** For setpriority, a number means a thread. */
            private static final int PRIO_PROCESS = 0;

            private static final int SCHED_OTHER = 0;
            private static final int SCHED_IDLE = 5;

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
            public List<Integer> started(int thread) throws IOException {
                List<Integer> threads = new ArrayList<>();
                addStarted(Path.of("/proc/self/task/" + thread), threads);
                return threads;
            }

            private static void addStarted(Path thread, List<Integer> threads) throws IOException {
                String processes = Files.readString(thread.resolve("children")).trim();
                if (processes.isEmpty()) {
                    return;
                }
                for (String process : processes.split(" ")) {
                    try (Stream<Path> tasks = Files.list(Path.of("/proc/" + process + "/task"))) {
                        for (Path task : tasks.toList()) {
                            threads.add(Integer.parseInt(task.getFileName().toString()));
                            addStarted(task, threads);
                        }
                    } catch (IOException e) {
                        LOG.debug("process {} ended while it was looked at", process, e);
                    }
                }
            }

            @Override
            public int get(int thread) {
                return LibC.getpriority(PRIO_PROCESS, thread);
            }

            @Override
            public boolean set(int thread, int niceness) {
                return LibC.setpriority(PRIO_PROCESS, thread, niceness) == 0;
            }

            @Override
            public boolean idle(int thread) {
                return LibC.sched_getscheduler(thread) == SCHED_IDLE;
            }

            @Override
            public boolean idle(int thread, boolean idle) {
                int[] noPriority = {0};
                return LibC.sched_setscheduler(thread, idle ? SCHED_IDLE : SCHED_OTHER, noPriority) == 0;
            }

            @Override
            public Share share(int thread) throws IOException {
                String[] figures = Files.readString(Path.of("/proc/" + thread + "/schedstat"))
                        .trim()
                        .split(" ");
                return new Share(Long.parseLong(figures[0]), Long.parseLong(figures[1]));
            }
        };
    }

    /** Functions of the C library, called directly: a load calls them a hundred times. Not there where they cannot be bound. */
    @SuppressWarnings("MemberName") // they are called so there
    private static final class LibC {
        static {
            Native.register(LibC.class, "c");
        }

        private LibC() {}

        static native int getpriority(int which, int who);

        static native int setpriority(int which, int who, int niceness);

        static native int sched_getscheduler(int thread);

        static native int sched_setscheduler(int thread, int policy, int[] priority);
    }
}
