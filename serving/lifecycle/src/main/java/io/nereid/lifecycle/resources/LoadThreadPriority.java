// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.resources;

import com.sun.jna.Native;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.base.Timer;
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
 * Lowers the scheduling priority of threads that load and unload models, so that requests keep their latency. On Linux
 * each thread has its own niceness and scheduling policy; on other systems this class does nothing. Thread-safe.
 *
 * <p><b>Niceness and SCHED_IDLE.</b> Niceness only changes the shares of processor time: a request thread that becomes
 * ready while a nice thread runs still waits for the end of that time slice, some milliseconds. With the policy
 * SCHED_IDLE a load gives up the processor at once. But on a busy machine it may get no processor at all, and meanwhile
 * hold locks that requests need. So the loads are observed: when they get next to no processor time, SCHED_IDLE is
 * replaced by niceness for {@link #IDLE_POLICY_PAUSE}.
 *
 * <p><b>Inheritance.</b> Threads and processes inherit both properties from the thread that starts them, and the thread
 * pools and worker processes that a backend starts while it loads are the ones that later serve requests. At the end of
 * a load the priority of all of them is therefore raised again. That needs a permission (CAP_SYS_NICE, or a limit such
 * as {@code ulimit -e 20}); without it, priorities are never lowered in the first place.
 */
public final class LoadThreadPriority {
    private static final Logger LOG = LoggerFactory.getLogger(LoadThreadPriority.class);

    /** The result of {@link #lower} if it has changed nothing. */
    static final int UNCHANGED = -1;

    private static final long SMALL = 32L << 20;

    /** How often the processor time of loads is checked. */
    static final Duration CHECK_INTERVAL = Duration.ofMillis(250);

    /** How long loads use niceness instead of SCHED_IDLE after they got too little processor time. */
    static final Duration IDLE_POLICY_PAUSE = Duration.ofSeconds(10);

    /** The maximum time that loads wait for processors, as a multiple of the time that they run. */
    private static final long MOST_WAITING = 50;

    private final Os os;
    private final int niceness;
    private final Clock clock;
    private final Timer timer;
    private final Set<Integer> loading = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean checkScheduled = new AtomicBoolean();
    private @Nullable Thread trial; // guarded by this
    private volatile boolean usable;
    private volatile boolean idleUsable;
    private volatile int usual;
    private volatile int lowered;
    private volatile @Nullable Long idlePausedUntil;

    /**
     * Creates an instance.
     *
     * @param niceness added to the niceness of loads, 0 to 19; 0 to change nothing and make no system calls
     */
    public LoadThreadPriority(int niceness, Os os, Clock clock, Timer timer) {
        this.niceness = niceness;
        this.os = os;
        this.clock = clock;
        this.timer = timer;
    }

    /**
     * Returns whether a load is urgent and small enough not to disturb requests: a small model of which no version is
     * available, so that clients may be waiting for it.
     */
    public static boolean hurries(boolean served, long bytes) {
        return !served && bytes < SMALL;
    }

    /**
     * Begins to try whether priorities can be changed, beside the caller: the first load would wait for it, as the
     * functions of the C library have to be bound for it. Optional.
     */
    public void prepare() {
        if (niceness > 0) {
            var unused = trial();
        }
    }

    /**
     * Lowers the priority of the calling thread. The caller must pass the result to {@link #restore} on the same
     * thread.
     *
     * @param hurries whether to use niceness only, without SCHED_IDLE
     */
    public int lower(boolean hurries) {
        if (niceness <= 0 || !usable()) {
            return UNCHANGED;
        }
        try {
            int thread = os.current();
            loading.add(thread);
            boolean idle = !hurries && idleUsable && !idlePaused();
            if (idle) {
                // Before the priority is lowered: this may start the timer thread, which must not inherit it.
                scheduleCheck();
            }
            if (os.set(thread, lowered)) {
                if (idle) {
                    var unused = os.idle(thread, true);
                }
                return thread;
            }
            loading.remove(thread);
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("failed to lower the priority of a load", e);
        }
        return UNCHANGED;
    }

    /** Restores the priority of the calling thread, and of all threads and processes that were started by loads. */
    public void restore(int thread) {
        if (thread == UNCHANGED) {
            return;
        }
        loading.remove(thread);
        try {
            raiseStarted(thread);
            raise(thread);
            // Threads that this load has started, for instance a pool of the backend, have inherited the low priority.
            // They cannot be distinguished from those of other loads that have ended, which need the same; threads of
            // running loads are skipped.
            for (int other : os.all()) {
                if (!loading.contains(other) && os.get(other) == lowered) {
                    raiseStarted(other);
                    raise(other);
                }
            }
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.warn("failed to restore the priority of a loaded model's threads", e);
        }
    }

    private void raiseStarted(int thread) {
        lowerStarted(thread).forEach(this::raise);
    }

    /** Returns the threads with lowered priority in processes that a thread has started. */
    private List<Integer> lowerStarted(int thread) {
        try {
            return os.started(thread).stream()
                    .filter(started -> os.get(started) == lowered)
                    .toList();
        } catch (IOException e) {
            LOG.debug("failed to read the child processes of thread {}, which may have ended", thread, e);
            return List.of();
        }
    }

    private void raise(int thread) {
        if (idleUsable) {
            var unused = os.idle(thread, false);
        }
        var unused = os.set(thread, usual);
    }

    private boolean idlePaused() {
        Long until = idlePausedUntil;
        return until != null && clock.nanos() - until < 0;
    }

    private void scheduleCheck() {
        if (checkScheduled.compareAndSet(false, true)) {
            Map<Integer, Os.Share> before = shares();
            timer.after(CHECK_INTERVAL.toNanos(), () -> check(before));
        }
    }

    /** Checks whether loads have got processor time since the last check; if not, leaves SCHED_IDLE for a while. */
    private void check(Map<Integer, Os.Share> before) {
        checkScheduled.set(false);
        if (loading.isEmpty() || idlePaused()) {
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
        if (waited > CHECK_INTERVAL.toNanos() / 2 && waited > MOST_WAITING * ran) {
            idlePausedUntil = clock.nanos() + IDLE_POLICY_PAUSE.toNanos();
            LOG.debug("loads get next to no processor time; no SCHED_IDLE for {} s", IDLE_POLICY_PAUSE.toSeconds());
            try {
                for (int thread : loweredThreads()) {
                    var unused = os.idle(thread, false);
                }
            } catch (IOException | RuntimeException | LinkageError e) {
                LOG.warn("failed to raise the priority of loads that wait for a processor", e);
            }
        } else {
            scheduleCheck();
        }
    }

    /** Returns the threads with lowered priority, including those of processes that they have started. */
    private List<Integer> loweredThreads() throws IOException {
        List<Integer> threads = new ArrayList<>();
        for (int thread : os.all()) {
            if (os.get(thread) == lowered) {
                threads.add(thread);
                threads.addAll(lowerStarted(thread));
            }
        }
        return threads;
    }

    /** Returns the processor time of each thread with lowered priority. */
    private Map<Integer, Os.Share> shares() {
        Map<Integer, Os.Share> shares = new HashMap<>();
        try {
            for (int thread : loweredThreads()) {
                shares.put(thread, os.share(thread));
            }
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("failed to read the processor time of a thread, which may have ended", e);
        }
        return shares;
    }

    /** Returns whether a lowered priority can be raised again; tried once, on a separate thread. */
    private boolean usable() {
        if (usable) {
            return true;
        }
        try {
            trial().join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        return usable;
    }

    /** The thread that tries it, which may have ended. */
    private synchronized Thread trial() {
        Thread thread = trial;
        if (thread == null) {
            thread = Threads.named("load-priority").newThread(this::decide);
            trial = thread;
            thread.start();
        }
        return thread;
    }

    private void decide() {
        usable = tryOut();
        if (!usable) {
            LOG.info("loads run at normal priority: this process may not raise the priority of its threads again"
                    + " (on Linux, CAP_SYS_NICE or 'ulimit -e 20' allow it)");
        }
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
            LOG.debug("thread priorities cannot be changed on this system", e);
            return false;
        }
    }

    /** Returns whether the system reports processor time for any thread; for a new thread it may be 0. */
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
            // Required: without waiting times and child processes, a starving load would not be noticed.
            return os.started(me).isEmpty()
                    && sharesAreKnown()
                    && os.idle(me, true)
                    && os.idle(me, false)
                    && !os.idle(me);
        } catch (IOException | RuntimeException | LinkageError e) {
            LOG.debug("the scheduling policy SCHED_IDLE is not available on this system", e);
            return false;
        }
    }

    /** The operating system's functions for threads of this process, by thread id. Thread-safe. */
    public interface Os {
        /** Returns the calling thread. */
        int current() throws IOException;

        /** Returns all threads of the process. */
        List<Integer> all() throws IOException;

        /** Returns all threads of the processes that a thread has started, and of their child processes. */
        List<Integer> started(int thread) throws IOException;

        /** Returns the niceness of a thread. */
        int get(int thread);

        /** Sets the niceness of a thread; false if that is not allowed. */
        boolean set(int thread, int niceness);

        /** Returns whether a thread has the policy SCHED_IDLE. */
        boolean idle(int thread);

        /** Sets the policy SCHED_IDLE or the default policy; false if that is not allowed. */
        boolean idle(int thread, boolean idle);

        /** Returns the processor time of a thread since its start. */
        Share share(int thread) throws IOException;

        /** Nanoseconds on a processor, and waiting for one. Immutable. */
        record Share(long ran, long waited) {}
    }

    /** Returns the functions of Linux, through the C library; on other systems all of them fail. */
    public static Os system() {
        return new Os() {
            // On Linux, setpriority applies to a single thread.
            private static final int PRIO_PROCESS = 0;

            private static final int SCHED_OTHER = 0;
            private static final int SCHED_IDLE = 5;

            @Override
            public int current() throws IOException {
                if (!System.getProperty("os.name", "").toLowerCase(Locale.ROOT).startsWith("linux")) {
                    throw new IOException("threads do not have their own niceness on this system");
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
                        LOG.debug("failed to read process {}, which may have ended", process, e);
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
                String[] times = Files.readString(Path.of("/proc/" + thread + "/schedstat"))
                        .trim()
                        .split(" ");
                return new Share(Long.parseLong(times[0]), Long.parseLong(times[1]));
            }
        };
    }

    /**
     * Functions of the C library, bound directly because a load calls them a hundred times. Throws a
     * {@link LinkageError} where they cannot be bound.
     */
    @SuppressWarnings("MemberName") // the names of the C library
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
