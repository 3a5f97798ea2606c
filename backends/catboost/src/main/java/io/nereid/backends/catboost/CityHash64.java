// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** CityHash64, version 1, of which CatBoost uses the lower 32 bits as the hash of a category's text. Stateless. */
final class CityHash64 {
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private static final long K0 = 0xc3a5c85c97cb3127L;
    private static final long K1 = 0xb492b66fbe98f273L;
    private static final long K2 = 0x9ae16a3b2f90404fL;
    private static final long K3 = 0xc949d7c7509e6557L;
    private static final long PAIR = 0x9ddfea08eb382d69L;

    private CityHash64() {}

    /** The hash of the first {@code length} bytes, truncated to 32 bits. */
    static int of(byte[] text, int length) {
        return (int) hash(text, length);
    }

    static long hash(byte[] s, int length) {
        if (length <= 16) {
            return upTo16(s, length);
        }
        if (length <= 32) {
            long a = at(s, 0) * K1;
            long b = at(s, 8);
            long c = at(s, length - 8) * K2;
            long d = at(s, length - 16) * K0;
            return pair(turn(a - b, 43) + turn(c, 30) + d, a + turn(b ^ K3, 20) - c + length);
        }
        return length <= 64 ? upTo64(s, length) : longer(s, length);
    }

    private static long upTo16(byte[] s, int length) {
        if (length > 8) {
            long last = at(s, length - 8);
            return pair(at(s, 0), turn(last + length, length)) ^ last;
        }
        if (length >= 4) {
            return pair(length + (half(s, 0) << 3), half(s, length - 4));
        }
        if (length == 0) {
            return K2;
        }
        long y = (s[0] & 0xffL) | (s[length >> 1] & 0xffL) << 8;
        long z = length + ((s[length - 1] & 0xffL) << 2);
        return fold(y * K2 ^ z * K3) * K2;
    }

    private static long upTo64(byte[] s, int length) {
        long z = at(s, 24);
        long a = at(s, 0) + (length + at(s, length - 16)) * K0;
        long b = turn(a + z, 52);
        long c = turn(a, 37);
        a += at(s, 8);
        c += turn(a, 7);
        a += at(s, 16);
        long vf = a + z;
        long vs = b + turn(a, 31) + c;
        a = at(s, 16) + at(s, length - 32);
        z = at(s, length - 8);
        b = turn(a + z, 52);
        c = turn(a, 37);
        a += at(s, length - 24);
        c += turn(a, 7);
        a += at(s, length - 16);
        long wf = a + z;
        long ws = b + turn(a, 31) + c;
        return fold(fold((vf + ws) * K2 + (wf + vs) * K0) * K0 + vs) * K2;
    }

    private static long longer(byte[] s, int length) {
        long x = at(s, 0);
        long y = at(s, length - 16) ^ K1;
        long z = at(s, length - 56) ^ K0;
        long[] v = new long[2];
        long[] w = new long[2];
        mix(s, length - 64, length, y, v);
        mix(s, length - 32, length * K1, K0, w);
        z += fold(v[1]) * K1;
        x = turn(z + x, 39) * K1;
        y = turn(y, 33) * K1;
        int end = length - 1 & ~63;
        for (int at = 0; at < end; at += 64) {
            x = turn(x + y + v[0] + at(s, at + 16), 37) * K1;
            y = turn(y + v[1] + at(s, at + 48), 42) * K1;
            x ^= w[1];
            y ^= v[0];
            z = turn(z ^ w[0], 33);
            mix(s, at, v[1] * K1, x + w[0], v);
            mix(s, at + 32, z + w[1], y, w);
            long t = z;
            z = x;
            x = t;
        }
        return pair(pair(v[0], w[0]) + fold(y) * K1 + z, pair(v[1], w[1]) + x);
    }

    /** {@code WeakHashLen32WithSeeds}: mixes 32 bytes and two seeds to two numbers. */
    private static void mix(byte[] s, int from, long a, long b, long[] to) {
        long first = a + at(s, from);
        long last = at(s, from + 24);
        long turned = turn(b + first + last, 21);
        long sum = first + at(s, from + 8) + at(s, from + 16);
        to[0] = sum + last;
        to[1] = turned + turn(sum, 44) + first;
    }

    private static long pair(long low, long high) {
        long a = (low ^ high) * PAIR;
        a ^= a >>> 47;
        long b = (high ^ a) * PAIR;
        b ^= b >>> 47;
        return b * PAIR;
    }

    private static long turn(long value, int by) {
        return Long.rotateRight(value, by);
    }

    private static long fold(long value) {
        return value ^ (value >>> 47);
    }

    private static long at(byte[] s, int place) {
        return (long) LONG.get(s, place);
    }

    private static long half(byte[] s, int place) {
        return (int) INT.get(s, place) & 0xffff_ffffL;
    }
}
