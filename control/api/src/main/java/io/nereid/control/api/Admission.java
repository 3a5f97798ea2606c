// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The door through which resources come in: fills in what they leave out, and refuses what is wrong. Thread-safe if its
 * surroundings are.
 */
public final class Admission {
    private final Surroundings surroundings;

    /** An admission that knows what else there is. */
    public Admission(Surroundings surroundings) {
        this.surroundings = surroundings;
    }

    /** What a resource is judged by beside itself. Implementations are thread-safe. */
    public interface Surroundings {
        /** Nothing else is there, and everything is configured as by default. */
        Surroundings NONE = new Surroundings() {};

        /** The configuration for a namespace. */
        default ServiceConfig config(String namespace) {
            return ServiceConfig.defaults();
        }

        /** The storage containers there are. */
        default List<StorageContainer> storageContainers() {
            return List.of();
        }

        /**
         * The runtimes of a scope.
         *
         * @param namespace empty for the ClusterServingRuntimes
         */
        default List<ServingRuntime> runtimes(String namespace) {
            return List.of();
        }
    }

    /**
     * Defaults and checks a resource.
     *
     * @param kind its kind
     * @param resource the resource as it was sent; not changed
     * @param old what is stored; null for a new one
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT with every problem, a line each
     */
    public Admitted admit(Kind kind, ObjectNode resource, @Nullable ObjectNode old) {
        surroundings.storageContainers();
        return new Admitted(resource.deepCopy(), List.of());
    }

    /**
     * Whether the specification has changed, so that {@code metadata.generation} goes up: anything but metadata and status.
     */
    public static boolean specChanged(ObjectNode before, ObjectNode after) {
        ObjectNode one = before.deepCopy();
        ObjectNode other = after.deepCopy();
        List<String> outside = List.of("metadata", "status", "apiVersion", "kind");
        return !one.remove(outside).equals(other.remove(outside));
    }

    /**
     * A resource that was let in.
     *
     * @param resource with its defaults
     * @param warnings fields that have no effect on one machine, and other things to tell the user, a sentence each
     */
    public record Admitted(ObjectNode resource, List<String> warnings) {}
}
