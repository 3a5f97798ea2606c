// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.TransformerSpec;
import io.nereid.control.api.PodSpec;
import io.nereid.control.api.PodSpec.WorkerSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.ComponentPlan.Workers;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The first stage of planning: chooses runtimes, merges pods and finds the artifacts of a service's components. Confined
 * to one call of the planner.
 *
 * <pre>{@code
 * PlanningContext context = new PlanningContext(service, catalog, status);
 * ComponentPlan predictor = new ComponentPlanner(context).predictor(service.predictor(), "spec.predictor");
 * }</pre>
 */
public final class ComponentPlanner {
    private static final String MAIN = InferenceService.MAIN_CONTAINER;
    private static final String TRANSFORMER = InferenceService.TRANSFORMER_CONTAINER;

    private static final String WORKER = "worker-container";

    private static final Set<String> OF_MODELS = Set.of(
            "modelFormat", "runtime", "storageUri", "storage", "runtimeVersion", "protocolVersion", "confidential");

    private final PlanningContext context;

    public ComponentPlanner(PlanningContext context) {
        this.context = context;
    }

    /** A copy of a {@code model} block with the container's fields only. */
    public static ObjectNode withoutModel(ObjectNode block) {
        ObjectNode container = block.deepCopy();
        container.remove(OF_MODELS);
        return container;
    }

    /** Whether the field of a {@code model} block is of the model, not of its container. */
    public static boolean isOfModel(String field) {
        return OF_MODELS.contains(field);
    }

    /** The name of a predictor's workload. */
    public static String predictorName(String service, @Nullable String name) {
        return service + (name == null || name.isEmpty() ? "" : "-" + name) + "-predictor";
    }

    /** A canary's predictor: the fields that it leaves out are those of the stable one, without its autoscaling. */
    public static PredictorSpec canary(PredictorSpec stable, CanarySpec canary) {
        ObjectNode merged = stable.pod().tree().deepCopy();
        merged.remove(
                List.of("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType", "autoScaling"));
        override(merged, canary.predictor().pod().tree());
        return PredictorSpec.read(merged);
    }

    private static void override(ObjectNode into, ObjectNode over) {
        over.properties().forEach(entry -> {
            JsonNode value = entry.getValue();
            if (value instanceof ObjectNode object && into.get(entry.getKey()) instanceof ObjectNode there) {
                override(there, object);
            } else if (!value.isNull()) {
                into.set(entry.getKey(), value.deepCopy());
            }
        });
    }

    /**
     * Plans a predictor.
     *
     * @param where its path in the service, for messages
     */
    public ComponentPlan predictor(PredictorSpec spec, String where) {
        Draft draft = new Draft(Component.PREDICTOR, predictorName(context.name(), spec.name()), where, spec.pod());
        draft.extension = spec.extension();
        if (spec.model() != null) {
            RuntimeSelection selection;
            try {
                selection = RuntimeSelection.of(
                        spec.model(),
                        spec.workerSpec() != null,
                        context.catalog,
                        context.catalog.engine(context.service.metadata()));
            } catch (ServingException e) {
                draft.problem = new Problem("InvalidPredictorSpec", e.getMessage());
                return draft.plan();
            }
            draft.selection = selection;
            if (selection.chosen() == null) {
                draft.problem = new Problem(Objects.requireNonNull(selection.reason()), selection.message());
                return draft.plan();
            }
        }
        return draft.tried("InvalidPredictorSpec", () -> {
            if (draft.selection != null) {
                model(draft, spec, draft.selection);
            } else {
                if (spec.pod().containers().isEmpty()) {
                    throw ServingException.invalidArgument(where + ": expected a model, or containers");
                }
                custom(draft, spec.storageUris(), spec.pod(), spec.storageContainerName());
            }
        });
    }

    /** Plans the transformer; null for none. */
    public @Nullable ComponentPlan transformer() {
        TransformerSpec spec = context.service.transformer();
        if (spec == null) {
            return null;
        }
        Draft draft = new Draft(Component.TRANSFORMER, context.name() + "-transformer", "spec.transformer", spec.pod());
        draft.extension = spec.extension();
        return draft.tried("InvalidTransformerSpec", () -> {
            if (spec.builtIn() != null) {
                draft.artifacts = StorageArtifacts.artifacts(
                        context,
                        spec.builtIn().storageUri(),
                        null,
                        spec.storageUris(),
                        null,
                        spec.pod(),
                        spec.storageContainerName());
                draft.pod.remove("containers");
                return;
            }
            custom(draft, spec.storageUris(), spec.pod(), spec.storageContainerName());
            draft.arguments.putAll(transformerArguments(spec.extension()));
        });
    }

    /** The artifacts of a container in the predictor's pod that runs as a component of its own. */
    public List<Artifact> containerArtifacts(Container container, PredictorSpec host) {
        return StorageArtifacts.artifacts(context, List.of(), container, host.pod(), host.storageContainerName());
    }

    /** The arguments that a transformer gets unless it sets them itself. */
    public Map<String, String> transformerArguments(ComponentExtensionSpec extension) {
        Map<String, String> all = new LinkedHashMap<>();
        all.put("model_name", context.name());
        Long concurrency = extension.containerConcurrency();
        if (concurrency != null && concurrency > 0) {
            all.put("workers", concurrency.toString());
        }
        return all;
    }

    /** Plans the explainer; null for none. */
    public @Nullable ComponentPlan explainer() {
        ExplainerSpec spec = context.service.explainer();
        if (spec == null) {
            return null;
        }
        Draft draft = new Draft(Component.EXPLAINER, context.name() + "-explainer", "spec.explainer", spec.pod());
        draft.extension = spec.extension();
        return draft.tried("InvalidExplainerSpec", () -> {
            draft.arguments.put("model_name", context.name());
            if (spec.builtIn() != null) {
                draft.artifacts = StorageArtifacts.artifacts(
                        context,
                        spec.builtIn().storageUri(),
                        null,
                        spec.storageUris(),
                        null,
                        spec.pod(),
                        spec.storageContainerName());
                draft.pod.remove("containers");
            } else if (spec.art() != null) {
                draft.artifacts = StorageArtifacts.artifacts(
                        context,
                        spec.art().storageUri(),
                        spec.art().storage(),
                        spec.storageUris(),
                        null,
                        spec.pod(),
                        spec.storageContainerName());
            } else {
                if (spec.pod().containers().isEmpty()) {
                    throw ServingException.invalidArgument("spec.explainer: expected nereid, or containers");
                }
                custom(draft, spec.storageUris(), spec.pod(), spec.storageContainerName());
            }
        });
    }

    private void custom(
            Draft draft, List<InferenceService.StorageUri> uris, PodSpec pod, @Nullable String storageContainer) {
        Container main = null;
        for (Container one : pod.containers()) {
            main = main == null || one.name().equals(MAIN) ? one : main;
        }
        draft.artifacts = StorageArtifacts.artifacts(context, uris, main, pod, storageContainer);
    }

    /**
     * Merges the runtime's pod with the service's, adds the defaults of the model server, and fills in the templates.
     */
    private void model(Draft draft, PredictorSpec spec, RuntimeSelection selection) {
        ModelSpec model = Objects.requireNonNull(spec.model());
        ServingRuntime runtime = Objects.requireNonNull(selection.chosen());
        Container base = runtime.pod().container(MAIN);
        if (base == null) {
            throw ServingException.invalidArgument(
                    "the runtime " + runtime.name() + " has no container named " + MAIN + "; give it one");
        }
        ObjectNode own = withoutModel(model.container().tree());
        ObjectNode merged = StrategicMerge.containers(base.tree(), own);
        merged.put("name", MAIN);
        String protocol = Objects.requireNonNull(selection.protocol());
        draft.artifacts = StorageArtifacts.artifacts(
                context,
                model.storageUri(),
                model.storage(),
                spec.storageUris(),
                Container.read(own),
                spec.pod(),
                spec.storageContainerName());
        draft.derivedLabels =
                ModelServerDefaults.apply(runtime, model, protocol, !draft.artifacts.isEmpty(), context, merged);
        TemplateRenderer templates = context.templates(draft.derivedLabels);
        ObjectNode filled = (ObjectNode) templates.fill(merged, "the runtime " + runtime.name());
        if (!ModelServerDefaults.image(runtime, model, filled)) {
            context.advice.add(
                    draft.where + ".model.runtimeVersion has no effect with the engine nereid, whose version is"
                            + " that of the runtime " + runtime.name());
        }
        List<Container> containers = new ArrayList<>(List.of(Container.read(filled)));
        ObjectNode transformer = collocated(spec, selection);
        if (transformer != null) {
            containers.add(
                    Container.read((ObjectNode) context.templates(Map.of()).fill(transformer, TRANSFORMER)));
        }
        runtime.pod().containers().stream().filter(ComponentPlanner::isBeside).forEach(containers::add);
        spec.pod().containers().stream().filter(ComponentPlanner::isBeside).forEach(containers::add);
        draft.pod = PodTree.merged(runtime.pod().tree(), spec.pod().tree());
        PodTree.setContainers(draft.pod, containers);
        draft.runtimeLabels = runtime.labels();
        draft.runtimeAnnotations = runtime.annotations();
        if (spec.workerSpec() != null) {
            draft.workers = workers(spec.workerSpec(), runtime);
        }
    }

    private static Workers workers(WorkerSpec spec, ServingRuntime runtime) {
        WorkerSpec base = runtime.workerSpec();
        if (base == null) {
            throw ServingException.invalidArgument("spec.predictor.workerSpec: the runtime " + runtime.name()
                    + " has no workerSpec; name a runtime that has one, or leave it out");
        }
        Container worker = base.pod().container(WORKER);
        if (worker == null) {
            throw ServingException.invalidArgument("the runtime " + runtime.name() + " has no container named " + WORKER
                    + " in its workerSpec; give it one");
        }
        ObjectNode merged = worker.tree().deepCopy();
        if (!spec.pod().containers().isEmpty()) {
            merged = StrategicMerge.containers(
                    worker.tree(), spec.pod().containers().get(0).tree());
            merged.put("name", WORKER);
        }
        ObjectNode pod = PodTree.merged(base.pod().tree(), spec.pod().tree());
        PodTree.setContainers(pod, List.of(Container.read(merged)));
        ObjectNode tree = base.pod().tree();
        return new Workers(
                PodSpec.read(pod),
                orElse(spec.pipelineParallelSize(), base.pipelineParallelSize()),
                orElse(spec.tensorParallelSize(), base.tensorParallelSize()),
                texts(tree, "labels", runtime),
                texts(tree, "annotations", runtime));
    }

    private static Map<String, String> texts(ObjectNode tree, String field, ServingRuntime runtime) {
        Map<String, String> all = new LinkedHashMap<>();
        tree.path(field).properties().forEach(entry -> {
            if (!entry.getValue().isTextual()) {
                throw ServingException.invalidArgument("the runtime " + runtime.name() + ": workerSpec." + field + "."
                        + entry.getKey() + ": expected a text");
            }
            all.put(entry.getKey(), entry.getValue().textValue());
        });
        return all;
    }

    private static int orElse(@Nullable Integer own, @Nullable Integer base) {
        return own != null ? own : base == null ? 1 : base;
    }

    /** The transformer's container in the predictor's pod: the runtime's, merged with the service's; null for none. */
    private static @Nullable ObjectNode collocated(PredictorSpec spec, RuntimeSelection selection) {
        Container own = spec.pod().container(TRANSFORMER);
        Container base = Objects.requireNonNull(selection.chosen()).pod().container(TRANSFORMER);
        if (base == null) {
            return own == null ? null : own.tree();
        }
        return own == null ? base.tree() : StrategicMerge.containers(base.tree(), own.tree());
    }

    private static boolean isBeside(Container container) {
        return !container.name().equals(MAIN) && !container.name().equals(TRANSFORMER);
    }

    /** A plan in the making. */
    private static final class Draft {
        private final Component component;
        private final String name;
        private final String where;
        private final PodSpec written;
        private @Nullable ComponentExtensionSpec extension;
        private @Nullable RuntimeSelection selection;
        private @Nullable Problem problem;
        private ObjectNode pod;
        private @Nullable Workers workers;
        private List<Artifact> artifacts = List.of();
        private final Map<String, String> arguments = new LinkedHashMap<>();
        private Map<String, String> runtimeLabels = Map.of();
        private Map<String, String> derivedLabels = Map.of();
        private Map<String, String> runtimeAnnotations = Map.of();

        private Draft(Component component, String name, String where, PodSpec written) {
            this.component = component;
            this.name = name;
            this.where = where;
            this.written = written;
            this.pod = PodTree.of(written.tree());
        }

        private ComponentPlan tried(String reason, Runnable planning) {
            try {
                planning.run();
            } catch (ServingException e) {
                problem = new Problem(reason, e.getMessage());
            }
            return plan();
        }

        private ComponentPlan plan() {
            return new ComponentPlan(
                    component,
                    name,
                    where,
                    Objects.requireNonNull(extension),
                    written,
                    selection,
                    problem,
                    PodSpec.read(pod),
                    workers,
                    artifacts,
                    arguments,
                    runtimeLabels,
                    derivedLabels,
                    runtimeAnnotations);
        }
    }
}
