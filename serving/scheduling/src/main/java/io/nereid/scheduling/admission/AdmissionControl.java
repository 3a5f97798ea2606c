// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Gives each queue its {@link AdmissionPolicy}, and knows whether any of them refuses requests at the moment. Where the
 * queues of several models matter for one request, such as an ensemble's, they are asked only then. Thread-safe.
 */
public final class AdmissionControl {
    private final @Nullable Supplier<AdmissionPolicy> policies;
    private final AtomicInteger refusing = new AtomicInteger();

    /** @param policies creates a policy for each queue; null if only queues with a policy of their own refuse requests */
    public AdmissionControl(@Nullable Supplier<AdmissionPolicy> policies) {
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

    /** Returns whether the configuration of a model limits its queue: then the policies of this control do not. */
    public static boolean limits(ModelConfig config) {
        DynamicBatching batching = config.batching();
        return !config.queue().equals(QueuePolicy.DEFAULT)
                || (batching != null && !batching.levelQueues().isEmpty())
                || config.batchSizePolicy().maxEnqueuedBatches() > 0;
    }

    /** Creates the admission of a queue; null if this control has no policies. */
    public @Nullable QueueAdmission open() {
        return policies == null ? null : new QueueAdmission(policies.get(), refusing);
    }

    /** Creates the admission of a queue with a policy of its own. */
    public QueueAdmission open(AdmissionPolicy policy) {
        return new QueueAdmission(policy, refusing);
    }
}
