// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.store;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A store of resources as JSON trees with Kubernetes' optimistic concurrency: every change gets the next version of the
 * whole store, and an update that names an outdated version is rejected. A change is durable when the method returns.
 * Returned trees belong to the caller, and trees that are passed in are copied. Implementations are thread-safe.
 *
 * <pre>{@code
 * ResourceStore.Listing listing = store.list(type, "default");
 * ResourceStore.Watch watch = store.watch(type, "default", listing.version(), change -> queue.add(change));
 * }</pre>
 */
public interface ResourceStore extends AutoCloseable {
    /** The resource, or null if it does not exist. */
    @Nullable ObjectNode get(Key key);

    /**
     * All resources of a type.
     *
     * @param namespace null for all namespaces
     */
    Listing list(Type type, @Nullable String namespace);

    /**
     * Creates a resource. The store sets uid, creation time and version.
     *
     * @return the stored resource
     * @throws io.nereid.base.ServingException ALREADY_EXISTS
     */
    ObjectNode create(Type type, ObjectNode resource);

    /**
     * Replaces a resource. Uid and creation time are kept; the caller sets {@code metadata.generation}. A resource with
     * a deletion time is removed when the update removes its last finalizer.
     *
     * @param expectedVersion the version that the caller has read; null to replace any version
     * @throws io.nereid.base.ServingException NOT_FOUND, or ABORTED when there is a newer version
     */
    ObjectNode update(Type type, ObjectNode resource, @Nullable String expectedVersion);

    /**
     * Replaces the status of a resource. Where the store keeps the status apart, as a Kubernetes API server does, other
     * changes of the passed tree have no effect.
     *
     * @param expectedVersion the version that the caller has read; null to replace any version
     * @throws io.nereid.base.ServingException NOT_FOUND, or ABORTED when there is a newer version
     */
    default ObjectNode updateStatus(Type type, ObjectNode resource, @Nullable String expectedVersion) {
        return update(type, resource, expectedVersion);
    }

    /**
     * Deletes a resource, or sets its deletion time while it has finalizers.
     *
     * @return the last state of the resource
     * @throws io.nereid.base.ServingException NOT_FOUND, or ABORTED when there is a newer version
     */
    ObjectNode delete(Key key, @Nullable String expectedVersion);

    /**
     * Calls a listener for every change of a type after a version, in order, on one thread of the store, until the
     * watch is closed.
     *
     * @param namespace null for all namespaces
     * @param fromVersion the version of a listing; 0 for all existing resources as ADDED, followed by the changes
     * @throws io.nereid.base.ServingException OUT_OF_RANGE when the store no longer has the changes since that version
     */
    Watch watch(Type type, @Nullable String namespace, long fromVersion, Consumer<Change> listener);

    @Override
    void close();

    /**
     * A type of resources.
     *
     * @param group such as {@code serving.kserve.io}; empty for the core group
     * @param plural such as {@code inferenceservices}
     */
    record Type(String group, String plural) {}

    /**
     * The key of a resource.
     *
     * @param namespace empty for cluster-scoped resources
     */
    record Key(Type type, String namespace, String name) {}

    /** All resources of a type at one version of the store, ordered by namespace and name. */
    record Listing(long version, List<ObjectNode> items) {}

    /** A change. For a deletion, {@code resource} is the last state, with the version of the deletion. */
    record Change(Kind kind, long version, ObjectNode resource) {
        /** The type of the change. */
        public enum Kind {
            /** The resource was created. */
            ADDED,
            /** The resource was updated. */
            MODIFIED,
            /** The resource was removed. */
            DELETED
        }
    }

    /** A running watch; closing it ends the calls of the listener. */
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }
}
