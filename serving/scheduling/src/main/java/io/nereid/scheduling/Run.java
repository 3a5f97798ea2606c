// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One batch on its way through the runner. Has no state. */
final class Run {
    private static final Logger LOG = LoggerFactory.getLogger(Run.class);

    private Run() {}

    /** Takes over the jobs of a batch and drops those whose clients went away at the last moment; perhaps all. */
    static List<InferenceJob> begin(List<InferenceJob> jobs, long now) {
        boolean gone = false;
        for (InferenceJob job : jobs) {
            job.onCancel(null);
            job.started(now);
            gone |= job.cancelled();
        }
        if (!gone) {
            return jobs.size() == 1 ? jobs : Collections.unmodifiableList(jobs);
        }
        List<InferenceJob> rest = new ArrayList<>(jobs.size());
        for (InferenceJob job : jobs) {
            if (job.cancelled()) {
                Ordered.fail(job, Refusals.cancelled(job));
            } else {
                rest.add(job);
            }
        }
        return Collections.unmodifiableList(rest);
    }

    /** Runs a batch of at least one. */
    static void of(String model, BatchRunner runner, int instance, List<InferenceJob> jobs, BatchCut cut) {
        try {
            runner.run(instance, jobs, cut);
        } catch (Throwable t) {
            LOG.error("model {}: a run threw, which it must not", model, t);
            for (InferenceJob job : jobs) {
                job.fail(ServingException.from(t));
            }
        }
    }
}
