// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * The door through which resources come in: fills in what they leave out, and refuses what is wrong. Thread-safe if its
 * surroundings are.
 */
public final class Admission {
    /** Letters of names that are made up: none that makes words. */
    private static final String LETTERS = "bcdfghjklmnpqrstvwxz2456789";

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

        /**
         * Looks whether a condition of a graph can be read.
         *
         * @throws io.nereid.base.ServingException INVALID_ARGUMENT for one that cannot
         */
        default void condition(String condition) {}
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
        ObjectNode admitted = resource.deepCopy();
        List<String> warnings = new ArrayList<>();
        Problems problems = new Problems();
        ServiceDefaults.prune(admitted);
        identity(kind, admitted, problems);
        metadata(kind, admitted, warnings);
        Schemas.of(kind).check(admitted, "", problems);
        String what = kind.kind() + " " + Schema.clip(nameOf(admitted));
        boolean readable = !problems.misshapen();
        if (readable) {
            MetaRules.check(kind, ObjectMeta.read(admitted), problems);
            rules(kind, admitted, old, problems, warnings);
        }
        problems.refuse(what);
        return new Admitted(admitted, List.copyOf(warnings));
    }

    private void rules(
            Kind kind, ObjectNode admitted, @Nullable ObjectNode old, Problems problems, List<String> warnings) {
        if (kind.equals(Kinds.INFERENCE_SERVICE)) {
            String namespace = ObjectMeta.read(admitted).namespace();
            new ServiceDefaults(surroundings.config(namespace)).apply(admitted, old);
            new ServiceRules(surroundings, problems).check(admitted, old);
            new OneMachine(warnings).service(InferenceService.read(admitted));
        } else if (kind.equals(Kinds.SERVING_RUNTIME) || kind.equals(Kinds.CLUSTER_SERVING_RUNTIME)) {
            new RuntimeRules(surroundings, problems).check(admitted, old);
            new OneMachine(warnings).runtime(ServingRuntime.read(admitted));
        } else if (kind.equals(Kinds.CLUSTER_STORAGE_CONTAINER)) {
            new RuntimeRules(surroundings, problems).storageContainer(admitted);
            warnings.add(
                    "spec.container has no effect on one machine: the server fetches files itself, and of the schemes"
                            + " that it knows");
        } else if (kind.equals(Kinds.INFERENCE_GRAPH)) {
            new GraphRules(surroundings, problems, warnings).check(admitted);
        } else {
            CoreRules.defaults(kind, admitted);
            CoreRules.check(kind, admitted, old, problems, warnings);
        }
    }

    private static void identity(Kind kind, ObjectNode resource, Problems problems) {
        String version = resource.path("apiVersion").asText(kind.apiVersion());
        String name = resource.path("kind").asText(kind.kind());
        if (!version.equals(kind.apiVersion())) {
            problems.add("apiVersion", "expected " + kind.apiVersion() + ", found \"" + Schema.clip(version) + "\"");
        }
        if (!name.equals(kind.kind())) {
            problems.add("kind", "expected " + kind.kind() + ", found \"" + Schema.clip(name) + "\"");
        }
        resource.put("apiVersion", kind.apiVersion());
        resource.put("kind", kind.kind());
    }

    /** The namespace that is meant when none is written, and a name for who asks for any. */
    private static void metadata(Kind kind, ObjectNode resource, List<String> warnings) {
        if (!(resource.get("metadata") instanceof ObjectNode meta)) {
            return;
        }
        if (kind.namespaced()) {
            if (meta.path("namespace").asText("").isEmpty()) {
                meta.put("namespace", "default");
            }
        } else if (meta.has("namespace")) {
            warnings.add("metadata.namespace has no effect: a " + kind.kind() + " belongs to no namespace");
            meta.remove("namespace");
        }
        String prefix = meta.path("generateName").asText("");
        if (!prefix.isEmpty() && meta.path("name").asText("").isEmpty()) {
            StringBuilder name = new StringBuilder(prefix);
            for (int i = 0; i < 5; i++) {
                name.append(LETTERS.charAt(ThreadLocalRandom.current().nextInt(LETTERS.length())));
            }
            meta.put("name", name.toString());
        }
    }

    private static String nameOf(ObjectNode resource) {
        String name = resource.path("metadata").path("name").asText("");
        return name.isEmpty() ? "without a name" : name;
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
