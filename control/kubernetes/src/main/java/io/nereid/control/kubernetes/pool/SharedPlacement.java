// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pool;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.AccessAnnotation;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.trainedmodel.MultiModelService;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The annotations of an InferenceService whose model is loaded in the pods of a pool, and the rules for such a service. A
 * pool has the pods of one runtime in one namespace; what would need pods of another form is refused by name. Stateless.
 */
public final class SharedPlacement {
    /** The annotation that chooses the placement: {@code shared}, or {@code dedicated}, the default. */
    public static final String PLACEMENT = "nereid.io/placement";

    /** The annotation with the memory that the model is expected to use, such as {@code 64Mi}. */
    public static final String MEMORY = "nereid.io/placement-memory";

    /** The annotation that keeps the model loaded: {@code true}. */
    public static final String PINNED = "nereid.io/placement-pinned";

    /** The annotation of a runtime with the fewest pods of its pools. */
    public static final String MIN_PODS = "nereid.io/pool-min-pods";

    /** The annotation of a runtime with the most pods of its pools. */
    public static final String MAX_PODS = "nereid.io/pool-max-pods";

    /** The label of a pool's objects and pods, and of the Services of its models: the name of the pool. */
    public static final String POOL = "nereid.io/pool";

    private static final String DEFAULT_MEMORY = "64Mi";
    private static final int DEFAULT_MAX = 10;
    private static final Set<String> OF_SERVICE = Set.of("predictor");
    private static final Set<String> OF_PREDICTOR =
            Set.of("model", "timeout", "containerConcurrency", "labels", "annotations");
    private static final Set<String> OF_MODEL =
            Set.of("modelFormat", "storageUri", "runtime", "protocolVersion", "name");
    private static final Set<String> VOLUMES = Set.of("pvc", "file");

    private SharedPlacement() {}

    /** Whether a service is to be placed in a pool; also when the annotation is wrong, which {@link #check} reports. */
    public static boolean isShared(JsonNode service) {
        String value = annotation(service, PLACEMENT);
        return !value.isEmpty() && !value.equals("dedicated");
    }

    /**
     * Checks that a service can be placed in a pool.
     *
     * @param service the stored service, without defaults
     * @throws ServingException INVALID_ARGUMENT with the field that needs pods of the service's own
     */
    public static void check(JsonNode service) {
        String value = annotation(service, PLACEMENT);
        if (!value.equals("shared")) {
            throw ServingException.invalidArgument(
                    "the annotation " + PLACEMENT + " is '" + value + "' (expected: shared or dedicated)",
                    "remove it for pods of the service's own");
        }
        JsonNode spec = service.path("spec");
        only("spec", spec, OF_SERVICE);
        only("spec.predictor", spec.path("predictor"), OF_PREDICTOR);
        JsonNode model = spec.path("predictor").path("model");
        only("spec.predictor.model", model, OF_MODEL);
        String uri = model.path("storageUri").asText("");
        if (uri.isEmpty() && MultiModelService.isMultiModel(service)) {
            withoutModel(service);
            return;
        }
        int colon = uri.indexOf("://");
        if (colon <= 0) {
            throw refused(
                    "spec.predictor.model.storageUri is '" + uri + "' (expected: a URI such as gs://models/iris)");
        }
        String scheme = uri.substring(0, colon).toLowerCase(Locale.ROOT);
        if (VOLUMES.contains(scheme)) {
            throw refused("spec.predictor.model.storageUri: " + scheme + ":// needs a volume in the pod");
        }
        openToAll(service);
        long unused = memory(service);
    }

    private static void openToAll(JsonNode service) {
        if (annotation(service, AccessAnnotation.NAME).equals("true")) {
            throw refused("the annotation " + AccessAnnotation.NAME
                    + ": callers of one service of a pool reach the others of it as well");
        }
    }

    /** A service whose TrainedModels are the models of the pool. */
    private static void withoutModel(JsonNode service) {
        openToAll(service);
        if (!annotation(service, MEMORY).isEmpty()) {
            throw ServingException.invalidArgument(
                    "the annotation " + MEMORY + " has no effect on a service without spec.predictor.model.storageUri:"
                            + " each of its TrainedModels has a spec.model.memory",
                    "remove the annotation");
        }
    }

    private static void only(String where, JsonNode tree, Set<String> fields) {
        tree.fieldNames().forEachRemaining(field -> {
            if (!fields.contains(field) && !tree.path(field).isNull()) {
                throw refused(where + "." + field);
            }
        });
    }

    private static ServingException refused(String what) {
        return ServingException.invalidArgument(
                "a service with the annotation " + PLACEMENT + ": shared has no pods of its own, so it cannot have "
                        + what,
                "remove that, or the annotation");
    }

    /** The bytes that the model is expected to use. */
    static long memory(JsonNode service) {
        String text = annotation(service, MEMORY);
        try {
            long bytes = Quantity.parse(text.isEmpty() ? DEFAULT_MEMORY : text).units();
            if (bytes > 0) {
                return bytes;
            }
        } catch (IllegalArgumentException | ServingException e) {
            // the same message as for 0
        }
        throw ServingException.invalidArgument(
                "the annotation " + MEMORY + " is '" + text + "' (expected: a positive quantity such as 64Mi)",
                "set it to what the model needs when it is loaded");
    }

    /** The fewest and the most pods of a runtime's pools, by the names of the annotations. */
    static Map<String, Integer> pods(ServingRuntime runtime) {
        int min = number(runtime, MIN_PODS, 1);
        int max = number(runtime, MAX_PODS, Math.max(min, DEFAULT_MAX));
        if (max < min) {
            throw ServingException.invalidArgument(
                    "the runtime '" + runtime.name() + "' has " + MIN_PODS + ": " + min + " and " + MAX_PODS + ": "
                            + max + " (expected: a maximum of at least the minimum)",
                    "raise " + MAX_PODS);
        }
        return Map.of(MIN_PODS, min, MAX_PODS, max);
    }

    private static int number(ServingRuntime runtime, String name, int otherwise) {
        String text = runtime.metadata().annotations().get(name);
        if (text == null) {
            return otherwise;
        }
        try {
            int number = Integer.parseInt(text.strip());
            if (number > 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // the same message as for 0
        }
        throw ServingException.invalidArgument(
                "the annotation " + name + " of the runtime '" + runtime.name() + "' is '" + text
                        + "' (expected: a whole number of at least 1)",
                "correct it, or remove it for " + otherwise);
    }

    static boolean pinned(JsonNode service) {
        return annotation(service, PINNED).equals("true");
    }

    private static String annotation(JsonNode service, String name) {
        return service.path("metadata").path("annotations").path(name).asText("");
    }
}
