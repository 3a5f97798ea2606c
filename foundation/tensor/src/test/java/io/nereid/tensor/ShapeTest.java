// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class ShapeTest {
    @Test
    void sizesThatOverflowAreRejected() {
        assertThat(Shape.of(2, 3, 4).elementCount()).isEqualTo(24);
        assertThat(Shape.SCALAR.elementCount()).isEqualTo(1);
        assertThat(Shape.of(0, Long.MAX_VALUE).elementCount()).isZero();
        assertThatThrownBy(() -> Shape.of(1L << 32, 1L << 32).elementCount()).hasMessageContaining("more elements");
        assertThatThrownBy(() -> Shape.of(1L << 31, 1L << 32).elementCount()).hasMessageContaining("more elements");
        assertThatThrownBy(() -> Shape.of(1L << 61).byteSize(DataType.FP64)).hasMessageContaining("more bytes");
        assertThatThrownBy(() -> Shape.of(-1, 2).elementCount()).hasMessageContaining("unknown size");
        assertThatThrownBy(() -> Shape.of(2, -2)).hasMessageContaining("dimension -2 (expected: >= 0)");
    }

    @Test
    void aSpecificationAcceptsWhatItLeavesOpen() {
        Shape spec = Shape.of(-1, 16);
        assertThat(spec.accepts(Shape.of(3, 16))).isTrue();
        assertThat(spec.accepts(Shape.of(3, 17))).isFalse();
        assertThat(spec.accepts(Shape.of(16))).isFalse();
        assertThat(spec).hasToString("[-1,16]");
    }

    @Test
    void theBatchDimensionIsPutOnAndTakenOff() {
        assertThat(Shape.of(16).prepend(-1)).isEqualTo(Shape.of(-1, 16));
        assertThat(Shape.of(4, 16).withFirst(2)).isEqualTo(Shape.of(2, 16));
        assertThat(Shape.of(4).withoutFirst()).isSameAs(Shape.SCALAR);
        assertThat(Shape.of(4, 2).sameBeyondFirst(Shape.of(9, 2))).isTrue();
        assertThat(Shape.of(4, 2).sameBeyondFirst(Shape.of(4, 3))).isFalse();
    }
}
