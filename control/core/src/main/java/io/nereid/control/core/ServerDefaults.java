// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.ServingRuntime;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What KServe adds for certain servers once a runtime is chosen. Stateless. */
final class ServerDefaults {
    private static final Map<String, String> MODEL_CLASSES = Map.of(
            "sklearn", "mlserver_sklearn.SKLearnModel",
            "xgboost", "mlserver_xgboost.XGBoostModel",
            "lightgbm", "mlserver_lightgbm.LightGBMModel",
            "mlflow", "mlserver_mlflow.MLflowRuntime");

    private ServerDefaults() {}

    /**
     * Adds variables and arguments to the container.
     *
     * @return labels that the service gets, for templates
     */
    static Map<String, String> apply(
            ServingRuntime runtime,
            ModelSpec model,
            String protocol,
            boolean storage,
            Scene scene,
            ObjectNode container) {
        Map<String, String> labels = new LinkedHashMap<>();
        switch (server(runtime)) {
            case "mlserver" -> {
                if (storage) {
                    env(container, "MLSERVER_MODEL_NAME", scene.name());
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
        @Nullable String told = runtime.metadata().annotation("serving.kserve.io/server-type");
        if (told == null) {
            told = runtime.annotations().get("serving.kserve.io/server-type");
        }
        if (told != null) {
            return told;
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
