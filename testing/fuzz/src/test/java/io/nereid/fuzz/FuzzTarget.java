// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import java.util.List;

/**
 * A reader of bytes that come from outside, as the fuzzer and the tests call it. A target is made once in a process and gets one
 * input after another on one thread. It must give the same result for the same input whatever came before.
 */
@FunctionalInterface
public interface FuzzTarget {
    /**
     * Reads one input. {@link TargetRun} accepts a {@link io.nereid.base.ServingException} whose code says that the input is wrong;
     * everything else that is thrown is a finding. A target checks its own invariants, such as round trips, and throws an
     * {@link AssertionError}.
     */
    void read(byte[] input) throws Exception;

    /** Valid inputs made by code; files come from {@link FuzzTargets}. */
    default List<byte[]> seeds() {
        return List.of();
    }

    /** The number of bytes that reading an input of this length may allocate on the heap. */
    default long allocationLimit(int length) {
        return (8L << 20) + 256L * length;
    }

    /** The processor time that reading one input may take. */
    default long nanosLimit() {
        return 1_000_000_000L;
    }
}
