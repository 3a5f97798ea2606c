// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ServingExceptionTest {
    @Test
    void clientErrorsCarryNoStackTraceAndWrappedFailuresDo() {
        assertThat(ServingException.invalidArgument("x").getStackTrace()).isEmpty();
        assertThat(ServingException.internal("x", new IllegalStateException()).getStackTrace())
                .isNotEmpty();
    }

    @Test
    void theRemedyFollowsTheMessage() {
        assertThat(ServingException.of(ErrorCode.NOT_FOUND, "no 'x'", "try 'y'").describe())
                .isEqualTo("no 'x' (try 'y')");
        assertThat(ServingException.of(ErrorCode.NOT_FOUND, "no 'x'").describe())
                .isEqualTo("no 'x'");
    }

    @Test
    void aForeignThrowableBecomesInternalWithoutItsText() {
        ServingException e = ServingException.from(new IllegalStateException("secret path"));
        assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(e.getMessage()).isEqualTo("internal error: IllegalStateException");
        assertThat(ServingException.from(e)).isSameAs(e);
    }

    @Test
    void codesHaveTheNumbersOfTheGrpcWire() {
        assertThat(ErrorCode.OK.number()).isZero();
        assertThat(ErrorCode.INVALID_ARGUMENT.number()).isEqualTo(3);
        assertThat(ErrorCode.RESOURCE_EXHAUSTED.number()).isEqualTo(8);
        assertThat(ErrorCode.UNIMPLEMENTED.number()).isEqualTo(12);
        assertThat(ErrorCode.UNAVAILABLE.number()).isEqualTo(14);
        assertThat(ErrorCode.UNAUTHENTICATED.number()).isEqualTo(16);
    }

    @Test
    void aMessageThatQuotesALongValueIsShortened() {
        String name = "x".repeat(10_000_000) + "end";
        ServingException e = ServingException.invalidArgument("unexpected input '" + name + "'", "remove " + name);
        assertThat(e.getMessage())
                .hasSizeLessThan(17_000)
                .startsWith("unexpected input 'xxx")
                .endsWith("xend'");
        assertThat(e.getMessage()).contains("characters left out");
        assertThat(e.describe()).hasSizeLessThan(34_000);
        assertThat(ServingException.wrap(ErrorCode.INTERNAL, name, new IllegalStateException())
                        .getMessage())
                .hasSizeLessThan(17_000);
    }

    @Test
    void aFailedAllocationIsAShortageAndNotABug() {
        ServingException e = ServingException.from(new OutOfMemoryError("Cannot reserve 60000000 bytes"));
        assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(e.remedy()).isEqualTo("retry later");
    }
}
