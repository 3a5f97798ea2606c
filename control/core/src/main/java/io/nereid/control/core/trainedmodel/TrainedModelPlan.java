// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.trainedmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.TrainedModel;
import io.nereid.control.core.status.Conditions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;

/**
 * Which of its TrainedModels a service loads, and the statuses of all of them, with the conditions of KServe. A pure
 * function of the resources. Models that were admitted stay so; others are admitted in the order of their creation as long
 * as the sum of {@code memory} is within the memory limit of the service's container.
 *
 * <pre>{@code
 * TrainedModelPlan plan = TrainedModelPlan.of(service, models, name -> State.UNKNOWN, now);
 * server.load(plan.admitted());
 * }</pre>
 *
 * @param admitted the models that the service loads, by their names
 * @param statuses the status of each model, by its name
 */
public record TrainedModelPlan(List<TrainedModel> admitted, Map<String, ObjectNode> statuses) {
    private static final String SERVICE = "InferenceServiceReady";
    private static final String MULTI = "IsMMSPredictor";
    private static final String FRAMEWORK = "FrameworkSupported";
    private static final String MEMORY = "MemoryResourceAvailable";
    private static final String READY = "Ready";
    private static final String NOT_FOUND = "InferenceServiceNotFound";
    private static final long MIB = 1L << 20;

    /** A copy of both. */
    public TrainedModelPlan {
        admitted = List.copyOf(admitted);
        statuses = Map.copyOf(statuses);
    }

    /**
     * The state of an admitted model in the server.
     *
     * @param phase how far it is
     * @param reason why it cannot be loaded, or what it waits for; empty otherwise
     */
    public record State(Phase phase, String reason) {
        /** A model of a server that does not report its models: it counts as loaded. */
        public static final State UNKNOWN = new State(Phase.UNKNOWN, "");
    }

    /** How far a model is. */
    public enum Phase {
        /** The server does not report it. */
        UNKNOWN,
        /** It is being loaded. */
        LOADING,
        /** It waits for memory, of which the reason says more. */
        WAITING,
        /** It is served. */
        LOADED,
        /** It cannot be loaded. */
        FAILED
    }

    /**
     * Plans the models of a service.
     *
     * @param models all TrainedModels that name the service
     * @param states the state of a model by its name
     */
    public static TrainedModelPlan of(
            MultiModelService service, List<TrainedModel> models, Function<String, State> states, Instant now) {
        Set<String> fits = fitting(service, models);
        List<TrainedModel> admitted = new ArrayList<>();
        Map<String, ObjectNode> statuses = new LinkedHashMap<>();
        for (TrainedModel model : models) {
            boolean supported = supports(service, model);
            boolean admit = service.multiModel() && supported && fits.contains(model.name());
            if (admit) {
                admitted.add(model);
            }
            statuses.put(model.name(), status(service, model, supported, admit, states, now));
        }
        admitted.sort(Comparator.comparing(TrainedModel::name));
        return new TrainedModelPlan(admitted, statuses);
    }

    /** Whether the service of a model existed when its status was written last. */
    public static boolean hadService(TrainedModel model) {
        JsonNode conditions = model.tree().path("status").path("conditions");
        for (JsonNode condition : conditions) {
            if (condition.path("reason").asText("").equals(NOT_FOUND)) {
                return false;
            }
        }
        return !conditions.isEmpty();
    }

    /** The status of a model whose service does not exist yet. */
    public static ObjectNode withoutService(TrainedModel model, Instant now) {
        Conditions conditions = new Conditions(model.tree().path("status"), now);
        conditions.set(
                SERVICE,
                Conditions.FALSE,
                NOT_FOUND,
                "there is no InferenceService '" + model.service() + "' in the namespace; apply it");
        conditions.all(READY, List.of(SERVICE));
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        status.set("conditions", conditions.tree());
        return status;
    }

    private static boolean supports(MultiModelService service, TrainedModel model) {
        return service.frameworks().isEmpty()
                || service.frameworks().contains(model.framework().toLowerCase(Locale.ROOT));
    }

    private static Set<String> fitting(MultiModelService service, List<TrainedModel> models) {
        List<TrainedModel> ordered = new ArrayList<>();
        for (TrainedModel model : models) {
            if (supports(service, model)) {
                ordered.add(model);
            }
        }
        Comparator<TrainedModel> admitted = (one, other) -> Boolean.compare(wasAdmitted(other), wasAdmitted(one));
        ordered.sort(admitted.thenComparing(model ->
                        model.tree().path("metadata").path("creationTimestamp").asText(""))
                .thenComparing(TrainedModel::name));
        Set<String> fits = new HashSet<>();
        long left = service.memoryBytes() < 0 ? Long.MAX_VALUE : service.memoryBytes();
        for (TrainedModel model : ordered) {
            if (model.memoryBytes() <= left) {
                left -= model.memoryBytes();
                fits.add(model.name());
            }
        }
        return fits;
    }

    /** Whether a model was ready when its status was written last. */
    public static boolean wasReady(TrainedModel model) {
        return isTrue(model, READY);
    }

    private static boolean isTrue(TrainedModel model, String type) {
        for (JsonNode condition : model.tree().path("status").path("conditions")) {
            if (condition.path("type").asText().equals(type)) {
                return condition.path("status").asText().equals(Conditions.TRUE);
            }
        }
        return false;
    }

    /** Whether the memory of a model was available at the last look, as its status or the label of KServe has it. */
    private static boolean wasAdmitted(TrainedModel model) {
        for (JsonNode condition : model.tree().path("status").path("conditions")) {
            if (condition.path("type").asText().equals(MEMORY)) {
                return condition.path("status").asText().equals(Conditions.TRUE);
            }
        }
        return model.service()
                .equals(model.tree()
                        .path("metadata")
                        .path("labels")
                        .path("serving.kserve.io/trainedmodel-allocated")
                        .asText(""));
    }

    private static ObjectNode status(
            MultiModelService service,
            TrainedModel model,
            boolean supported,
            boolean admitted,
            Function<String, State> states,
            Instant now) {
        Conditions conditions = new Conditions(model.tree().path("status"), now);
        if (service.ready()) {
            conditions.set(SERVICE, Conditions.TRUE, null, null);
        } else {
            conditions.set(
                    SERVICE,
                    Conditions.FALSE,
                    "InferenceServiceNotReady",
                    "the InferenceService '" + model.service() + "' is not ready; its status says why");
        }
        if (service.multiModel()) {
            conditions.set(MULTI, Conditions.TRUE, null, null);
        } else {
            conditions.set(
                    MULTI,
                    Conditions.FALSE,
                    "IsNotMMSPredictor",
                    "the InferenceService '" + model.service() + "' has a model of its own (expected: a predictor"
                            + " without storageUri, storageUris and storage)");
        }
        State state = admitted ? states.apply(model.name()) : State.UNKNOWN;
        List<String> parts = new ArrayList<>(List.of(MULTI));
        if (!supported) {
            conditions.set(
                    FRAMEWORK,
                    Conditions.FALSE,
                    "FrameworkNotSupported",
                    "the runtime of the InferenceService does not support '" + model.framework() + "' (it supports: "
                            + String.join(", ", new TreeSet<>(service.frameworks()))
                            + ")");
            parts.add(FRAMEWORK);
        } else if (service.multiModel()) {
            if (state.phase() == Phase.WAITING) {
                conditions.set(MEMORY, Conditions.FALSE, "MemoryResourceNotAvailable", state.reason());
            } else if (admitted) {
                conditions.set(MEMORY, Conditions.TRUE, null, null);
            } else {
                conditions.set(
                        MEMORY,
                        Conditions.FALSE,
                        "MemoryResourceNotAvailable",
                        "the InferenceService does not have enough memory: the model needs " + model.memory()
                                + ", and the limit of the container is " + service.memoryBytes() / MIB
                                + "Mi for all models; raise the limit, or delete other models");
            }
            parts.add(MEMORY);
        }
        parts.add(SERVICE);
        conditions.all(READY, parts);
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        if (admitted && service.ready()) {
            if (state.phase() == Phase.FAILED) {
                conditions.set(READY, Conditions.FALSE, "ModelLoadFailed", state.reason());
            } else if (state.phase() == Phase.LOADING) {
                conditions.set(READY, Conditions.UNKNOWN, "ModelLoading", "the model is being loaded");
            }
            String path = service.openInference()
                    ? "/v2/models/" + model.name() + "/infer"
                    : "/v1/models/" + model.name() + ":predict";
            if (!service.address().isEmpty()) {
                status.putObject("address").put("url", service.address() + path);
            }
            if (!service.url().isEmpty()) {
                status.put("url", service.url() + path);
            }
        }
        status.set("conditions", conditions.tree());
        return status;
    }
}
