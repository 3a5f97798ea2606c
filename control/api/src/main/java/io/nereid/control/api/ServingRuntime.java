// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.PodSpec.WorkerSpec;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How models of some formats are run: {@code serving.kserve.io/v1alpha1 ServingRuntime} and {@code ClusterServingRuntime}.
 * Immutable as long as nobody changes the trees.
 *
 * @param metadata who it is; the namespace is empty for a ClusterServingRuntime
 * @param cluster whether it is for all namespaces
 * @param supportedModelFormats in their order
 * @param protocolVersions empty for all
 * @param multiModel whether it is for many models in one process
 * @param disabled whether it is never chosen
 * @param workerSpec for several machines; null for none
 * @param pod its containers and other fields of a pod
 * @param labels for what it runs
 * @param annotations for what it runs
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
        Fields fields = Fields.of(resource);
        Fields spec = fields.object("spec");
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

    /**
     * A format that it runs.
     *
     * @param version null for none
     * @param autoSelect whether it is chosen for services that name no runtime
     * @param priority the higher the sooner chosen; null comes last
     */
    public record SupportedFormat(
            String name,
            @Nullable String version,
            boolean autoSelect,
            @Nullable Integer priority) {
        static SupportedFormat read(ObjectNode tree, String path) {
            Fields fields = new Fields(tree, path);
            return new SupportedFormat(
                    fields.text("name", ""),
                    fields.text("version"),
                    fields.flag("autoSelect", false),
                    fields.integer("priority"));
        }
    }
}
