// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import java.util.Random;

/** The times at which the requests of an open loop are due. Confined to one thread. */
public interface ArrivalSchedule {
    /** The time of the next request, in nanoseconds after the start of the load; never less than the one before. */
    long next();

    /** Requests at equal distances. */
    static ArrivalSchedule constant(double perSecond) {
        long[] sent = {0};
        // From the number of requests, so that rounding does not add up.
        return () -> (long) (sent[0]++ * 1e9 / perSecond);
    }

    /** Requests of independent clients: a Poisson process, whose distances are exponentially distributed. */
    static ArrivalSchedule poisson(double perSecond, long seed) {
        Random random = new Random(seed);
        double[] seconds = {0};
        return () -> {
            seconds[0] += -Math.log(1 - random.nextDouble()) / perSecond;
            return (long) (seconds[0] * 1e9);
        };
    }
}
