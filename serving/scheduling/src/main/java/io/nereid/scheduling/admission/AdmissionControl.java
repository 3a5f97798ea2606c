// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * Gives each queue its {@link AdmissionPolicy}, and knows whether any of them refuses requests at the moment. Where the
 * queues of several models matter for one request, such as an ensemble's, they are asked only then. Thread-safe.
 */
public final class AdmissionControl {
    private final Supplier<AdmissionPolicy> policies;
    private final AtomicInteger refusing = new AtomicInteger();

    /** @param policies creates a policy for each queue */
    public AdmissionControl(Supplier<AdmissionPolicy> policies) {
        this.policies = policies;
    }

    /** Admission that keeps delays near {@code target} under overload. */
    public static AdmissionControl overload(Duration target) {
        return new AdmissionControl(() -> new OverloadAdmission(target));
    }

    /** Returns whether at least one queue refuses requests. */
    public boolean refuses() {
        return refusing.get() > 0;
    }

    /** Creates the admission of a queue. */
    public QueueAdmission open() {
        return new QueueAdmission(policies.get(), refusing);
    }
}
