// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.BackendContext;
import io.nereid.base.AvailableMemory;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses between a narrow and a wide run. A narrow one has a thread, so that a busy machine answers the most requests; a wide
 * one has as many as the device, so that an idle machine answers a request as soon as it can. ONNX Runtime fixes the number of
 * threads when it opens a session, so that wide runs have a session of their own, with a copy of the weights.
 *
 * <ol>
 *   <li>Some runs on an idle machine are timed. Nothing more happens while they take less than {@link #WORTH_NANOS}: waking
 *       other threads costs more than it gains.
 *   <li>Then the second session is opened, on a thread of its own, if the memory is there and the model's files are still those
 *       that were loaded.
 *   <li>The next runs on an idle machine alternate between the two. Unless wide ones take less than {@link #GAIN} of the time,
 *       the second session is closed for good.
 *   <li>From then on, a run that begins while half of the device's threads or more are idle is wide.
 * </ol>
 *
 * <p>Thread-safe. {@link #considers} takes no lock, and is all that a run of a small model costs.
 */
final class WideRuns {
    private static final Logger LOG = LoggerFactory.getLogger(WideRuns.class);

    /** The time of a run from which a second session is tried. */
    static final long WORTH_NANOS = 2_000_000;

    /** The share of a narrow run's time that a wide one may take. */
    static final double GAIN = 0.8;

    /** Timed runs before a session is opened, and runs of each kind that are compared. */
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
    private final int threads;
    private final int leastIdle;
    private final Callable<@Nullable OnnxSession> opener;
    private final Clock clock;

    private volatile State state = State.MEASURING;
    /** Runs that were considered while measuring. Not exact where threads meet, which does not matter. */
    private int considered;

    @GuardedBy("this") private @Nullable OnnxSession wide;

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
     * @param threads threads of a wide run
     * @param leastIdle threads that must be idle beside the run's own
     * @param opener opens the second session; null when it must not be opened
     */
    WideRuns(String model, int threads, int leastIdle, Callable<@Nullable OnnxSession> opener, Clock clock) {
        this.model = model;
        this.threads = threads;
        this.leastIdle = leastIdle;
        this.opener = opener;
        this.clock = clock;
    }

    /**
     * The choice for a model that has just been loaded; null where all its runs are narrow: the number of threads is
     * configured, the device has one thread, the runs are not on the CPU, or models must keep to the memory of their load.
     */
    static @Nullable WideRuns of(
            String model,
            OrtRuntime engine,
            OnnxFile file,
            OrtSettings settings,
            ExecutionProviders placement,
            BackendContext context) {
        if (settings.threadsGiven()
                || context.cores() < 2
                || !context.spareMemory()
                || !placement.equals(ExecutionProviders.CPU)) {
            return null;
        }
        String loaded;
        try {
            loaded = file.state();
        } catch (IOException e) {
            return null;
        }
        int threads = Math.min(context.cores(), MOST_THREADS);
        Callable<@Nullable OnnxSession> opener = () -> {
            // Twice the size of the files: ONNX Runtime keeps weights in a second layout while it opens a session.
            long needed = 2 * file.bytes();
            if (needed > AvailableMemory.bytes() / 2) {
                LOG.info("model '{}' keeps to runs of one thread: memory is short", model);
                return null;
            }
            if (!file.state().equals(loaded)) {
                return null;
            }
            OnnxSession session =
                    OnnxSession.open(model, engine, file.path(), settings.withIntraThreads(threads), placement);
            if (!file.state().equals(loaded)) {
                // Replaced meanwhile: these may be other weights than those that answer now.
                session.drop();
                return null;
            }
            return session;
        };
        return new WideRuns(model, threads, Math.max(1, context.cores() / 2), opener, Clock.system());
    }

    /** Whether {@link #run} should choose for this run; false for an ordinary one. */
    boolean considers(int idleThreads) {
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

    /** Whether the second session is open. */
    synchronized boolean isOpen() {
        return wide != null;
    }

    /**
     * Runs on one of the two sessions.
     *
     * @param narrow the session for narrow runs, open until this method returns
     * @param inputs the inputs of the run, for their size
     */
    List<Tensor> run(OnnxSession narrow, List<Tensor> inputs, Function<OnnxSession, List<Tensor>> run) {
        OnnxSession second = choose();
        OnnxSession session = second == null ? narrow : second;
        try {
            if (state == State.OPEN) {
                return run.apply(session);
            }
            long from = clock.nanos();
            List<Tensor> outputs = run.apply(session);
            ran(second != null, clock.nanos() - from, inputs);
            return outputs;
        } finally {
            if (second != null) {
                second.drop();
            }
        }
    }

    /** The second session, held for the caller, if it exists and it is its turn; else null. */
    private synchronized @Nullable OnnxSession choose() {
        OnnxSession second = wide;
        if (second == null || state == State.COMPARING && turns++ % 2 == 0) {
            return null;
        }
        second.hold();
        return second;
    }

    private synchronized void ran(boolean wasWide, long nanos, List<Tensor> inputs) {
        if (state == State.MEASURING) {
            timed++;
            meanNanos += (nanos - meanNanos) / Math.min(timed, RUNS);
            if (timed >= RUNS && meanNanos >= WORTH_NANOS) {
                state = State.OPENING;
                Threads.named("onnx-session").newThread(this::open).start();
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
            LOG.info(
                    "model '{}': a run with {} threads takes {} % of the time; runs on an idle machine have them"
                            + " (intra_op_thread_count sets a fixed number)",
                    model, threads, Math.round(100 * ratio));
        } else {
            LOG.info(
                    "model '{}': a run with {} threads takes {} % of the time; all runs have one",
                    model, threads, Math.round(100 * ratio));
            close();
        }
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    private void open() {
        OnnxSession session = null;
        try {
            session = opener.call();
        } catch (OrtException e) {
            LOG.info("model '{}' keeps to runs of one thread: {}", model, OrtErrors.text(e));
        } catch (Exception e) {
            LOG.info("model '{}' keeps to runs of one thread", model, e);
        }
        synchronized (this) {
            if (session == null || state != State.OPENING) {
                state = State.OFF;
            } else {
                wide = session;
                session = null;
                state = State.COMPARING;
            }
        }
        if (session != null) {
            session.drop();
        }
    }

    /** Ends wide runs. The second session is closed when its last run and the last view of its memory have ended. */
    synchronized void close() {
        state = State.OFF;
        if (wide != null) {
            wide.drop();
            wide = null;
        }
    }
}
