// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import io.nereid.lifecycle.serving.LiveServable;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** {@link ServableHandle}: a handle that two threads close is released once. */
public final class ServableHandleStress {
    private ServableHandleStress() {}

    /** Two threads close one of two handles of a version that is being drained. */
    @JCStressTest
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "The other handle kept the version until it was closed.")
    @State
    public static class ClosedTwice {
        private final LiveServable live = new LiveServable(null, this::unused);
        private final ServableHandle handle = new ServableHandle(live, live.retain());
        private final ServableHandle other = new ServableHandle(live, live.retain());
        private int reports;

        public ClosedTwice() {
            live.drain();
        }

        private void unused() {
            reports++;
        }

        @Actor
        public void one() {
            handle.close();
        }

        @Actor
        public void two() {
            handle.close();
        }

        @Arbiter
        public void end(II_Result r) {
            r.r1 = reports;
            other.close();
            r.r2 = reports;
        }
    }
}
