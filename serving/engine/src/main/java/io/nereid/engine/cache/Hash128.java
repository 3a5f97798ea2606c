// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A 128-bit hash function. Implementations are thread-safe. */
public interface Hash128 {
    /** Starts a hash computation. */
    State begin();

    /** The state of one hash computation. Confined to one thread. */
    interface State {
        /** Adds the remaining bytes of a buffer, whose position may change. */
        void add(ByteBuffer bytes);

        long high();

        long low();
    }

    /**
     * Returns a fast non-cryptographic hash: four lanes of eight bytes, each multiplied and rotated. The random seed
     * prevents clients from constructing collisions; accidental collisions are detected by comparing all bytes of the
     * keys.
     */
    static Hash128 seeded(long seed) {
        return () -> new Lanes(seed);
    }

    /**
     * The implementation of {@link #seeded}. Four independent lanes let the processor overlap the multiplications; the
     * remaining words pass through the lanes in rotation.
     */
    final class Lanes implements State {
        private static final long M1 = 0x9E3779B97F4A7C15L;
        private static final long M2 = 0xFF51AFD7ED558CCDL;
        private static final long M3 = 0xC4CEB9FE1A85EC53L;

        private long a;
        private long b;
        private long c;
        private long d;
        private long length;

        Lanes(long seed) {
            a = seed;
            b = seed * M1 + M2;
            c = Long.rotateLeft(seed, 17) * M2 + M3;
            d = Long.rotateLeft(seed, 43) * M3 + M1;
        }

        @Override
        public void add(ByteBuffer bytes) {
            ByteBuffer in = bytes.order(ByteOrder.LITTLE_ENDIAN);
            int at = in.position();
            int end = in.limit();
            long w = a;
            long x = b;
            long y = c;
            long z = d;
            for (; end - at >= 32; at += 32) {
                w = step(w, in.getLong(at));
                x = step(x, in.getLong(at + 8));
                y = step(y, in.getLong(at + 16));
                z = step(z, in.getLong(at + 24));
            }
            for (; end - at >= 8; at += 8) {
                long next = step(w, in.getLong(at));
                w = x;
                x = y;
                y = z;
                z = next;
            }
            long rest = 0;
            for (int i = 0; at + i < end; i++) {
                rest |= (in.get(at + i) & 0xFFL) << 8 * i;
            }
            length += end - bytes.position();
            a = step(w, rest);
            b = step(x, end - bytes.position());
            c = y;
            d = z;
        }

        private static long step(long lane, long word) {
            return Long.rotateLeft(lane + word * M2, 31) * M1;
        }

        private static long spread(long h) {
            long x = (h ^ h >>> 33) * M2;
            x = (x ^ x >>> 33) * M3;
            return x ^ x >>> 33;
        }

        @Override
        public long high() {
            return spread(Long.rotateLeft(a, 1)
                    + Long.rotateLeft(b, 7)
                    + Long.rotateLeft(c, 12)
                    + Long.rotateLeft(d, 18)
                    + length);
        }

        @Override
        public long low() {
            return spread(
                    spread(a) + Long.rotateLeft(spread(b), 21) + Long.rotateLeft(spread(c), 42) + M1 * d + length);
        }
    }
}
