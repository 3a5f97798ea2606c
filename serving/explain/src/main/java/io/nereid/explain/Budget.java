// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceEngine.Call;
import java.util.HashSet;
import java.util.Set;

/** What one explanation may cost, and whether it is still wanted. Thread-safe: guarded by itself. */
final class Budget {
    private final Clock clock;
    private final long deadline;
    private final long predictions;
    private final long milliseconds;
    private final Set<Call> calls = new HashSet<>();
    private long spent;
    private boolean cancelled;

    /**
     * A fresh one.
     *
     * @param predictions rows that the model may be asked about
     * @param milliseconds until it must be done
     */
    Budget(Clock clock, long predictions, long milliseconds) {
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

    /** Predictions that may still be made. */
    synchronized long left() {
        return predictions - spent;
    }

    /** @throws ServingException INVALID_ARGUMENT when so many predictions are more than there may be */
    synchronized void check(long rows, String what) {
        if (rows > predictions - spent) {
            throw ServingException.invalidArgument(
                    what + " makes " + rows + " predictions, and one request may make " + predictions
                            + (spent > 0 ? ", of which " + spent + " are made" : ""),
                    "send fewer instances, or a smaller nsamples or background_size, or raise the limit"
                            + " max_predictions");
        }
    }

    /** @throws ServingException CANCELLED or DEADLINE_EXCEEDED when it is over, else as {@link #check} */
    synchronized void spend(long rows) {
        alive();
        check(rows, "the explanation");
        spent += rows;
    }

    /** @throws ServingException CANCELLED or DEADLINE_EXCEEDED when it is over */
    synchronized void alive() {
        if (cancelled) {
            throw ServingException.of(ErrorCode.CANCELLED, "the explanation is not wanted any more");
        }
        if (clock.nanos() - deadline >= 0) {
            throw ServingException.of(
                    ErrorCode.DEADLINE_EXCEEDED,
                    "the explanation was not ready within its limit of " + milliseconds + " ms",
                    "send fewer instances, or a smaller nsamples or background_size, or raise the limit timeout_ms");
        }
    }

    /** Notes a call under way; one that comes too late is cancelled. */
    void began(Call call) {
        boolean late;
        synchronized (this) {
            late = cancelled;
            calls.add(call);
        }
        if (late) {
            call.cancel();
        }
    }

    synchronized void ended(Call call) {
        calls.remove(call);
    }

    /** Nobody wants it any more. */
    void cancel() {
        Set<Call> open;
        synchronized (this) {
            cancelled = true;
            open = new HashSet<>(calls);
        }
        open.forEach(Call::cancel);
    }
}
