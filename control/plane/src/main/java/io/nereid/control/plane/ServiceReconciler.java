// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Plans a service or a graph and carries out the plan; the {@link ServiceController} decides when. Implementations are
 * thread-safe; the controller calls them for one resource by one thread at a time.
 */
public interface ServiceReconciler {
    /** Sets the listener for changes of the observed state. Called once, before any other method. */
    void onChange(ChangeListener listener);

    /**
     * Plans an InferenceService and carries out the plan. Problems of the service are part of the status.
     *
     * @param service the stored resource with its last status; unchanged
     * @param catalog runtimes and settings of its namespace
     * @param now the current time
     * @throws io.nereid.base.ServingException when the plan cannot be carried out now; retried by the caller
     */
    Outcome reconcile(ObjectNode service, RuntimeCatalog catalog, Instant now);

    /**
     * Plans an InferenceGraph and carries out the plan.
     *
     * @param graph the stored resource with its last status; unchanged
     * @param services returns the InferenceService of a name in the graph's namespace; null if it does not exist
     * @param catalog runtimes and settings of its namespace
     * @param now the current time
     */
    Outcome reconcileGraph(
            ObjectNode graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            Instant now);

    /**
     * Removes what runs for a resource that is being deleted. Idempotent.
     *
     * @return whether nothing of it is left; if not, the listener reports its end
     */
    boolean remove(boolean graph, String namespace, String name);

    /** Forgets what was kept for a resource that no longer exists. */
    void forget(boolean graph, String namespace, String name);

    /** Whether a service is kept by a finalizer until {@link #remove} has succeeded. */
    boolean needsFinalizer();

    /** The types of resources after whose change {@link #retry} is called. */
    default Set<ResourceStore.Type> retriedAfter() {
        return Set.of();
    }

    /** Retries what failed in a namespace at once. Does not block. */
    default void retry(String namespace) {}

    /**
     * How long a change of the observed state may wait, so that changes that follow each other closely are looked at once;
     * zero for not at all.
     */
    default Duration pace() {
        return Duration.ZERO;
    }

    /** Is told which resource's observed state has changed. */
    @FunctionalInterface
    interface ChangeListener {
        /** Queues the resource; does not block. */
        void changed(boolean graph, String namespace, String name);
    }

    /**
     * The result of a reconciliation.
     *
     * @param status the resource's new status
     * @param events the events to record now
     * @param requeueAfter the time after which to reconcile again even without a change; null for never
     */
    record Outcome(
            ObjectNode status,
            List<Plan.Event> events,
            @Nullable Duration requeueAfter) {}
}
