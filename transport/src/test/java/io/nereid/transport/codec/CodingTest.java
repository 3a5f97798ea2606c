// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.codec;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.transport.grpc.GrpcHeaders;
import io.nereid.transport.routing.PercentEncoding;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class CodingTest {
    @Test
    void statusTextsAreEscapedAsGrpcAsks() {
        assertThat(PercentEncoding.encode("plain text")).isEqualTo("plain text");
        assertThat(PercentEncoding.encode("50% of é\n")).isEqualTo("50%25 of %C3%A9%0A");
    }

    @Test
    void plusIsASpaceInQueriesAlone() {
        assertThat(PercentEncoding.decode("a+b%2B", true)).isEqualTo("a b+");
        assertThat(PercentEncoding.decode("a+b", false)).isEqualTo("a+b");
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
        assertThat(ContentEncoding.accepted(null)).isEqualTo(ContentEncoding.IDENTITY);
        assertThat(ContentEncoding.accepted("gzip, deflate, br")).isEqualTo(ContentEncoding.GZIP);
        assertThat(ContentEncoding.accepted("deflate;q=1.0, gzip;q=0.9")).isEqualTo(ContentEncoding.DEFLATE);
        assertThat(ContentEncoding.accepted("gzip;q=0, *")).isEqualTo(ContentEncoding.DEFLATE);
        assertThat(ContentEncoding.accepted("*;q=0")).isEqualTo(ContentEncoding.IDENTITY);
        assertThat(ContentEncoding.accepted("identity, gzip;q=0.5")).isEqualTo(ContentEncoding.IDENTITY);
        assertThat(ContentEncoding.accepted("br")).isEqualTo(ContentEncoding.IDENTITY);
    }
}
