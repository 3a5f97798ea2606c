// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A runner that writes down what it ran and does what a test wants during a run. Confined to one thread. */
final class Puppet implements BatchRunner {
    final List<List<Integer>> ran = new ArrayList<>();
    final List<Integer> instances = new ArrayList<>();
    final List<BatchCut> cuts = new ArrayList<>();
    final List<Integer> retired = new ArrayList<>();
    final List<AssertionError> trouble = new ArrayList<>();
    Runnable during = () -> {};

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCut cut) {
        ran.add(jobs.stream().map(Puppet::number).toList());
        instances.add(instance);
        cuts.add(cut);
        Runnable now = during;
        during = () -> {};
        try {
            now.run();
        } catch (AssertionError e) {
            // The queue would take it for the runner's own fault.
            trouble.add(e);
        }
        for (InferenceJob job : jobs) {
            job.complete(List.of(), Map.of());
        }
    }

    @Override
    public boolean joinable(InferenceJob a, InferenceJob b) {
        return a instanceof FakeJob x && b instanceof FakeJob y && x.shape == y.shape;
    }

    @Override
    public void retired(int instance) {
        retired.add(instance);
    }

    static int number(InferenceJob job) {
        return Integer.parseInt(job.request().id().substring(1));
    }
}
