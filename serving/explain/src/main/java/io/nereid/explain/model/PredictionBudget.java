// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.model;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import java.util.HashSet;
import java.util.Set;

/**
 * The limits of one explanation: a number of predictions and a time; and its cancellation. Thread-safe: guarded by
 * itself.
 */
public final class PredictionBudget {
    private final Clock clock;
    private final long deadline;
    private final long predictions;
    private final long milliseconds;

    @GuardedBy("this") private final Set<InferenceCall> calls = new HashSet<>();

    @GuardedBy("this") private long spent;

    @GuardedBy("this") private boolean cancelled;

    /**
     * Creates an unspent budget.
     *
     * @param predictions most rows that the model may predict
     * @param milliseconds the time limit
     */
    public PredictionBudget(Clock clock, long predictions, long milliseconds) {
        this.clock = clock;
        this.predictions = predictions;
        this.milliseconds = milliseconds;
        this.deadline = clock.nanos() + milliseconds * 1_000_000;
    }

    long now() {
        return clock.nanos();
    }

    long deadline() {
        return deadline;
    }

    /** The predictions that are left. */
    synchronized long left() {
        return predictions - spent;
    }

    /**
     * Checks in advance whether a number of predictions is affordable.
     *
     * @throws ServingException INVALID_ARGUMENT when it is not
     */
    public synchronized void check(long rows, String what) {
        if (rows > predictions - spent) {
            throw ServingException.invalidArgument(
                    what + " makes " + rows + " predictions, and one request may make " + predictions
                            + (spent > 0 ? ", of which " + spent + " are made" : ""),
                    "send fewer instances, or a smaller nsamples or background_size, or raise the limit"
                            + " max_predictions");
        }
    }

    /**
     * Spends predictions.
     *
     * @throws ServingException CANCELLED or DEADLINE_EXCEEDED when the explanation is over, else as {@link #check}
     */
    synchronized void spend(long rows) {
        alive();
        check(rows, "the explanation");
        spent += rows;
    }

    /**
     * Checks for cancellation and the time limit.
     *
     * @throws ServingException CANCELLED or DEADLINE_EXCEEDED when the explanation is over
     */
    public synchronized void alive() {
        if (cancelled) {
            throw ServingException.of(ErrorCode.CANCELLED, "the explanation was cancelled");
        }
        if (clock.nanos() - deadline >= 0) {
            throw ServingException.of(
                    ErrorCode.DEADLINE_EXCEEDED,
                    "the explanation was not ready within its limit of " + milliseconds + " ms",
                    "send fewer instances, or a smaller nsamples or background_size, or raise the limit timeout_ms");
        }
    }

    /** Registers a call in flight; cancels it when the explanation has been cancelled before. */
    void began(InferenceCall call) {
        boolean late;
        synchronized (this) {
            late = cancelled;
            calls.add(call);
        }
        if (late) {
            call.cancel();
        }
    }

    synchronized void ended(InferenceCall call) {
        calls.remove(call);
    }

    /** Cancels the explanation and its calls. */
    public void cancel() {
        Set<InferenceCall> open;
        synchronized (this) {
            cancelled = true;
            open = new HashSet<>(calls);
        }
        open.forEach(InferenceCall::cancel);
    }
}
