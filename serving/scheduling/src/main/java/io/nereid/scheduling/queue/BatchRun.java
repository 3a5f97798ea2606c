// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.spi.InferenceJob;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The execution of one batch by the {@link BatchRunner}. Has no state. */
final class BatchRun {
    private static final Logger LOG = LoggerFactory.getLogger(BatchRun.class);

    private BatchRun() {}

    /** Marks the jobs of a batch as started, and removes those that were cancelled in the meantime, possibly all. */
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
                OrderedJob.fail(job, QueueErrors.cancelled(job));
            } else {
                rest.add(job);
            }
        }
        return Collections.unmodifiableList(rest);
    }

    /** Runs a batch of at least one job; an exception of the runner fails all of them. */
    static void of(String model, BatchRunner runner, int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
        try {
            runner.run(instance, jobs, cut);
        } catch (Throwable t) {
            LOG.error("model {}: the batch runner threw an exception", model, t);
            for (InferenceJob job : jobs) {
                job.fail(ServingException.from(t));
            }
        }
    }
}
