// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Resources as trees, with Kubernetes' rules about versions: every change gets the next number of the whole store, and who
 * names the number that he has read is refused when it is no longer the last. What a method has returned is on disk. Trees that
 * are handed out belong to the caller, and trees handed in are copied. Implementations are thread-safe.
 */
public interface ResourceStore extends AutoCloseable {
    /** The resource, or null. */
    @Nullable ObjectNode get(Key key);

    /**
     * All resources of a type.
     *
     * @param namespace null for all
     */
    Listing list(Type type, @Nullable String namespace);

    /**
     * Adds a resource; uid, creation time and version are set here.
     *
     * @throws io.nereid.base.ServingException ALREADY_EXISTS
     */
    ObjectNode create(Type type, ObjectNode resource);

    /**
     * Replaces a resource. Its uid and creation time stay; {@code metadata.generation} is the caller's matter. A resource that
     * is being deleted goes with its last finalizer.
     *
     * @param expectedVersion the version that was read; null for whatever is there
     * @throws io.nereid.base.ServingException NOT_FOUND, or ABORTED when there is a newer version
     */
    ObjectNode update(Type type, ObjectNode resource, @Nullable String expectedVersion);

    /**
     * Removes a resource, or marks it with a deletion time while it has finalizers.
     *
     * @return what it was
     * @throws io.nereid.base.ServingException NOT_FOUND, or ABORTED when there is a newer version
     */
    ObjectNode delete(Key key, @Nullable String expectedVersion);

    /**
     * Tells every change of a type after a version, in order, on one thread of the store, until the watch is closed.
     *
     * @param namespace null for all
     * @param fromVersion that of a listing; 0 for everything there is, as ADDED, then changes
     * @throws io.nereid.base.ServingException OUT_OF_RANGE when changes since then are forgotten
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
     * A resource's name.
     *
     * @param namespace empty for resources of the whole cluster
     */
    record Key(Type type, String namespace, String name) {}

    /** All of a type at one moment, by namespace and name. */
    record Listing(long version, List<ObjectNode> items) {}

    /** One change; a deleted resource is told as it was last, with the version of its deletion. */
    record Change(Kind kind, long version, ObjectNode resource) {
        /** What happened. */
        public enum Kind {
            /** It is new. */
            ADDED,
            /** It is another one. */
            MODIFIED,
            /** It is gone. */
            DELETED
        }
    }

    /** Ends the telling. */
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }
}
