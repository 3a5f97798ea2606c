// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/**
 * The values that are tried, each list ascending and with the value that the model has now. Immutable.
 *
 * @param batchSizes rows at which a batch is closed; only 0 for a model that does not batch
 * @param delays times in microseconds that the first request of a batch waits
 * @param instances numbers of instances
 * @param threads threads of a run
 * @param concurrencies requests in flight at the same time, the loads of a measurement
 */
record SearchSpace(
        List<Integer> batchSizes,
        List<Long> delays,
        List<Integer> instances,
        List<Integer> threads,
        List<Integer> concurrencies) {
    SearchSpace {
        batchSizes = List.copyOf(batchSizes);
        delays = List.copyOf(delays);
        instances = List.copyOf(instances);
        threads = List.copyOf(threads);
        concurrencies = List.copyOf(concurrencies);
    }

    /** 1, 2, 3, 4, 6, 8, 12, … up to a number. */
    static List<Integer> steps(int most) {
        TreeSet<Integer> steps = new TreeSet<>();
        for (int value = 1; value <= most; value *= 2) {
            steps.add(value);
            if (value >= 2 && value * 3 / 2 <= most) {
                steps.add(value * 3 / 2);
            }
        }
        return List.copyOf(steps);
    }

    /** The number of configurations. */
    long variants() {
        return (long) batchSizes.size() * delays.size() * instances.size() * threads.size();
    }

    /** The number of measurements of the whole grid: every configuration at every load. */
    long measurements() {
        return variants() * concurrencies.size();
    }

    /** A list with a value more, ascending. */
    static <T extends Comparable<T>> List<T> with(List<T> values, T value) {
        TreeSet<T> all = new TreeSet<>(values);
        all.add(value);
        return List.copyOf(all);
    }

    /** The elements before and after a value of a list that has it. */
    static <T> List<T> beside(List<T> values, T value) {
        int at = values.indexOf(value);
        List<T> result = new ArrayList<>();
        if (at + 1 < values.size()) {
            result.add(values.get(at + 1));
        }
        if (at > 0) {
            result.add(values.get(at - 1));
        }
        return result;
    }
}
