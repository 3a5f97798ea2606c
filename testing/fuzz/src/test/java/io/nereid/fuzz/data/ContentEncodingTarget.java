// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.data;

import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.codec.ContentEncoding;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * A compressed body: the result has at most the bytes that are allowed, and a refusal gives the budget back. The bytes themselves,
 * compressed and decompressed, are the same. Confined to one thread.
 */
public final class ContentEncodingTarget implements FuzzTarget {
    private static final int MOST = 200_000;
    private final ByteBudget budget = new ByteBudget(1 << 20);

    @Override
    public void read(byte[] input) {
        if (input.length == 0) {
            return;
        }
        ContentEncoding encoding = (input[0] & 1) != 0 ? ContentEncoding.GZIP : ContentEncoding.DEFLATE;
        byte[] rest = Arrays.copyOfRange(input, 1, input.length);
        if (rest.length > 0) {
            byte[] back = inflated(encoding, encoding.deflate(rest, rest.length));
            if (!Arrays.equals(back, rest)) {
                throw new AssertionError("compressed and decompressed, the bytes are others");
            }
        }
        inflated(encoding, rest);
    }

    private byte[] inflated(ContentEncoding encoding, byte[] bytes) {
        ByteBuf in = Unpooled.directBuffer(bytes.length).writeBytes(bytes);
        try {
            ByteBuf out = encoding.inflate(in, MOST, budget);
            byte[] read = new byte[out.readableBytes()];
            out.readBytes(read);
            budget.release(out.capacity());
            out.release();
            if (read.length > MOST) {
                throw new AssertionError(read.length + " bytes, more than are allowed");
            }
            return read;
        } catch (ServingException e) {
            if (budget.used() != 0) {
                throw new AssertionError("a refusal keeps " + budget.used() + " bytes of the budget", e);
            }
            throw e;
        } finally {
            in.release();
            if (budget.used() != 0) {
                throw new AssertionError(budget.used() + " bytes of the budget are not given back");
            }
        }
    }

    @Override
    public List<byte[]> seeds() {
        byte[] text = "hello hello hello hello".getBytes(StandardCharsets.US_ASCII);
        byte[] gzip = ContentEncoding.GZIP.deflate(text, text.length);
        byte[] deflate = ContentEncoding.DEFLATE.deflate(text, text.length);
        byte[] one = new byte[gzip.length + 1];
        one[0] = 1;
        System.arraycopy(gzip, 0, one, 1, gzip.length);
        byte[] two = new byte[deflate.length + 1];
        System.arraycopy(deflate, 0, two, 1, deflate.length);
        return List.of(one, two);
    }
}
