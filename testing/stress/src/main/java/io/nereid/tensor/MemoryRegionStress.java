// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import io.netty.buffer.ByteBuf;
import io.netty.util.IllegalReferenceCountException;
import java.nio.ByteBuffer;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.IIII_Result;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * The reference count of {@link MemoryRegion}: memory is freed once, by the last release, after everything that the
 * other owners did with it, and never under an owner. All regions are foreign memory, which reports when it is freed.
 */
public final class MemoryRegionStress {
    private static final int SIZE = 8;

    private static final ByteBuffer MEMORY = ByteBuffer.allocateDirect(SIZE);

    private MemoryRegionStress() {}

    /** A region that records how often it was freed. Confined to the instance of a test. */
    public static class Counted {
        final MemoryRegion region = MemoryRegion.wrap(MEMORY, this::free);
        volatile boolean free;
        int frees;
        int first;
        int second;
        int seen;

        private void free() {
            free = true;
            frees++;
            seen = first + second;
        }

        /** Returns 1 while the memory is not freed, else 2. */
        int held() {
            return free ? 2 : 1;
        }
    }

    /** Two owners release. */
    @JCStressTest
    @Outcome(id = "1, 0, 1, 2", expect = ACCEPTABLE, desc = "The first owner was the last to release.")
    @Outcome(id = "0, 1, 1, 2", expect = ACCEPTABLE, desc = "The second owner was the last to release.")
    @State
    public static class TwoReleases extends Counted {
        public TwoReleases() {
            region.retain();
        }

        @Actor
        public void one(IIII_Result r) {
            first = 1;
            r.r1 = region.release() ? 1 : 0;
        }

        @Actor
        public void two(IIII_Result r) {
            second = 1;
            r.r2 = region.release() ? 1 : 0;
        }

        @Arbiter
        public void end(IIII_Result r) {
            r.r3 = frees;
            r.r4 = seen;
        }
    }

    /** The owner of a tensor closes it while the owner of a part of it reads and closes the part. */
    @JCStressTest
    @Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "Both read memory that was not freed.")
    @State
    public static class TensorAndSlice extends Counted {
        private final Tensor whole = Tensor.over("x", DataType.INT8, Shape.of(SIZE), region, 0, SIZE);
        private final Tensor part = whole.retainSlice(Shape.of(2), 2, 2);

        @Actor
        public void one(III_Result r) {
            r.r1 = held();
            whole.close();
        }

        @Actor
        public void two(III_Result r) {
            r.r2 = held();
            part.close();
        }

        @Arbiter
        public void end(III_Result r) {
            r.r3 = frees;
        }
    }

    /** The owner of a region releases it while a transport releases a buffer over the same bytes. */
    @JCStressTest
    @Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "Both read memory that was not freed.")
    @State
    public static class RegionAndBuffer extends Counted {
        private final ByteBuf buffer = NettyBuffers.buffer(region, 2, 2);

        @Actor
        public void one(III_Result r) {
            r.r1 = held();
            region.release();
        }

        @Actor
        public void two(III_Result r) {
            r.r2 = held();
            buffer.release();
        }

        @Arbiter
        public void end(III_Result r) {
            r.r3 = frees;
        }
    }

    /** One thread passes references on and takes them back while the other one releases the first reference. */
    @JCStressTest
    @Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "The thread with one reference was the last to release.")
    @Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "The thread that retains was the last to release.")
    @State
    public static class RetainAndRelease extends Counted {
        public RetainAndRelease() {
            region.retain();
        }

        @Actor
        public void one(III_Result r) {
            r.r1 = region.release() ? 1 : 0;
        }

        @Actor
        public void two(III_Result r) {
            region.retain();
            region.retain();
            boolean early = region.release() | region.release();
            r.r2 = early || free ? 2 : region.release() ? 1 : 0;
        }

        @Arbiter
        public void end(III_Result r) {
            r.r3 = frees;
        }
    }

    /** A thread without a reference, which is an error of the caller, gets an exception or a reference that counts. */
    @JCStressTest
    @Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "Freed before: an exception.")
    @Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "Retained and released before the owner released.")
    @Outcome(id = "0, 2, 1", expect = ACCEPTABLE, desc = "Retained in time; then this reference was the last.")
    @State
    public static class LateRetain extends Counted {
        @Actor
        public void one(III_Result r) {
            r.r1 = region.release() ? 1 : 0;
        }

        @Actor
        public void two(III_Result r) {
            try {
                region.retain();
            } catch (IllegalReferenceCountException e) {
                r.r2 = 0;
                return;
            }
            boolean alive = !free;
            boolean last = region.release();
            r.r2 = !alive ? 3 : last ? 2 : 1;
        }

        @Arbiter
        public void end(III_Result r) {
            r.r3 = frees;
        }
    }
}
