// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * The acceptance cases of who holds how much, under the names they go by elsewhere.
 *
 * <table>
 * <caption>Cases without a counterpart</caption>
 * <tr><td>UnboundTotalResources, UnnormalizedTotalResources, …UsedResourcesUnbound</td><td>memory is one number, bound to
 * no device</td></tr>
 * </table>
 */
class ResourceTrackerTest {
    private final MemoryLedger ledger = new MemoryLedger(10_000);

    private static Version version(String model, long number) {
        return new Version(new ServableId(model, number), new FakeLoader(model, number, "a"));
    }

    @Test
    void recomputeUsedResources() {
        Version a = version("a", 1);
        Version b = version("b", 1);
        assertThat(ledger.used()).isZero();
        assertThat(ledger.reserve(a, 6_000)).isNull();
        assertThat(ledger.reserve(b, 3_000)).isNull();
        assertThat(ledger.used()).isEqualTo(9_000);
        ledger.correct(a, 4_000);
        assertThat(ledger.used()).isEqualTo(7_000);
        ledger.correct(a, 0);
        ledger.correct(a, 0);
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
        ServingException refusal = ledger.reserve(version("late", 1), 3_000);
        assertThat(refusal).isNotNull();
        assertThat(refusal.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(refusal.getMessage())
                .isEqualTo("model 'late' version 1 does not fit into memory: it needs 3.0 kB, and 3.0 kB of 10.0 kB are"
                        + " free; held by m:7 1.0 kB, m:6 1.0 kB, m:5 1.0 kB, m:4 1.0 kB, m:3 1.0 kB and 2 more");
        assertThat(ledger.used()).as("unchanged").isEqualTo(7_028);
    }

    @Test
    void twoLoadsOfOneVersionAreBookedSideBySide() {
        Version old = version("m", 1);
        Version next = version("m", 1);
        assertThat(ledger.reserve(old, 4_000)).isNull();
        assertThat(ledger.reserve(next, 4_000)).isNull();
        ledger.correct(old, 0);
        assertThat(ledger.used()).isEqualTo(4_000);
    }

    @Test
    void invalidResourceEstimate() throws Exception {
        try (Rig rig = new Rig(ManagerOptions.DEFAULT.withMemoryLimitBytes(10).withLoadNiceness(0))) {
            FakeLoader odd = rig.loader("m", 1, "a");
            odd.estimate = -5;
            rig.aspire("m", odd);
            var unused = rig.settle("m");
            assertThat(rig.serving(ModelRef.latest("m"))).isNotNull();
            assertThat(rig.manager.memoryBytes())
                    .as("less than nothing is unknown")
                    .isZero();
        }
    }

    @Test
    void withoutALimitEverythingFits() {
        MemoryLedger boundless = new MemoryLedger(0);
        List<Version> many = List.of(version("a", 1), version("b", 1));
        many.forEach(v -> assertThat(boundless.reserve(v, Long.MAX_VALUE / 4)).isNull());
        assertThat(boundless.fits(Long.MAX_VALUE)).isTrue();
    }
}
