// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.PodSpec.WorkerSpec;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * KServe's {@code serving.kserve.io/v1alpha1 ServingRuntime} and {@code ClusterServingRuntime}: how models of certain
 * formats are served. Immutable as long as the JSON trees are not modified.
 *
 * @param metadata name, labels and annotations; the namespace is empty for a ClusterServingRuntime
 * @param cluster whether it is a ClusterServingRuntime, which serves all namespaces
 * @param supportedModelFormats formats in their order
 * @param protocolVersions empty for all
 * @param multiModel whether it serves many models in one process
 * @param disabled whether it is excluded from selection
 * @param workerSpec workers on further machines; null for none
 * @param pod its containers and other fields of a pod
 * @param labels labels of the workloads that it runs
 * @param annotations annotations of the workloads that it runs
 * @param tree the whole resource
 */
public record ServingRuntime(
        ObjectMeta metadata,
        boolean cluster,
        List<SupportedFormat> supportedModelFormats,
        List<String> protocolVersions,
        boolean multiModel,
        boolean disabled,
        @Nullable WorkerSpec workerSpec,
        PodSpec pod,
        Map<String, String> labels,
        Map<String, String> annotations,
        ObjectNode tree) {

    /**
     * Reads a runtime of either kind.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static ServingRuntime read(ObjectNode resource) {
        FieldReader fields = FieldReader.of(resource);
        FieldReader spec = fields.object("spec");
        return new ServingRuntime(
                ObjectMeta.read(resource),
                "ClusterServingRuntime".equals(fields.text("kind")),
                spec.list("supportedModelFormats", SupportedFormat::read),
                spec.texts("protocolVersions"),
                spec.flag("multiModel", false),
                spec.flag("disabled", false),
                spec.read("workerSpec", WorkerSpec::read),
                PodSpec.read(spec.tree(), spec.path()),
                spec.map("labels"),
                spec.map("annotations"),
                resource);
    }

    /** The runtime's name. */
    public String name() {
        return metadata.name();
    }

    /** The engine that the runtime belongs to; one with an unknown value belongs to none but KServe's. */
    public ServingEngine engine() {
        String value = metadata.annotation(ServingEngine.ANNOTATION);
        ServingEngine engine = value == null ? null : ServingEngine.of(value);
        return engine == null ? ServingEngine.KSERVE : engine;
    }

    /**
     * A model format that the runtime serves.
     *
     * @param version null for any
     * @param autoSelect whether the runtime may be selected for services that do not name one
     * @param priority higher priorities are preferred; null comes last
     */
    public record SupportedFormat(
            String name,
            @Nullable String version,
            boolean autoSelect,
            @Nullable Integer priority) {
        static SupportedFormat read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new SupportedFormat(
                    fields.text("name", ""),
                    fields.text("version"),
                    fields.flag("autoSelect", false),
                    fields.integer("priority"));
        }
    }
}
