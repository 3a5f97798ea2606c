// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.ServingRuntime;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Adds the environment variables, arguments and labels that KServe sets for certain model servers. Stateless. */
final class ModelServerDefaults {
    private static final Map<String, String> MODEL_CLASSES = Map.of(
            "sklearn", "mlserver_sklearn.SKLearnModel",
            "xgboost", "mlserver_xgboost.XGBoostModel",
            "lightgbm", "mlserver_lightgbm.LightGBMModel",
            "mlflow", "mlserver_mlflow.MLflowRuntime");

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
            default -> {
                // other servers need nothing
            }
        }
        return labels;
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
