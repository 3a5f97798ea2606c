// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class CodingTest {
    @Test
    void statusTextsAreEscapedAsGrpcAsks() {
        assertThat(PercentCoding.encode("plain text")).isEqualTo("plain text");
        assertThat(PercentCoding.encode("50% of é\n")).isEqualTo("50%25 of %C3%A9%0A");
    }

    @Test
    void plusIsASpaceInQueriesAlone() {
        assertThat(PercentCoding.decode("a+b%2B", true)).isEqualTo("a b+");
        assertThat(PercentCoding.decode("a+b", false)).isEqualTo("a+b");
    }

    @Test
    void timeoutsHaveUpToEightDigitsAndAUnit() {
        assertThat(GrpcHeaders.timeoutNanos("5n")).isEqualTo(5);
        assertThat(GrpcHeaders.timeoutNanos("5u")).isEqualTo(5_000);
        assertThat(GrpcHeaders.timeoutNanos("100m")).isEqualTo(100_000_000);
        assertThat(GrpcHeaders.timeoutNanos("3S")).isEqualTo(TimeUnit.SECONDS.toNanos(3));
        assertThat(GrpcHeaders.timeoutNanos("2M")).isEqualTo(TimeUnit.MINUTES.toNanos(2));
        assertThat(GrpcHeaders.timeoutNanos("99999999H")).isPositive();
        for (String bad : new String[] {"", "5", "S", "123456789S", "-1S", "1.5S", "5s", "5 S"}) {
            assertThat(GrpcHeaders.timeoutNanos(bad)).as(bad).isEqualTo(-1);
        }
    }

    @Test
    void theBestAcceptedEncodingIsChosen() {
        assertThat(Encoding.accepted(null)).isEqualTo(Encoding.IDENTITY);
        assertThat(Encoding.accepted("gzip, deflate, br")).isEqualTo(Encoding.GZIP);
        assertThat(Encoding.accepted("deflate;q=1.0, gzip;q=0.9")).isEqualTo(Encoding.DEFLATE);
        assertThat(Encoding.accepted("gzip;q=0, *")).isEqualTo(Encoding.DEFLATE);
        assertThat(Encoding.accepted("*;q=0")).isEqualTo(Encoding.IDENTITY);
        assertThat(Encoding.accepted("identity, gzip;q=0.5")).isEqualTo(Encoding.IDENTITY);
        assertThat(Encoding.accepted("br")).isEqualTo(Encoding.IDENTITY);
    }
}
