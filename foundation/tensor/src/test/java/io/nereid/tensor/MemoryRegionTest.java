// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class MemoryRegionTest {
    @Test
    void pooledRegionsStartOnACacheLineWhateverTheirSize() {
        List<MemoryRegion> regions = new ArrayList<>();
        for (int size : new int[] {1, 7, 64, 65, 1000, 4097, 100_000, 5_000_000}) {
            MemoryRegion region = MemoryRegion.allocate(size);
            regions.add(region);
            assertThat(region.size()).isEqualTo(size);
            assertThat(region.address() % MemoryRegion.ALIGNMENT)
                    .as("size %d", size)
                    .isZero();
        }
        regions.forEach(MemoryRegion::release);
    }

    @Test
    void foreignMemoryGoesBackToItsOwnerOnceWhenTheLastCountIsDropped() {
        AtomicInteger freed = new AtomicInteger();
        ByteBuffer memory = ByteBuffer.allocateDirect(16);
        memory.put(0, (byte) 42).position(5);
        MemoryRegion region = MemoryRegion.wrap(memory, freed::incrementAndGet);
        assertThat(region.size()).isEqualTo(16);
        assertThat(region.getByte(0)).isEqualTo((byte) 42);
        ByteBuf view = NettyBuffers.buffer(region, 0, 8);
        assertThat(region.release()).isFalse();
        assertThat(freed).hasValue(0);
        assertThat(view.getByte(0)).isEqualTo((byte) 42);
        view.release();
        assertThat(freed).hasValue(1);
    }

    @Test
    void noBytesNeedNoMemory() {
        AtomicInteger freed = new AtomicInteger();
        MemoryRegion none = MemoryRegion.wrap(ByteBuffer.allocateDirect(0), freed::incrementAndGet);
        assertThat(none).isSameAs(MemoryRegion.empty());
        assertThat(freed).hasValue(1);
        none.retain();
        none.release();
        none.release();
        assertThat(none.size()).isZero();
    }

    @Test
    void aReleasedRegionCannotBeUsed() {
        MemoryRegion region = MemoryRegion.allocate(8);
        region.release();
        assertThatThrownBy(() -> region.getByte(0)).isInstanceOf(RuntimeException.class);
    }

    @Test
    void tensorsShareARegionAndTheLastOneFreesIt() {
        AtomicInteger freed = new AtomicInteger();
        MemoryRegion region = MemoryRegion.wrap(ByteBuffer.allocateDirect(24), freed::incrementAndGet);
        Tensor whole = Tensor.over("x", DataType.FP32, Shape.of(3, 2), region, 0, 24);
        whole.buffer().putFloat(8, 7f);
        Tensor row = whole.retainSlice(Shape.of(1, 2), 8, 8);
        Tensor renamed = row.retainAs("y", Shape.of(2));
        whole.close();
        row.close();
        assertThat(renamed.buffer().getFloat()).isEqualTo(7f);
        assertThat(renamed.name()).isEqualTo("y");
        assertThat(freed).hasValue(0);
        renamed.close();
        assertThat(freed).hasValue(1);
    }

    @Test
    void aTensorOfTwoGigabytesIsRejected() {
        assertThatThrownBy(() -> Tensor.allocate("x", DataType.FP32, Shape.of(1L << 29)))
                .hasMessageContaining("takes 2147483648 bytes (expected: < 2 GiB)");
    }

    @Test
    void theBudgetNeverGivesMoreThanItHas() {
        ByteBudget budget = new ByteBudget(100);
        assertThat(budget.tryReserve(60)).isTrue();
        assertThat(budget.tryReserve(41)).isFalse();
        assertThat(budget.tryReserve(Long.MAX_VALUE)).isFalse();
        assertThat(budget.tryReserve(40)).isTrue();
        budget.release(60);
        assertThat(budget.used()).isEqualTo(40);
    }

    @Test
    void aShareCountsInTheWhole() {
        ByteBudget whole = new ByteBudget(100);
        ByteBudget one = whole.share(60);
        ByteBudget two = whole.share(60);
        assertThat(one.tryReserve(61)).isFalse();
        assertThat(one.tryReserve(60)).isTrue();
        assertThat(two.left()).isEqualTo(40);
        assertThat(two.tryReserve(41)).isFalse();
        assertThat(two.used()).isZero();
        assertThat(two.tryReserve(40)).isTrue();
        assertThat(whole.used()).isEqualTo(100);
        two.reserve(30);
        assertThat(whole.left()).isEqualTo(-30);
        two.release(70);
        one.release(60);
        assertThat(whole.used()).isZero();
    }

    @Test
    void aShortageIsReportedWhenLittleIsLeftAndWhenAReservationFails() {
        ByteBudget budget = new ByteBudget(80);
        List<Long> reported = new ArrayList<>();
        budget.onShortage(reported::add);
        assertThat(budget.tryReserve(70)).isTrue();
        assertThat(reported).isEmpty();
        assertThat(budget.tryReserve(1)).isTrue();
        assertThat(reported).containsExactly(0L);
        assertThat(budget.tryReserve(10)).isFalse();
        assertThat(reported).containsExactly(0L, 10L);
    }
}
