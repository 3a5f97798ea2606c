// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.ArtExplainer;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The second stage of planning on Kubernetes: the pod of a component, before KServe's pod webhook would add to it.
 * Nothing of the first stage's pod is left out. Stateless.
 */
public final class PodForms {
    private static final String PORT = "8080";

    private PodForms() {}

    /**
     * The specification of the component's pods; a new tree.
     *
     * @param predictor the name of the predictor's workload, which transformers and explainers call
     * @throws ServingException INVALID_ARGUMENT for a component that cannot run in a pod of its own
     */
    public static ObjectNode of(ComponentPlan plan, PlanningContext context, String predictor) {
        ObjectNode pod = ofRevision(plan, context, predictor);
        defaults(pod);
        return pod;
    }

    /**
     * The specification of the pods of one of Knative's revisions, for which Knative has defaults of its own; a new tree.
     *
     * @param predictor as for {@link #of}
     * @throws ServingException as {@link #of}
     */
    public static ObjectNode ofRevision(ComponentPlan plan, PlanningContext context, String predictor) {
        ObjectNode pod = plan.pod().tree().deepCopy();
        switch (plan.component()) {
            case PREDICTOR -> {
                for (JsonNode container : pod.path("containers")) {
                    Trees.setEnv((ObjectNode) container, "INFERENCE_SERVICE_NAME", context.name());
                }
                if (EngineContainer.serves(plan)) {
                    EngineContainer.complete(pod, plan, context);
                }
            }
            case TRANSFORMER -> {
                boolean unused = OwnComponent.complete(pod, plan, context);
                ObjectNode first = first(pod);
                arguments(first, plan, context, predictor, false);
                Trees.setEnv(first, "INFERENCE_SERVICE_NAME", context.name());
            }
            default -> explainer(pod, plan, context, predictor);
        }
        return pod;
    }

    private static void explainer(ObjectNode pod, ComponentPlan plan, PlanningContext context, String predictor) {
        InferenceService.ExplainerSpec spec = context.service.explainer();
        ArtExplainer art = spec == null ? null : spec.art();
        if (art == null) {
            boolean own = OwnComponent.complete(pod, plan, context);
            // As on one machine, a service with a transformer is explained from the transformer's inputs on.
            String explained =
                    own && context.service.transformer() != null ? context.name() + "-transformer" : predictor;
            arguments(first(pod), plan, context, explained, true);
            return;
        }
        ObjectNode container = art.container().tree().deepCopy();
        container.remove(List.of("type", "storageUri", "runtimeVersion", "storage", "config"));
        List<String> own = art.container().args();
        Map<String, String> given = CommandLineArguments.of(own);
        List<String> args = new ArrayList<>(List.of("--model_name", context.name(), "--http_port", PORT));
        if (!given.containsKey("predictor_host")) {
            args.addAll(List.of("--predictor_host", predictor + "." + context.namespace()));
        }
        Long concurrency = plan.extension().containerConcurrency();
        if (concurrency != null && !given.containsKey("workers")) {
            args.addAll(List.of("--workers", concurrency.toString()));
        }
        boolean stored = art.storage() != null && art.storage().path() != null;
        if (stored || art.storageUri() != null && !art.storageUri().isEmpty()) {
            args.addAll(List.of("--storage_uri", PodNames.MODELS));
        }
        args.addAll(List.of("--adversary_type", art.type()));
        new TreeMap<>(art.config()).forEach((name, value) -> args.addAll(List.of("--" + name, value)));
        args.addAll(own);
        Trees.texts(container, "args", args);
        if (!container.hasNonNull("image")) {
            JsonNode settings = context.config.tree().path("explainers").path("art");
            String image = settings.path("image").asText("kserve/art-explainer");
            String version = art.runtimeVersion() == null
                    ? settings.path("defaultImageVersion").asText("latest")
                    : art.runtimeVersion();
            container.put("image", image + ":" + version);
        }
        container.put("name", PodNames.MAIN);
        ArrayNode containers = Trees.list(pod, "containers");
        if (containers.isEmpty()) {
            containers.add(container);
        } else {
            containers.set(0, container);
        }
    }

    private static ObjectNode first(ObjectNode pod) {
        return (ObjectNode) pod.path("containers").path(0);
    }

    /** Appends the arguments that KServe passes to transformers and explainers unless the container sets them. */
    private static void arguments(
            ObjectNode container, ComponentPlan plan, PlanningContext context, String predictor, boolean port) {
        List<String> args = new ArrayList<>();
        Map<String, String> given =
                CommandLineArguments.of(Container.read(container).args());
        if (!given.containsKey("model_name")) {
            args.addAll(List.of("--model_name", context.name()));
        }
        if (!given.containsKey("predictor_host")) {
            args.addAll(List.of("--predictor_host", predictor + "." + context.namespace()));
        }
        if (port || !given.containsKey("http_port")) {
            args.addAll(List.of("--http_port", PORT));
        }
        Long concurrency = plan.extension().containerConcurrency();
        if (concurrency != null && !given.containsKey("workers")) {
            args.addAll(List.of("--workers", concurrency.toString()));
        }
        ArrayNode all = Trees.list(container, "args");
        args.forEach(all::add);
    }

    /** The {@code storageUris} of a component. */
    public static List<StorageUri> storageUris(ComponentPlan plan, PlanningContext context) {
        return switch (plan.component()) {
            case PREDICTOR -> PredictorSpec.read(plan.tree()).storageUris();
            case TRANSFORMER ->
                context.service.transformer() == null
                        ? List.of()
                        : OwnComponent.storageUris(
                                plan, context, context.service.transformer().storageUris());
            default ->
                context.service.explainer() == null
                        ? List.of()
                        : OwnComponent.storageUris(
                                plan, context, context.service.explainer().storageUris());
        };
    }

    /** Completes the pod of a multi-node runtime's workers. */
    public static void workers(ObjectNode pod) {
        defaults(pod);
    }

    /** Sets what KServe sets in pods that leave it out, where that is not what the API server would set. */
    static void defaults(ObjectNode pod) {
        for (JsonNode one : pod.path("containers")) {
            ObjectNode container = (ObjectNode) one;
            if (!container.hasNonNull("imagePullPolicy")) {
                container.put("imagePullPolicy", "IfNotPresent");
            }
            String name = container.path("name").asText();
            if ((name.equals(PodNames.MAIN) || name.equals(PodNames.TRANSFORMER))
                    && !container.hasNonNull("readinessProbe")) {
                int port = container.path("ports").path(0).path("containerPort").asInt(8080);
                container.putObject("readinessProbe").putObject("tcpSocket").put("port", port);
            }
        }
    }
}
