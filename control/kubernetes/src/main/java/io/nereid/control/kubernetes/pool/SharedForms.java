// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pool;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.core.Workload;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.component.WorkloadPlan;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.EngineContainer;
import io.nereid.control.kubernetes.pod.PodForms;
import io.nereid.control.kubernetes.pod.PodInjection;
import io.nereid.control.kubernetes.pod.PodNames;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The forms of workloads that share the pods of a pool. A service has one revision as long as it is shared: another
 * storage URI is loaded in its place, and does not make another one. Its form is the pod of the pool, which is the same
 * for all services of the pool. Confined to one call of the planner.
 */
public final class SharedForms implements WorkloadForms {
    /** The annotations of the workload, which say what to load. */
    private static final String URI = "nereid.io/placement-storage-uri";

    private static final int HTTP = 8080;
    private static final int GRPC = 8081;
    private static final int DRAIN_SECONDS = 30;
    private static final int GRACE_SECONDS = 360;

    private final JsonNode service;
    private final PlanningContext context;
    private final PodInjection injection;

    /** @param service the stored service, without defaults */
    public SharedForms(JsonNode service, PlanningContext context, ObservedCluster cluster) {
        this.service = service;
        this.context = context;
        this.injection = new PodInjection(
                context.service, ClusterSettings.of(context.config), cluster, context.catalog.storageContainers());
    }

    /**
     * A model of a pool.
     *
     * @param pool the name of the pool in its namespace
     * @param uri the storage URI of the model; empty for a service whose models are TrainedModels
     * @param bytes the memory that it is expected to use
     * @param pinned whether it stays loaded
     * @param min the fewest pods of the pool
     * @param max the most pods of the pool
     * @param pod the specification of the pool's pods
     */
    public record SharedModel(String pool, String uri, long bytes, boolean pinned, int min, int max, JsonNode pod) {
        /** A model of the same pool, with the same pods. */
        public SharedModel with(String otherUri, long otherBytes) {
            return new SharedModel(pool, otherUri, otherBytes, pinned, min, max, pod);
        }
    }

    /** What a workload loads in a pool; null for one with pods of its own. */
    public static @Nullable SharedModel model(Workload workload) {
        String pool = workload.labels().get(SharedPlacement.POOL);
        if (pool == null || !(workload.form() instanceof Workload.Pod form)) {
            return null;
        }
        Map<String, String> annotations = workload.annotations();
        return new SharedModel(
                pool,
                annotations.getOrDefault(URI, ""),
                Long.parseLong(annotations.getOrDefault(SharedPlacement.MEMORY, "1")),
                "true".equals(annotations.get(SharedPlacement.PINNED)),
                Integer.parseInt(annotations.getOrDefault(SharedPlacement.MIN_PODS, "1")),
                Integer.parseInt(annotations.getOrDefault(SharedPlacement.MAX_PODS, "1")),
                form.spec());
    }

    @Override
    public Site site() {
        return Site.CLUSTER;
    }

    @Override
    public WorkloadPlan predictor(ComponentPlan plan, PredictorSpec spec) {
        Problem problem = plan.problem();
        if (problem == null) {
            try {
                SharedPlacement.check(service);
                return shared(plan, spec);
            } catch (ServingException e) {
                problem = new Problem("InvalidPredictorSpec", e.getMessage());
            }
        }
        return new WorkloadPlan(plan.component(), plan.name(), null, problem, plan.extension(), plan.selection());
    }

    /** The predictor is refused then. */
    @Override
    public @Nullable WorkloadPlan transformer(
            @Nullable ComponentPlan plan, ComponentPlan host, WorkloadPlan predictor) {
        return null;
    }

    /** The predictor is refused then. */
    @Override
    public @Nullable WorkloadPlan explainer(@Nullable ComponentPlan plan) {
        return null;
    }

    private WorkloadPlan shared(ComponentPlan plan, PredictorSpec spec) {
        RuntimeSelection selection = plan.selection();
        if (selection == null || selection.chosen() == null || !EngineContainer.serves(plan)) {
            throw ServingException.invalidArgument(
                    "a pool is made of pods of Nereid's engine, and the runtime "
                            + (selection == null || selection.chosen() == null
                                    ? "of the service"
                                    : "'" + selection.chosen().name() + "'")
                            + " is of another server",
                    "name a runtime of the engine in spec.predictor.model.runtime, or set the annotation"
                            + " nereid.io/serving-engine: nereid");
        }
        String pool = PoolObjects.name(selection.chosen().name());
        Map<String, String> labels = new LinkedHashMap<>();
        labels.put("component", plan.component().text());
        labels.put(SharedPlacement.POOL, pool);
        Map<String, String> annotations = new LinkedHashMap<>();
        annotations.put(
                URI,
                spec.model() == null
                        ? ""
                        : Objects.requireNonNullElse(spec.model().storageUri(), ""));
        annotations.put(SharedPlacement.MEMORY, Long.toString(SharedPlacement.memory(service)));
        annotations.put(SharedPlacement.PINNED, Boolean.toString(SharedPlacement.pinned(service)));
        SharedPlacement.pods(selection.chosen()).forEach((name, pods) -> annotations.put(name, Integer.toString(pods)));
        Long concurrency = plan.extension().containerConcurrency();
        Long timeout = plan.extension().timeout();
        Workload workload = new Workload(
                context.namespace(),
                context.name(),
                plan.component(),
                "",
                context.name(),
                new Workload.Pod(pod(plan), HTTP, GRPC),
                new Workload.Scaling(0, 0, "concurrency", null, "none", Map.of()),
                concurrency == null ? 0 : (int) Math.min(Integer.MAX_VALUE, concurrency),
                timeout == null || timeout <= 0 ? Duration.ofMinutes(5) : Duration.ofSeconds(Math.min(timeout, 86_400)),
                null,
                null,
                labels,
                annotations);
        ObjectNode identity = Trees.object();
        identity.put("pool", pool);
        return new WorkloadPlan(plan.component(), plan.name(), workload, null, plan.extension(), selection, identity);
    }

    /** The pod of the runtime as a server without a model, which the operator gives models. */
    private ObjectNode pod(ComponentPlan plan) {
        ObjectNode pod = PodForms.of(plan, context, context.name() + "-predictor");
        ObjectNode main = Trees.named(pod.path("containers"), PodNames.MAIN);
        if (main == null) {
            throw ServingException.invalidArgument(
                    "the runtime has no container named " + PodNames.MAIN + ", so it cannot make a pool");
        }
        EngineContainer.withoutTrainedModels(pod, main);
        ArrayNode given = Trees.list(main, "args");
        ArrayNode args = EngineContainer.withoutModel(given);
        args.add("--model-control-mode=explicit");
        args.add("--allow-model-storage");
        args.add("--model-cache=" + PoolObjects.CACHE);
        args.add("--api-keys=" + PoolObjects.ACCESS + "/" + PoolObjects.KEYS);
        args.add("--access-config=" + PoolObjects.ACCESS + "/" + PoolObjects.RULES);
        main.set("args", args);
        ArrayNode variables = main.arrayNode();
        main.path("env").forEach(variable -> {
            if (!variable.path("name").asText().equals("INFERENCE_SERVICE_NAME")) {
                variables.add(variable);
            }
        });
        main.set("env", variables);
        PoolObjects.mount(pod, main);
        if (!main.path("lifecycle").hasNonNull("preStop")) {
            main.withObject("/lifecycle")
                    .putObject("preStop")
                    .putObject("sleep")
                    .put("seconds", DRAIN_SECONDS);
        }
        if (!pod.hasNonNull("terminationGracePeriodSeconds")) {
            pod.put("terminationGracePeriodSeconds", GRACE_SECONDS);
        }
        injection.credentials(pod);
        return pod;
    }
}
