// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.resources;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.lifecycle.FakeLoader;
import io.nereid.lifecycle.ManagerFixture;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.state.ManagedVersion;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * The test cases of TensorFlow Serving's {@code ResourceTracker}, under their original names.
 *
 * <table>
 * <caption>Cases without a counterpart</caption>
 * <tr><td>UnboundTotalResources, UnnormalizedTotalResources, …UsedResourcesUnbound</td><td>memory is a single number
 * that is not bound to a device</td></tr>
 * </table>
 */
class ResourceTrackerTest {
    private final MemoryTracker ledger = new MemoryTracker(10_000);

    private static ManagedVersion version(String model, long number) {
        return new ManagedVersion(new ServableId(model, number), new FakeLoader(model, number, "a"));
    }

    @Test
    void recomputeUsedResources() {
        ManagedVersion a = version("a", 1);
        ManagedVersion b = version("b", 1);
        assertThat(ledger.used()).isZero();
        assertThat(ledger.reserve(a, 6_000)).isNull();
        assertThat(ledger.reserve(b, 3_000)).isNull();
        assertThat(ledger.used()).isEqualTo(9_000);
        ledger.set(a, 4_000);
        assertThat(ledger.used()).isEqualTo(7_000);
        ledger.set(a, 0);
        ledger.set(a, 0);
        assertThat(ledger.used()).isEqualTo(3_000);
        assertThat(ledger.holders()).containsExactly(b);
    }

    @Test
    void reserveResourcesSuccessWithUsedResourcesBound() {
        assertThat(ledger.reserve(version("a", 1), 6_000)).isNull();
        assertThat(ledger.reserve(version("b", 1), 4_000))
                .as("to the last byte")
                .isNull();
        assertThat(ledger.used()).isEqualTo(10_000);
    }

    @Test
    void reserveResourcesFailureWithUsedResourcesBound() {
        for (int i = 1; i <= 7; i++) {
            assertThat(ledger.reserve(version("m", i), 1_000 + i)).isNull();
        }
        ServingException error = ledger.reserve(version("late", 1), 3_000);
        assertThat(error).isNotNull();
        assertThat(error.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(error.getMessage())
                .isEqualTo("model 'late' version 1 does not fit into memory: it needs 3.0 kB, and 3.0 kB of 10.0 kB are"
                        + " free; held by m:7 1.0 kB, m:6 1.0 kB, m:5 1.0 kB, m:4 1.0 kB, m:3 1.0 kB and 2 more");
        assertThat(ledger.used()).as("unchanged").isEqualTo(7_028);
    }

    @Test
    void twoLoadsOfOneVersionAreBookedSideBySide() {
        ManagedVersion old = version("m", 1);
        ManagedVersion next = version("m", 1);
        assertThat(ledger.reserve(old, 4_000)).isNull();
        assertThat(ledger.reserve(next, 4_000)).isNull();
        ledger.set(old, 0);
        assertThat(ledger.used()).isEqualTo(4_000);
    }

    @Test
    void invalidResourceEstimate() throws Exception {
        try (ManagerFixture fixture = new ManagerFixture(
                ManagerOptions.DEFAULT.withMemoryLimitBytes(10).withLoadNiceness(0))) {
            FakeLoader odd = fixture.loader("m", 1, "a");
            odd.estimate = -5;
            fixture.aspire("m", odd);
            var unused = fixture.settle("m");
            assertThat(fixture.serving(ModelRef.latest("m"))).isNotNull();
            assertThat(fixture.manager.memoryBytes())
                    .as("a negative size means unknown")
                    .isZero();
        }
    }

    @Test
    void withoutALimitEverythingFits() {
        MemoryTracker boundless = new MemoryTracker(0);
        List<ManagedVersion> many = List.of(version("a", 1), version("b", 1));
        many.forEach(v -> assertThat(boundless.reserve(v, Long.MAX_VALUE / 4)).isNull());
        assertThat(boundless.fits(Long.MAX_VALUE)).isTrue();
    }
}
