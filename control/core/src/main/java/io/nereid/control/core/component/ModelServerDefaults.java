// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Adds the environment variables, arguments and labels that KServe sets for certain model servers. Stateless. */
final class ModelServerDefaults {
    private static final Map<String, String> MODEL_CLASSES = Map.of(
            "sklearn", "mlserver_sklearn.SKLearnModel",
            "xgboost", "mlserver_xgboost.XGBoostModel",
            "lightgbm", "mlserver_lightgbm.LightGBMModel",
            "mlflow", "mlserver_mlflow.MLflowRuntime");

    /** The servers whose images for GPUs have the same name and a tag that ends with {@code -gpu}. */
    private static final Set<String> GPU_TAGS = Set.of("tensorflow-serving", "torchserve", "huggingfaceserver");

    private ModelServerDefaults() {}

    /**
     * Adds environment variables and arguments to the container.
     *
     * @return labels to add to the service, for use in templates
     */
    static Map<String, String> apply(
            ServingRuntime runtime,
            ModelSpec model,
            String protocol,
            boolean storage,
            PlanningContext context,
            ObjectNode container) {
        Map<String, String> labels = new LinkedHashMap<>();
        switch (server(runtime)) {
            case "mlserver" -> {
                if (storage) {
                    env(container, "MLSERVER_MODEL_NAME", context.name());
                    env(container, "MLSERVER_MODEL_URI", "/mnt/models");
                } else {
                    env(container, "MLSERVER_LOAD_MODELS_AT_STARTUP", "false");
                }
                String kind = MODEL_CLASSES.get(model.formatName());
                if (kind != null) {
                    labels.put("modelClass", kind);
                }
            }
            case "tritonserver" -> {
                if (!storage) {
                    array(container, "args").add("--model-control-mode=explicit");
                }
            }
            case "torchserve" -> {
                labels.put("serviceEnvelope", protocol.equals("v1") ? "kserve" : "kservev2");
                env(container, "PROTOCOL_VERSION", protocol);
            }
            case BuiltInRuntimes.SERVER_TYPE -> {
                Map<String, String> given = CommandLineArguments.normalized(
                        Container.read(container).args());
                // A value after a blank would be a model repository for the server, which does not know all names.
                ArrayNode joined = container.arrayNode();
                CommandLineArguments.joined(Container.read(container).args()).forEach(joined::add);
                container.set("args", joined);
                if (!given.containsKey("model_format")) {
                    array(container, "args").add("--model_format=" + model.formatName());
                }
            }
            default -> {
                // other servers need nothing
            }
        }
        return labels;
    }

    /**
     * Sets the tag of the container's image: the model's {@code runtimeVersion}, or else the variant for the hardware
     * that it asks for, where a server is published in several. An image that is pinned by a digest is not changed, nor
     * is Nereid's own, whose versions are other ones.
     *
     * @return false if the model has a {@code runtimeVersion} that does not count
     */
    static boolean image(ServingRuntime runtime, ModelSpec model, ObjectNode container) {
        if (server(runtime).equals(BuiltInRuntimes.SERVER_TYPE)) {
            return model.runtimeVersion() == null;
        }
        String image = container.path("image").asText("");
        if (image.isEmpty() || image.contains("@")) {
            return true;
        }
        if (model.runtimeVersion() != null) {
            container.put("image", ModelServerImages.withTag(image, model.runtimeVersion()));
            return true;
        }
        int colon = image.lastIndexOf(':');
        if (colon <= image.lastIndexOf('/')) {
            return true;
        }
        boolean gpu = gpu(container);
        String server = server(runtime);
        String name = image.substring(0, colon);
        if (gpu && GPU_TAGS.contains(server) && !image.endsWith("-gpu")) {
            container.put("image", image + "-gpu");
        } else if (!gpu && server.equals("vllmserver") && !name.endsWith("-cpu")) {
            container.put("image", name + "-cpu" + image.substring(colon));
        }
        return true;
    }

    /** Whether the container asks for a GPU of NVIDIA, or a slice of one: the servers' images are for these. */
    private static boolean gpu(ObjectNode container) {
        for (var limit : container.path("resources").path("limits").properties()) {
            if (limit.getKey().equals("nvidia.com/gpu") || limit.getKey().startsWith("nvidia.com/mig")) {
                return true;
            }
        }
        return false;
    }

    private static String server(ServingRuntime runtime) {
        @Nullable String type = runtime.metadata().annotation("serving.kserve.io/server-type");
        if (type == null) {
            type = runtime.annotations().get("serving.kserve.io/server-type");
        }
        if (type != null) {
            return type;
        }
        String name = runtime.name();
        return name.startsWith("kserve-") ? name.substring(7) : name;
    }

    private static void env(ObjectNode container, String name, String value) {
        ArrayNode env = array(container, "env");
        for (var one : env) {
            if (name.equals(one.path("name").asText())) {
                return;
            }
        }
        env.addObject().put("name", name).put("value", value);
    }

    private static ArrayNode array(ObjectNode container, String name) {
        return container.get(name) instanceof ArrayNode array ? array : container.putArray(name);
    }
}
