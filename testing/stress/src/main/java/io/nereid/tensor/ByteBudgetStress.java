// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZJ_Result;

/** {@link ByteBudget}: the limit holds, and what is released can be reserved again. */
public final class ByteBudgetStress {
    private ByteBudgetStress() {}

    /** Two requests of which the budget has space for one. */
    @JCStressTest
    @Outcome(id = "true, false, 6", expect = ACCEPTABLE, desc = "The first one was admitted.")
    @Outcome(id = "false, true, 6", expect = ACCEPTABLE, desc = "The second one was admitted.")
    @State
    public static class TwoReservations {
        private final ByteBudget budget = new ByteBudget(10);

        @Actor
        public void one(ZZJ_Result r) {
            r.r1 = budget.tryReserve(6);
        }

        @Actor
        public void two(ZZJ_Result r) {
            r.r2 = budget.tryReserve(6);
        }

        @Arbiter
        public void end(ZZJ_Result r) {
            r.r3 = budget.used();
        }
    }

    /** A request ends while another one arrives. */
    @JCStressTest
    @Outcome(id = "true, true, 5", expect = ACCEPTABLE, desc = "Admitted after the release.")
    @Outcome(id = "true, false, 0", expect = ACCEPTABLE, desc = "Rejected before the release.")
    @State
    public static class ReservationAndRelease {
        private final ByteBudget budget = new ByteBudget(10);
        private final boolean reserved = budget.tryReserve(7);

        @Actor
        public void one(ZZJ_Result r) {
            r.r1 = reserved;
            budget.release(7);
        }

        @Actor
        public void two(ZZJ_Result r) {
            r.r2 = budget.tryReserve(5);
        }

        @Arbiter
        public void end(ZZJ_Result r) {
            r.r3 = budget.used();
        }
    }
}
