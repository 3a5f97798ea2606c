// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.api.schema.ResourceSchemas;
import java.util.List;
import java.util.Map;

/** The ConfigMap with the models of a server that serves many, which KServe's agent or Nereid's engine reads. Stateless. */
public final class ModelConfigMap {
    /** The file with the models. */
    public static final String FILE = "models.json";

    private static final String PREFIX = "modelconfig-";

    private ModelConfigMap() {}

    /** Its name. */
    public static String name(String service) {
        return PREFIX + service + "-0";
    }

    /** The object: what is there of its models stays, since they are not of the service's specification. */
    public static ObjectNode of(Owner owner, String service, ObservedCluster cluster) {
        ObjectNode map = owner.object("v1", "ConfigMap", name(service), Map.of(), Map.of());
        ObjectNode there = cluster.object("ConfigMap", name(service));
        if (there != null && there.path("data").isObject()) {
            map.set("data", there.path("data").deepCopy());
        } else {
            map.putObject("data").put(FILE, "[]");
        }
        return map;
    }

    /** The text of the file {@value #FILE} with these models, as KServe's agent reads it. */
    public static String models(List<TrainedModel> models) {
        ArrayNode list = Trees.object().arrayNode();
        for (TrainedModel model : models) {
            ObjectNode one = list.addObject().put("modelName", model.name());
            one.putObject("modelSpec")
                    .put("storageUri", model.storageUri())
                    .put("framework", model.framework())
                    .put("memory", model.memory());
        }
        return list.toString();
    }

    /** Whether a ConfigMap of a service is this one, by its name. */
    public static boolean isOne(String name) {
        return name.startsWith(PREFIX);
    }

    /** Whether a stored service may have a server that gets its models later, and with it the ConfigMap; true of some that have not. */
    public static boolean mayBelongTo(ObjectNode service) {
        JsonNode predictor = service.path("spec").path("predictor");
        for (JsonNode env : predictor.path("containers").path(0).path("env")) {
            if (env.path("name").asText().equals("MULTI_MODEL_SERVER")) {
                return true;
            }
        }
        JsonNode model = predictor.path("model");
        for (String block : ResourceSchemas.FRAMEWORKS) {
            model = predictor.has(block) ? predictor.path(block) : model;
        }
        return model.isObject()
                && !model.hasNonNull("storageUri")
                && !model.hasNonNull("storage")
                && predictor.path("storageUris").isEmpty();
    }
}
