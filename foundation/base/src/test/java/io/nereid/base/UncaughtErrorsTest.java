// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;

class UncaughtErrorsTest {
    @Test
    void whatNothingExpectedIsCounted() {
        long before = UncaughtErrors.count();
        assertThat(ServingException.from(new IndexOutOfBoundsException("3")).code())
                .isEqualTo(ErrorCode.INTERNAL);
        assertThat(ServingException.from(new IndexOutOfBoundsException("3")).getMessage())
                .isEqualTo("internal error: IndexOutOfBoundsException");
        assertThat(UncaughtErrors.count()).isGreaterThanOrEqualTo(before + 2);
    }

    @Test
    void whatSomethingExpectedIsNot() {
        ServingException expected = ServingException.invalidArgument("no");
        assertThat(ServingException.from(expected)).isSameAs(expected);
        long before = UncaughtErrors.count();
        assertThat(ServingException.from(new CancellationException()).code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(ServingException.from(new OutOfMemoryError()).code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(ServingException.from(new InterruptedException()).code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(UncaughtErrors.count()).isEqualTo(before);
    }
}
