// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.util.Random;
import org.junit.jupiter.api.Test;

class LargeReadCumulatorTest {
    private static final ByteBufAllocator ALLOCATOR = PooledByteBufAllocator.DEFAULT;

    private final Random random = new Random(7);

    private byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        random.nextBytes(bytes);
        return bytes;
    }

    private static ByteBuf read(byte[] bytes, int from, int count) {
        return ALLOCATOR.directBuffer(count).writeBytes(bytes, from, count);
    }

    @Test
    void aLargeReadIsNotCopied() {
        byte[] sent = bytes(3 * LargeReadCumulator.LARGE);
        ByteBuf first = read(sent, 0, 100);
        ByteBuf second = read(sent, 100, sent.length - 100);
        long address = second.memoryAddress();
        ByteBuf joined = LargeReadCumulator.INSTANCE.cumulate(ALLOCATOR, first, second);
        assertThat(joined).isInstanceOf(CompositeByteBuf.class);
        assertThat(((CompositeByteBuf) joined).internalComponent(1).memoryAddress())
                .isEqualTo(address);
        byte[] read = new byte[sent.length];
        joined.readBytes(read);
        assertThat(read).isEqualTo(sent);
        joined.release();
        assertThat(first.refCnt()).isZero();
        assertThat(second.refCnt()).isZero();
    }

    @Test
    void manySmallReadsShareMemory() {
        byte[] sent = bytes(LargeReadCumulator.LARGE + 5000);
        ByteBuf joined = LargeReadCumulator.INSTANCE.cumulate(
                ALLOCATOR, read(sent, 0, 10), read(sent, 10, LargeReadCumulator.LARGE));
        for (int i = LargeReadCumulator.LARGE + 10; i < sent.length; i++) {
            joined = LargeReadCumulator.INSTANCE.cumulate(ALLOCATOR, joined, read(sent, i, 1));
        }
        assertThat(((CompositeByteBuf) joined).numComponents()).isLessThan(20);
        byte[] read = new byte[sent.length];
        joined.readBytes(read);
        assertThat(read).isEqualTo(sent);
        joined.release();
    }

    @Test
    void readsOfAnySizeAreJoinedInOrder() {
        for (int round = 0; round < 200; round++) {
            byte[] sent = bytes(1 + random.nextInt(200_000));
            byte[] read = new byte[sent.length];
            int done = 0;
            ByteBuf joined = ALLOCATOR.directBuffer(0);
            for (int at = 0; at < sent.length; ) {
                int count = Math.min(sent.length - at, 1 + random.nextInt(random.nextBoolean() ? 50_000 : 100));
                joined = LargeReadCumulator.INSTANCE.cumulate(ALLOCATOR, joined, read(sent, at, count));
                at += count;
                int taken = random.nextInt(joined.readableBytes() + 1);
                joined.readBytes(read, done, taken);
                done += taken;
                joined.discardSomeReadBytes();
            }
            joined.readBytes(read, done, joined.readableBytes());
            joined.release();
            assertThat(read).isEqualTo(sent);
        }
    }
}
