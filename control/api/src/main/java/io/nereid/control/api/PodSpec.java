// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The part of a pod's specification that the control plane reads. KServe inlines these fields into components and
 * runtimes, so that the tree also has other fields. Immutable as long as the JSON tree is not modified.
 *
 * @param containers containers in their order
 * @param initContainers containers that run before them
 * @param volumes volumes in their order
 * @param serviceAccountName null for the namespace's default
 * @param nodeSelector labels that a node must have
 * @param terminationGracePeriodSeconds null for the default
 * @param tree all fields of the surrounding object as submitted
 */
public record PodSpec(
        List<Container> containers,
        List<Container> initContainers,
        List<Volume> volumes,
        @Nullable String serviceAccountName,
        Map<String, String> nodeSelector,
        @Nullable Long terminationGracePeriodSeconds,
        ObjectNode tree) {

    /**
     * Reads the pod's fields of an object and ignores its other fields.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static PodSpec read(ObjectNode spec) {
        return read(spec, "");
    }

    static PodSpec read(ObjectNode spec, String path) {
        FieldReader fields = new FieldReader(spec, path);
        String account = fields.text("serviceAccountName");
        return new PodSpec(
                fields.list("containers", Container::read),
                fields.list("initContainers", Container::read),
                fields.list("volumes", Volume::read),
                account == null || account.isEmpty() ? fields.text("serviceAccount") : account,
                fields.map("nodeSelector"),
                fields.number("terminationGracePeriodSeconds"),
                spec);
    }

    /** The container of this name, or null. */
    public @Nullable Container container(String name) {
        for (Container one : containers) {
            if (one.name().equals(name)) {
                return one;
            }
        }
        return null;
    }

    /**
     * A volume.
     *
     * @param kind {@code emptyDir}, {@code secret}, {@code configMap}, {@code persistentVolumeClaim}, {@code hostPath},
     *     …; {@code emptyDir} when none is given
     * @param source the object under the kind
     */
    public record Volume(String name, String kind, ObjectNode source) {
        static Volume read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            for (String kind : tree.properties().stream()
                    .map(Map.Entry::getKey)
                    .filter(key -> !key.equals("name"))
                    .toList()) {
                if (fields.has(kind)) {
                    return new Volume(
                            fields.text("name", ""), kind, fields.object(kind).tree());
                }
            }
            return new Volume(
                    fields.text("name", ""),
                    "emptyDir",
                    fields.object("emptyDir").tree());
        }
    }

    /**
     * The workers of a multi-node runtime.
     *
     * @param pipelineParallelSize null when not given
     * @param tensorParallelSize null when not given
     */
    public record WorkerSpec(
            PodSpec pod,
            @Nullable Integer pipelineParallelSize,
            @Nullable Integer tensorParallelSize) {
        static WorkerSpec read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new WorkerSpec(
                    PodSpec.read(tree, path),
                    fields.integer("pipelineParallelSize"),
                    fields.integer("tensorParallelSize"));
        }
    }
}
