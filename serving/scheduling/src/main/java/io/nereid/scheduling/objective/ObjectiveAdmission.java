// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.objective;

import io.nereid.scheduling.admission.AdmissionPolicy;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Refuses a request at its arrival when those before it would make it miss the latency objective of the model, by what
 * {@link LatencyController} has learnt of the runs. Unlike {@link io.nereid.scheduling.admission.OverloadAdmission} it does not wait until
 * it is certain that more arrives than is served: an objective is missed by a burst as well. A request that an idle
 * instance can take is never refused.
 */
public final class ObjectiveAdmission implements AdmissionPolicy {
    private static final long MIN_RETRY = TimeUnit.SECONDS.toNanos(1);
    private static final long MAX_RETRY = TimeUnit.SECONDS.toNanos(60);

    private final LatencyController controller;
    private boolean refusing;
    private long lastRefusal;
    /** Requests that were refused since that began. */
    private long refused;

    public ObjectiveAdmission(LatencyController controller) {
        this.controller = controller;
    }

    public LatencyController controller() {
        return controller;
    }

    @Override
    public boolean admits(long now, int ahead, long deadline) {
        if (controller.admits(now, ahead, deadline)) {
            ends(now);
            return true;
        }
        refused(now);
        return false;
    }

    /** A request is refused, at its arrival or later. */
    public void refused(long now) {
        if (!refusing) {
            refusing = true;
            refused = 0;
        }
        lastRefusal = now;
        refused++;
        controller.refused();
    }

    private void ends(long now) {
        if (refusing
                && now - lastRefusal
                        > Math.max(
                                MIN_RETRY,
                                Math.min(MAX_RETRY, controller.objective().nanos()))) {
            refusing = false;
        }
    }

    @Override
    public boolean taken(long now, int count, long waited, int left) {
        ends(now);
        // Those that wait have been accepted; their wait is limited.
        return false;
    }

    @Override
    public void removed(int count) {}

    @Override
    public void ran(long nanos) {}

    @Override
    public int keep() {
        return Integer.MAX_VALUE;
    }

    @Override
    public long waitLimit() {
        return controller.waitLimit();
    }

    /** {@inheritDoc} The time in which what was refused since this began could be served. */
    @Override
    public long retryNanos() {
        double rate = controller.requestsPerNano();
        double nanos = rate > 0 ? refused / rate : 0;
        return (long) Math.max(MIN_RETRY, Math.min(MAX_RETRY, nanos));
    }

    @Override
    public boolean refuses() {
        return refusing;
    }

    @Override
    public String reason() {
        return String.format(
                Locale.ROOT,
                "about %.3g requests a second can be served within %s%s; those that would take longer are refused",
                1e9 * controller.requestsPerNano(),
                controller.objective(),
                controller.attainable() ? "" : ", which a single run exceeds");
    }
}
