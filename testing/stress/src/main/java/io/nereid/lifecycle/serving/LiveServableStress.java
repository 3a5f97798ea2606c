// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/**
 * {@link LiveServable}: a servable is reported as unused once, after it was drained and its last handle was released,
 * and never while a request holds a handle.
 */
public final class LiveServableStress {
    private LiveServableStress() {}

    /** A servable that records how often it was reported as unused. Confined to the instance of a test. */
    public static class Counted {
        /** No test uses the servable itself. */
        @SuppressWarnings("NullAway")
        final LiveServable live = new LiveServable(null, this::unused);

        volatile boolean unused;
        int reports;
        int uses;
        int seen;

        private void unused() {
            unused = true;
            reports++;
            seen = uses;
        }

        /** Acts like a request: returns 0 when it got no handle, 2 when the servable ended under it, else 1. */
        int request() {
            int stripe = live.retain();
            if (stripe < 0) {
                return 0;
            }
            uses = 1;
            int result = unused ? 2 : 1;
            live.release(stripe);
            return result;
        }
    }

    /** A request arrives while the servable is drained. */
    @JCStressTest
    @Outcome(id = "0, 1, 0", expect = ACCEPTABLE, desc = "Drained first.")
    @Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "The request had a handle, and its use was seen at the end.")
    @State
    public static class RequestAndDrain extends Counted {
        @Actor
        public void request(III_Result r) {
            r.r1 = request();
        }

        @Actor
        public void drain() {
            live.drain();
        }

        @Arbiter
        public void end(III_Result r) {
            r.r2 = reports;
            r.r3 = seen;
        }
    }

    /** Handles that were acquired before are released by two threads after the drain. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "Reported once.")
    @State
    public static class TwoReleases extends Counted {
        private final int first;
        private final int second;

        public TwoReleases() {
            first = live.retain();
            second = live.retain();
            live.drain();
        }

        @Actor
        public void one() {
            live.release(first);
        }

        @Actor
        public void two() {
            live.release(second);
        }

        @Arbiter
        public void end(I_Result r) {
            r.r1 = reports;
        }
    }

    /** The drain happens while two threads hold handles of their own, which may be counted on different stripes. */
    @JCStressTest
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "The request came after the drain.")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "The request came before the drain.")
    @State
    public static class DrainBetweenHandles extends Counted {
        @Actor
        public void request(II_Result r) {
            r.r1 = request();
        }

        @Actor
        public void drain() {
            int stripe = live.retain();
            live.drain();
            live.release(stripe);
        }

        @Arbiter
        public void end(II_Result r) {
            r.r2 = reports;
        }
    }

    /** Requests that come too late count for a moment; this must not hide the end or report it twice. */
    @JCStressTest
    @Outcome(id = "0, 0, 1", expect = ACCEPTABLE, desc = "No handle for either, and one report.")
    @State
    public static class LateRequests extends Counted {
        private final int last;

        public LateRequests() {
            last = live.retain();
            live.drain();
        }

        @Actor
        public void one(III_Result r) {
            r.r1 = request();
            live.release(last);
        }

        @Actor
        public void two(III_Result r) {
            r.r2 = request() + request();
        }

        @Arbiter
        public void end(III_Result r) {
            r.r3 = reports;
        }
    }
}
