// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.AvailableMemory;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.tensor.Tensor;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Chooses between a narrow and a wide run of a model. A narrow one has a thread, so that a busy machine answers the most requests;
 * a wide one has as many as the device, so that an idle machine answers a request as soon as it can. What a wide run needs beside the
 * model is opened once: a second session with a copy of the weights, an interpreter, or nothing but threads.
 *
 * <ol>
 *   <li>Some runs on an idle machine are timed. Nothing more happens while they take less than {@link #WORTH_NANOS}: waking
 *       other threads costs more than it gains.
 *   <li>Then the wide way is opened, on a thread of its own, if the memory for it is there.
 *   <li>The next runs on an idle machine alternate between the two. Unless wide ones take less than {@link #GAIN} of the time,
 *       the wide way is closed for good.
 *   <li>From then on, a run that begins while half of the device's threads or more are idle is wide.
 * </ol>
 *
 * <p>Thread-safe. {@link #considers} takes no lock, and is all that a run of a small model costs. In a {@link ModelInstance}:
 *
 * <pre>{@code
 * public List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
 *     return wide == null || !wide.considers(idleThreads)
 *             ? run(narrowSession, inputs, outputs)
 *             : wide.run(inputs, second -> run(second == null ? narrowSession : second, inputs, outputs));
 * }
 * }</pre>
 *
 * @param <V> what wide runs need
 */
public final class WideRuns<V extends WideRuns.RunVariant> {
    private static final Logger LOG = System.getLogger(WideRuns.class.getName());

    /** What the wide runs of a model need, in addition to what its narrow ones have. Thread-safe. */
    public interface RunVariant {
        /**
         * Keeps it open until {@link #drop()}; called only while the one that opened it has not dropped it.
         *
         * @return false when no further run can have it now; that run is narrow then
         */
        boolean hold();

        /** Ends a hold, or the use by the one that opened it; it is closed when none is left. */
        void drop();
    }

    /**
     * Opens what wide runs need.
     *
     * @param <V> its type
     */
    @FunctionalInterface
    public interface VariantOpener<V extends RunVariant> {
        /**
         * Opens it; called once at most, on a thread of its own.
         *
         * @param threads the threads of a wide run, 2 or more
         * @return it, held once for the caller; null when it must not be opened, so that all runs stay narrow
         * @throws Exception when it cannot be opened, with the same result; the reason is logged
         */
        @Nullable V open(int threads) throws Exception;
    }

    /** The time of a run from which wide ones are tried. */
    static final long WORTH_NANOS = 2_000_000;

    /** The share of a narrow run's time that a wide one may take. */
    static final double GAIN = 0.8;

    /** Timed runs before the wide way is opened, and runs of each kind that are compared. */
    static final int RUNS = 8;

    /** Few models use more threads well. */
    private static final int MOST_THREADS = 16;

    /** Of later runs of a model that is too fast, one in so many is timed, since other requests may take longer. */
    private static final int SAMPLED = 16;

    private enum State {
        MEASURING,
        OPENING,
        COMPARING,
        OPEN,
        OFF
    }

    private final String model;
    private final String setting;
    private final int threads;
    private final int leastIdle;
    private final long memory;
    private final VariantOpener<V> opener;
    private final LongSupplier available;
    private final Clock clock;

    private volatile State state = State.MEASURING;
    /** Runs that were considered while measuring. Not exact where threads meet, which does not matter. */
    private int considered;

    @GuardedBy("this") private @Nullable V wide;

    @GuardedBy("this") private int timed;

    @GuardedBy("this") private double meanNanos;

    /** Nanoseconds for each byte of input: requests differ in size. */
    @GuardedBy("this") private final double[] narrowTimes = new double[RUNS];

    @GuardedBy("this") private final double[] wideTimes = new double[RUNS];

    @GuardedBy("this") private int narrowRuns;

    @GuardedBy("this") private int wideRuns;

    @GuardedBy("this") private int turns;

    /**
     * Creates the choice for a model.
     *
     * @param setting the setting by which users fix the number of threads, for the log
     * @param threads threads of a wide run
     * @param leastIdle threads that must be idle beside the run's own
     * @param memory bytes that the wide way takes
     * @param opener opens the wide way
     * @param available the memory that can be taken, in bytes
     */
    WideRuns(
            String model,
            String setting,
            int threads,
            int leastIdle,
            long memory,
            VariantOpener<V> opener,
            LongSupplier available,
            Clock clock) {
        this.model = model;
        this.setting = setting;
        this.threads = threads;
        this.leastIdle = leastIdle;
        this.memory = memory;
        this.opener = opener;
        this.available = available;
        this.clock = clock;
    }

    /**
     * The choice for a model that has just been loaded and whose number of threads is not configured. Null where all its runs are
     * narrow: the device has one thread, or wide runs take memory and models must keep to the memory of their load.
     *
     * @param model the model's name
     * @param setting the setting by which users fix the number of threads, for the log
     * @param memory bytes that the wide way takes, at most half of those that are available then; 0 for none
     * @param opener opens the wide way
     */
    public static <V extends RunVariant> @Nullable WideRuns<V> of(
            BackendContext context, String model, String setting, long memory, VariantOpener<V> opener) {
        if (context.cores() < 2 || memory > 0 && !context.spareMemory()) {
            return null;
        }
        return new WideRuns<>(
                model,
                setting,
                Math.min(context.cores(), MOST_THREADS),
                Math.max(1, context.cores() / 2),
                memory,
                opener,
                AvailableMemory::bytes,
                Clock.system());
    }

    /**
     * Whether {@link #run} should choose for this run; false for a narrow one.
     *
     * @param idleThreads as in {@link ModelInstance#run(List, List, int)}
     */
    public boolean considers(int idleThreads) {
        if (idleThreads < leastIdle) {
            return false;
        }
        switch (state) {
            case MEASURING -> {
                int count = considered;
                considered = count + 1;
                return count < RUNS || count % SAMPLED == 0;
            }
            case COMPARING, OPEN -> {
                return true;
            }
            default -> {
                return false;
            }
        }
    }

    /** Whether the wide way is open, and takes its memory. */
    public synchronized boolean isOpen() {
        return wide != null;
    }

    /**
     * Runs the model in one of the two ways.
     *
     * @param inputs the inputs of the run, for their size
     * @param run runs the model once: with the wide way, which is open until it returns, or narrowly for null
     * @return what {@code run} returns
     */
    public List<Tensor> run(List<Tensor> inputs, Function<@Nullable V, List<Tensor>> run) {
        V held = choose();
        try {
            if (state == State.OPEN) {
                return run.apply(held);
            }
            long from = clock.nanos();
            List<Tensor> outputs = run.apply(held);
            ran(held != null, clock.nanos() - from, inputs);
            return outputs;
        } finally {
            if (held != null) {
                held.drop();
            }
        }
    }

    /** The wide way, held for the caller, if it is open, free and its turn; else null. */
    private synchronized @Nullable V choose() {
        V second = wide;
        return second == null || state == State.COMPARING && turns++ % 2 == 0 || !second.hold() ? null : second;
    }

    private synchronized void ran(boolean wasWide, long nanos, List<Tensor> inputs) {
        if (state == State.MEASURING) {
            timed++;
            meanNanos += (nanos - meanNanos) / Math.min(timed, RUNS);
            if (timed >= RUNS && meanNanos >= WORTH_NANOS) {
                state = State.OPENING;
                Threads.named("wide-runs").newThread(this::open).start();
            }
        } else if (state == State.COMPARING) {
            long bytes = 1;
            for (Tensor input : inputs) {
                bytes += input.byteLength();
            }
            double time = (double) nanos / bytes;
            if (wasWide && wideRuns < RUNS) {
                wideTimes[wideRuns++] = time;
            } else if (!wasWide && narrowRuns < RUNS) {
                narrowTimes[narrowRuns++] = time;
            }
            if (wideRuns == RUNS && narrowRuns == RUNS) {
                decide();
            }
        }
    }

    @GuardedBy("this") private void decide() {
        double ratio = median(wideTimes) / median(narrowTimes);
        if (ratio <= GAIN) {
            state = State.OPEN;
            LOG.log(
                    Level.INFO,
                    "model ''{0}'': a run with {1} threads takes {2} % of the time; runs on an idle machine have them"
                            + " ({3} sets a fixed number)",
                    model,
                    threads,
                    Math.round(100 * ratio),
                    setting);
        } else {
            LOG.log(
                    Level.INFO,
                    "model ''{0}'': a run with {1} threads takes {2} % of the time; all runs have one",
                    model,
                    threads,
                    Math.round(100 * ratio));
            close();
        }
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    private void open() {
        V opened = null;
        try {
            if (memory <= available.getAsLong() / 2) {
                opened = opener.open(threads);
            } else {
                LOG.log(Level.INFO, "model ''{0}'' keeps to runs of one thread: memory is short", model);
            }
        } catch (ServingException e) {
            LOG.log(Level.INFO, "model ''{0}'' keeps to runs of one thread: {1}", model, e.describe());
        } catch (Exception | LinkageError e) {
            LOG.log(Level.INFO, "model '" + model + "' keeps to runs of one thread", e);
        }
        synchronized (this) {
            if (opened == null || state != State.OPENING) {
                state = State.OFF;
            } else {
                wide = opened;
                opened = null;
                state = State.COMPARING;
            }
        }
        if (opened != null) {
            opened.drop();
        }
    }

    /** Ends wide runs; called by the model's own close. The wide way is dropped, and closed when the last hold has ended. */
    public synchronized void close() {
        state = State.OFF;
        if (wide != null) {
            wide.drop();
            wide = null;
        }
    }
}
