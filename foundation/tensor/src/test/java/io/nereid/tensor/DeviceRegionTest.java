// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.netty.buffer.ByteBuf;
import org.junit.jupiter.api.Test;

class DeviceRegionTest {
    private static final class FakeMemory implements DeviceRegion.Memory {
        int reads;
        int frees;
        boolean lost;
        MemoryRegion copy = MemoryRegion.empty();

        @Override
        public int device() {
            return 3;
        }

        @Override
        public long address() {
            return 4096;
        }

        @Override
        public void read(MemoryRegion to) {
            reads++;
            copy = to;
            if (lost) {
                throw ServingException.of(ErrorCode.UNAVAILABLE, "device 3 is lost");
            }
            for (int i = 0; i < to.size(); i += 4) {
                to.setInt(i, i);
            }
        }

        @Override
        public void free() {
            frees++;
        }
    }

    private final FakeMemory memory = new FakeMemory();
    private final DeviceRegion region = DeviceRegion.of(memory, 16);

    @Test
    void itsTensorsShareOneCopyOnTheHostAndTheMemoryIsFreedOnce() {
        Tensor whole = Tensor.over("t", DataType.INT32, Shape.of(4), region, 0, 16);
        Tensor slice = whole.retainSlice(Shape.of(2), 8, 8);
        assertThat(slice.deviceRegion()).isSameAs(region);
        assertThat(region.device()).isEqualTo(3);
        assertThat(region.deviceAddress()).isEqualTo(4096);
        assertThat(region.isOnHost()).isFalse();
        Tensor host = slice.retainOnHost();
        try (Tensor other = whole.retainOnHost()) {
            assertThat(other.buffer().getInt(4)).isEqualTo(4);
        }
        assertThat(memory.reads).isEqualTo(1);
        assertThat(host.deviceRegion()).isNull();
        whole.close();
        assertThat(memory.frees).isZero();
        slice.close();
        assertThat(memory.frees).isEqualTo(1);
        // The copy lives as long as its readers.
        assertThat(host.buffer().getInt(0)).isEqualTo(8);
        host.close();
        assertThat(memory.copy.buf().refCnt()).isZero();
        assertThatThrownBy(region::deviceAddress).hasMessageContaining("used after it was released");
        assertThatThrownBy(region::retain).hasMessageContaining("retained after it was released");
        assertThatThrownBy(region::release).hasMessageContaining("released more often");
        assertThat(memory.frees).isEqualTo(1);
    }

    @Test
    void processorsReadItOnceItIsCopiedAndNeverWriteIt() {
        String early = "the bytes are in the memory of device 3 and have not been copied to the host";
        byte[] bytes = new byte[4];
        assertThatThrownBy(() -> region.getInt(0)).hasMessage(early);
        assertThatThrownBy(() -> region.getByte(0)).hasMessage(early);
        assertThatThrownBy(() -> region.getBytes(0, bytes, 0, 4)).hasMessage(early);
        assertThatThrownBy(() -> region.buffer(0, 4)).hasMessage(early);
        assertThatThrownBy(region::address).hasMessage(early);
        assertThatThrownBy(() -> NettyBuffers.buffer(region, 0, 4)).hasMessage(early);
        MemoryRegion target = MemoryRegion.allocate(4);
        assertThatThrownBy(() -> target.setBytes(0, region, 4, 4)).hasMessage(early);

        MemoryRegion host = region.copyToHost();
        assertThat(host.size()).isEqualTo(region.size());
        assertThat(region.isOnHost()).isTrue();
        assertThat(region.getInt(4)).isEqualTo(4);
        assertThat(region.getByte(8)).isEqualTo((byte) 8);
        assertThat(region.buffer(4, 4).getInt()).isEqualTo(4);
        assertThat(region.address()).isEqualTo(host.address());
        region.getBytes(12, bytes, 0, 4);
        assertThat(bytes).containsExactly(12, 0, 0, 0);
        target.setBytes(0, region, 4, 4);
        assertThat(target.getInt(0)).isEqualTo(4);
        ByteBuf view = NettyBuffers.buffer(region, 4, 4);
        assertThat(view.getIntLE(0)).isEqualTo(4);
        view.release();

        String written = "memory of device 3 cannot be written by processors";
        assertThatThrownBy(() -> region.setInt(0, 1)).hasMessage(written);
        assertThatThrownBy(() -> region.setBytes(0, bytes, 0, 4)).hasMessage(written);
        assertThatThrownBy(() -> region.setBytes(0, target, 0, 4)).hasMessage(written);
        assertThatThrownBy(region::zero).hasMessage(written);
        target.release();
        assertThat(region.release()).isTrue();
        assertThat(host.buf().refCnt()).isZero();
    }

    @Test
    void aCopyThatFailsLeavesNoMemoryOnTheHost() {
        memory.lost = true;
        assertThatThrownBy(region::copyToHost).hasMessage("device 3 is lost");
        assertThat(memory.copy.buf().refCnt()).isZero();
        assertThat(region.isOnHost()).isFalse();
        assertThat(region.release()).isTrue();
        assertThat(memory.frees).isEqualTo(1);
        assertThatThrownBy(() -> DeviceRegion.of(memory, 0)).hasMessageContaining("expected: at least 1");
    }
}
