// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

import io.nereid.app.perf.load.LoadResult;
import java.util.List;

/**
 * What the reports of a measurement show. Immutable.
 *
 * @param server the URL of the server, or the repository in process
 * @param protocol how requests are sent
 * @param batchSize rows of a request
 * @param results one for each load, in the order of the measurement
 * @param checks the outcome of each assertion at each load
 * @param warnings what makes the numbers doubtful
 * @param interrupted whether the measurement was ended before its last load
 */
public record PerfReport(
        String model,
        String version,
        String server,
        String protocol,
        int batchSize,
        List<LoadResult> results,
        List<AssertionCheck> checks,
        List<String> warnings,
        boolean interrupted) {
    /** Whether every assertion holds. */
    public boolean passed() {
        return checks.stream().allMatch(AssertionCheck::passed);
    }

    /**
     * The outcome of an assertion at a load. Immutable.
     *
     * @param text the assertion as it was given
     * @param load the load, as {@code concurrency 8}
     * @param actual the measured value, in the unit
     * @param unit the unit with a space before it; empty for counts
     */
    public record AssertionCheck(String text, String load, double actual, String unit, boolean passed) {}
}
