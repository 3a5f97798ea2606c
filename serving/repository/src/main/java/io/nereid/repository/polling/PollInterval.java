// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The time between two polls. It is longer than configured while a poll takes more than its share of the time, which
 * happens with many models on a file system that does not notify of changes. Guarded by the source's lock.
 */
public final class PollInterval {
    private static final Logger LOG = LoggerFactory.getLogger(PollInterval.class);

    /**
     * Polling may take 1/200 of the time (0.5 %), so that with its indirect costs it stays below 1 % of a processor.
     */
    private static final int SHARE = 200;

    /** An interval this many times longer than configured is logged. */
    private static final int LOGGED_FACTOR = 4;

    private static final Duration MAX_INTERVAL = Duration.ofMinutes(1);

    private final Duration configured;
    private final String what;
    private Duration current;

    /**
     * Creates an interval that is as configured.
     *
     * @param configured time between two polls; zero for none
     * @param what the polled things, for messages
     */
    public PollInterval(Duration configured, String what) {
        this.configured = configured;
        this.what = what;
        this.current = configured;
    }

    public Duration current() {
        return current;
    }

    /**
     * Lengthens the interval when a poll exceeded its share of the time, and shortens it again.
     *
     * @param nanos time that the poll took, without reading what had changed
     * @param count number of polled things
     */
    public void polled(long nanos, int count) {
        if (configured.isZero()) {
            return;
        }
        // In plain numbers: a multiplication of a Duration takes longer than the poll of a small repository.
        long shortest = configured.toMillis();
        long longest = Math.max(shortest, MAX_INTERVAL.toMillis());
        long desired = Math.max(0, nanos) / (1_000_000 / SHARE);
        Duration adjusted = desired <= shortest ? configured : Duration.ofMillis(Math.min(desired, longest));
        // Only a much longer interval is logged, not a single slow poll.
        long notable = shortest * LOGGED_FACTOR;
        boolean was = current.toMillis() > notable;
        boolean is = adjusted.toMillis() > notable;
        if (is && !was) {
            LOG.info(
                    "a poll of {} {} takes {} ms, so the next one follows after {} ms instead of {} ms:"
                            + " polling is limited to 1 % of a processor",
                    count, what, nanos / 1_000_000, adjusted.toMillis(), configured.toMillis());
        } else if (was && !is) {
            LOG.info("{} {} are polled every {} ms again", count, what, configured.toMillis());
        }
        current = adjusted;
    }
}
