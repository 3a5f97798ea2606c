// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.protobuf.ProtobufReader;
import java.util.Arrays;

/** A growing list of byte ranges of a message. Confined to one thread. */
final class ByteRanges {
    private int[] bounds = new int[16];
    private int count;

    void clear() {
        count = 0;
        if (bounds.length > 1 << 12) {
            bounds = new int[16];
        }
    }

    int count() {
        return count;
    }

    int start(int i) {
        return bounds[2 * i];
    }

    int end(int i) {
        return bounds[2 * i + 1];
    }

    /** Adds the next length-delimited field's bytes and skips them. */
    void addNext(ProtobufReader wire) {
        int length = wire.readLength();
        if (2 * count == bounds.length) {
            bounds = Arrays.copyOf(bounds, count * 4);
        }
        bounds[2 * count] = wire.position();
        bounds[2 * count + 1] = wire.position() + length;
        count++;
        wire.skip(length);
    }

    /** The number of bytes in all ranges. */
    long bytes() {
        return bytes(0, count);
    }

    /** The number of bytes in the ranges {@code from} (inclusive) to {@code to} (exclusive). */
    long bytes(int from, int to) {
        long sum = 0;
        for (int i = from; i < to; i++) {
            sum += end(i) - start(i);
        }
        return sum;
    }
}
