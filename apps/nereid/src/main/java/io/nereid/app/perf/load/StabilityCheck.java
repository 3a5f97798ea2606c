// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * Decides whether measurements are stable: of the last windows neither the rate nor the latency is further from their mean than a
 * share of it, as perf_analyzer decides. Immutable.
 *
 * @param percentage the largest distance from the mean, in percent of it
 * @param windows how many windows must agree
 */
public record StabilityCheck(double percentage, int windows) {
    /** perf_analyzer's: three windows within ten percent. */
    public static final StabilityCheck DEFAULT = new StabilityCheck(10, 3);

    /** What a window has measured. */
    public record Observation(double rate, double latency) {}

    /** Whether the last windows agree. */
    public boolean isStable(List<Observation> all) {
        if (all.size() < windows) {
            return false;
        }
        List<Observation> last = all.subList(all.size() - windows, all.size());
        return agree(last, Observation::rate) && agree(last, Observation::latency);
    }

    private boolean agree(List<Observation> last, ToDoubleFunction<Observation> value) {
        double mean = last.stream().mapToDouble(value).average().orElse(0);
        // a window without a single response has nothing to agree with
        return mean > 0
                && last.stream()
                        .allMatch(each -> value.applyAsDouble(each) > 0
                                && Math.abs(value.applyAsDouble(each) - mean) <= mean * percentage / 100);
    }
}
