// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.activator.RevisionActivator.Settings;
import io.nereid.control.gateway.upstream.RevisionTarget.Models;
import io.nereid.tensor.ByteBudget;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.IIII_Result;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * {@link RevisionActivator}: every request ends once, the concurrency limit holds, and no request waits while a permit
 * is free.
 */
public final class RevisionActivatorStress {
    private static final Models DESTINATION = new Models("default/r1", false, "iris");

    private RevisionActivatorStress() {}

    private static Settings settings(int concurrency) {
        return new Settings("iris", concurrency, 0, Duration.ofSeconds(30), 10, 0);
    }

    /** An activator, and what its requests report. Confined to the instance of a test. */
    public static class Revision {
        private final AtomicInteger running = new AtomicInteger();
        final ByteBudget budget = new ByteBudget(1000);
        final AtomicInteger woken = new AtomicInteger();
        volatile int most;

        final RevisionActivator activator;

        /** @param concurrency most requests at once in one replica; 0 for no limit */
        Revision(int concurrency, int replicas) {
            ActivatorContext context = new ActivatorContext(
                    null,
                    null,
                    null,
                    Clock.system(),
                    (namespace, revision) -> woken.incrementAndGet(),
                    Runnable::run,
                    budget,
                    bound -> 0);
            activator = new RevisionActivator(context, "default", "r1", settings(concurrency), DESTINATION);
            activator.capacity(replicas);
        }

        void begins() {
            int now = running.incrementAndGet();
            if (now > most) {
                most = now;
            }
        }

        void ends() {
            running.decrementAndGet();
        }

        /** What must be 0 when all requests have ended. */
        int left() {
            return activator.activeNow() + activator.waitingNow() + (int) budget.used();
        }
    }

    /** A request that ends as soon as it runs, or that a test ends. */
    static final class Request extends RevisionRequest {
        private final Revision revision;
        private final boolean stays;

        /** 2 after a run, 5 after a rejection; 4 when the client disconnected; above 9 after several ends. */
        final AtomicInteger outcome = new AtomicInteger();

        Request(Revision revision) {
            this(revision, false);
        }

        Request(Revision revision, boolean stays) {
            super(revision.activator, Clock.system().nanos());
            this.revision = revision;
            this.stays = stays;
        }

        @Override
        void dispatch() {
            if (stays) {
                return;
            }
            revision.begins();
            revision.ends();
            finish(2);
        }

        @Override
        void resume() {
            dispatch();
        }

        @Override
        void rejected(ServingException e) {
            finish(5);
        }

        void finish(int kind) {
            if (end(kind == 4 ? 499 : kind * 100)) {
                outcome.addAndGet(outcome.get() == 0 ? kind : 10);
            }
        }

        @Override
        long bytes() {
            return 7;
        }

        @Override
        long deadline() {
            return Long.MAX_VALUE;
        }
    }

    /** Two requests to a revision that runs one at a time. */
    @JCStressTest
    @Outcome(id = "2, 2, 1, 0", expect = ACCEPTABLE, desc = "Both ran, one after the other.")
    @State
    public static class Limit extends Revision {
        private final Request a = new Request(this);
        private final Request b = new Request(this);

        public Limit() {
            super(1, 1);
        }

        @Actor
        public void one() {
            activator.enter(a);
        }

        @Actor
        public void two() {
            activator.enter(b);
        }

        @Arbiter
        public void end(IIII_Result r) {
            r.r1 = a.outcome.get();
            r.r2 = b.outcome.get();
            r.r3 = most;
            r.r4 = left();
        }
    }

    /** A request arrives while the first replica becomes ready. */
    @JCStressTest
    @Outcome(id = "2, 0, 0", expect = ACCEPTABLE, desc = "It arrived after the replica.")
    @Outcome(id = "2, 1, 0", expect = ACCEPTABLE, desc = "It was held and woke the revision.")
    @State
    public static class Wake extends Revision {
        private final Request request = new Request(this);

        public Wake() {
            super(0, 0);
        }

        @Actor
        public void one() {
            activator.enter(request);
        }

        @Actor
        public void two() {
            activator.capacity(1);
        }

        @Arbiter
        public void end(III_Result r) {
            r.r1 = request.outcome.get();
            r.r2 = woken.get();
            r.r3 = left();
        }
    }

    /** A request arrives while a revision with a replica is closed. */
    @JCStressTest
    @Outcome(id = "2, 1, 0", expect = ACCEPTABLE, desc = "It ran, and the revision was drained.")
    @Outcome(id = "5, 1, 0", expect = ACCEPTABLE, desc = "It was rejected, and the revision was drained.")
    @State
    public static class CloseReady extends Revision {
        private final Request request = new Request(this);

        public CloseReady() {
            super(0, 1);
        }

        @Actor
        public void one() {
            activator.enter(request);
        }

        @Actor
        public void two() {
            var unused = activator.close();
        }

        @Arbiter
        public void end(III_Result r) {
            r.r1 = request.outcome.get();
            r.r2 = activator.drained().toCompletableFuture().isDone() ? 1 : 0;
            r.r3 = left();
        }
    }

    /** A request arrives while a revision without replicas is closed. */
    @JCStressTest
    @Outcome(id = "5, 1, 0", expect = ACCEPTABLE, desc = "It was rejected, and the revision was drained.")
    @State
    public static class CloseAsleep extends Revision {
        private final Request request = new Request(this);

        public CloseAsleep() {
            super(0, 0);
        }

        @Actor
        public void one() {
            activator.enter(request);
        }

        @Actor
        public void two() {
            var unused = activator.close();
        }

        @Arbiter
        public void end(III_Result r) {
            r.r1 = request.outcome.get();
            r.r2 = activator.drained().toCompletableFuture().isDone() ? 1 : 0;
            r.r3 = left();
        }
    }

    /** A request arrives while its revision begins to reject all requests. */
    @JCStressTest
    @Outcome(id = "5, 0", expect = ACCEPTABLE, desc = "It was rejected.")
    @State
    public static class Refuse extends Revision {
        private final Request request = new Request(this);

        public Refuse() {
            super(0, 0);
        }

        @Actor
        public void one() {
            activator.enter(request);
        }

        @Actor
        public void two() {
            activator.reject("the model cannot be loaded");
        }

        @Arbiter
        public void end(II_Result r) {
            r.r1 = request.outcome.get();
            r.r2 = left();
        }
    }

    /** The client of a waiting request disconnects while the request before it ends. */
    @JCStressTest
    @Outcome(id = "4, 1, 0", expect = ACCEPTABLE, desc = "It was cancelled, before or after its admission.")
    @Outcome(id = "2, 1, 0", expect = ACCEPTABLE, desc = "It ran.")
    @State
    public static class CancelWaiting extends Revision {
        private final Request first = new Request(this, true);
        private final Request waiting = new Request(this);

        public CancelWaiting() {
            super(1, 1);
            activator.enter(first);
            activator.enter(waiting);
        }

        @Actor
        public void one() {
            first.finish(2);
        }

        @Actor
        public void two() {
            waiting.finish(4);
        }

        @Arbiter
        public void end(III_Result r) {
            r.r1 = waiting.outcome.get();
            // the permit was returned once: one request runs at once, and the next one waits
            Request next = new Request(this, true);
            Request last = new Request(this, true);
            activator.enter(next);
            activator.enter(last);
            r.r2 = activator.waitingNow();
            next.finish(2);
            last.finish(2);
            r.r3 = left();
        }
    }

    /** A request waits too long while a replica becomes ready. */
    @JCStressTest
    @Outcome(id = "2, 0", expect = ACCEPTABLE, desc = "It ran.")
    @Outcome(id = "5, 0", expect = ACCEPTABLE, desc = "It was rejected.")
    @State
    public static class Timeout extends Revision {
        private final Request request = new Request(this);

        public Timeout() {
            super(0, 0);
            activator.enter(request);
        }

        @Actor
        public void one() {
            activator.sweep(request.waitUntil);
        }

        @Actor
        public void two() {
            activator.capacity(1);
        }

        @Arbiter
        public void end(II_Result r) {
            r.r1 = request.outcome.get();
            r.r2 = left();
        }
    }
}
