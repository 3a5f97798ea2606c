// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.access.PendingRequests;
import io.nereid.control.gateway.upstream.ProtocolTranscoder;
import io.nereid.control.gateway.upstream.RevisionCodecs;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.scheduling.admission.QueueAdmission;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.VirtualHosts.VirtualHostFactory;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/** What all activators share. Thread-safe: immutable but for the factory of virtual
 * hosts and the admission, which are set once. */
public final class ActivatorContext {
    private final @Nullable LocalModels models;
    final UpstreamClient upstream;
    final ProtocolTranscoder transcoder;
    final Clock clock;
    final WakeListener listener;

    /** Runs requests that have waited, and mirrored requests. */
    final Executor executor;

    /** Limits the memory of the bodies of waiting requests. */
    final ByteBudget budget;

    /** Holds requests back whose callers are not known yet. */
    final PendingRequests pending;

    /** Activators with waiting requests: the only ones that the periodic sweep has to visit. */
    public final Set<RevisionActivator> withQueue = ConcurrentHashMap.newKeySet();

    /** Returns a random number below its argument. */
    public final IntUnaryOperator chance;

    /**
     * The engine of this process.
     *
     * @param engine inference with its models
     * @param control the control of its models
     * @param codecs builds the protocols of a revision whose models are in it
     */
    public record LocalModels(InferenceEngine engine, ModelControl control, RevisionCodecs codecs) {}

    private volatile @Nullable VirtualHostFactory factory;

    private volatile @Nullable AdmissionControl admission;

    /** @param models null when all replicas are other processes */
    public ActivatorContext(
            @Nullable LocalModels models,
            UpstreamClient upstream,
            ProtocolTranscoder transcoder,
            Clock clock,
            WakeListener listener,
            Executor executor,
            ByteBudget budget,
            IntUnaryOperator chance) {
        this.models = models;
        this.upstream = upstream;
        this.transcoder = transcoder;
        this.clock = clock;
        this.listener = listener;
        this.executor = executor;
        this.budget = budget;
        this.pending = new PendingRequests(executor, budget);
        this.chance = chance;
    }

    /**
     * The engine of this process.
     *
     * @throws ServingException FAILED_PRECONDITION when it has none
     */
    public LocalModels models() {
        LocalModels local = models;
        if (local == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "this gateway has no engine for models",
                    "give the revision replicas of its own");
        }
        return local;
    }

    public void factory(VirtualHostFactory newFactory) {
        factory = newFactory;
    }

    /** Sets what refuses requests of the activators that are created afterwards; null for nothing. */
    public void admission(@Nullable AdmissionControl control) {
        admission = control;
    }

    @Nullable QueueAdmission openAdmission() {
        AdmissionControl control = admission;
        return control == null ? null : control.open();
    }

    public VirtualHostFactory factory() {
        VirtualHostFactory now = factory;
        if (now == null) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the server is starting", "try again");
        }
        return now;
    }
}
