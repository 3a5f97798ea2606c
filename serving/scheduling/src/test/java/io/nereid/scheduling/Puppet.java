// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A runner that records its runs and executes an action of the test during a run. Confined to one thread. */
public final class Puppet implements BatchRunner {
    public final List<List<Integer>> ran = new ArrayList<>();
    public final List<Integer> instances = new ArrayList<>();
    public final List<BatchCloseReason> cuts = new ArrayList<>();
    public final List<Integer> retired = new ArrayList<>();
    public final List<AssertionError> trouble = new ArrayList<>();
    public Runnable during = () -> {};

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
        ran.add(jobs.stream().map(Puppet::number).toList());
        instances.add(instance);
        cuts.add(cut);
        Runnable now = during;
        during = () -> {};
        try {
            now.run();
        } catch (AssertionError e) {
            // Recorded, because the queue would treat it as a failure of the runner.
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

    public static int number(InferenceJob job) {
        return Integer.parseInt(job.request().id().substring(1));
    }
}
