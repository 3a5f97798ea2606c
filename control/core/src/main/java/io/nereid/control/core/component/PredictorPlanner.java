// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.PodSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Form;
import io.nereid.control.core.component.ComponentPlanner.Parts;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Plans one predictor: a model in the engine, or processes. Confined to one call of the planner. */
final class PredictorPlanner {
    private final PlanningContext context;
    private final ComponentPlanner planner;
    private final PredictorSpec spec;
    private final String where;

    PredictorPlanner(PlanningContext context, ComponentPlanner planner, PredictorSpec spec, String where) {
        this.context = context;
        this.planner = planner;
        this.spec = spec;
        this.where = where;
    }

    /**
     * Plans a model with its selected runtime: merges the runtime's container with the model's, adds the defaults of
     * the model server, fills in the templates, and runs the model in the engine when the engine replaces that server,
     * else as a process.
     */
    Parts model(RuntimeSelection selection) {
        ModelSpec model = Objects.requireNonNull(spec.model());
        ServingRuntime runtime = Objects.requireNonNull(selection.chosen());
        rejectUnsupported(model);
        Container base = runtime.pod().container(ComponentPlanner.MAIN);
        if (base == null) {
            throw ServingException.invalidArgument("the runtime " + runtime.name() + " has no container named "
                    + ComponentPlanner.MAIN + "; give it one");
        }
        ObjectNode own = ContainerPlanner.withoutModel(model.container().tree());
        ObjectNode merged = StrategicMerge.containers(base.tree(), own);
        merged.put("name", ComponentPlanner.MAIN);
        String protocol = Objects.requireNonNull(selection.protocol());
        List<Artifact> artifacts = StorageArtifacts.artifacts(
                context,
                model.storageUri(),
                model.storage(),
                spec.storageUris(),
                Container.read(own),
                spec.pod(),
                spec.storageContainerName());
        Map<String, String> labels =
                ModelServerDefaults.apply(runtime, model, protocol, !artifacts.isEmpty(), context, merged);
        if (model.runtimeVersion() != null && merged.hasNonNull("image")) {
            merged.put("image", ModelServerImages.withTag(merged.path("image").asText(), model.runtimeVersion()));
        }
        Container container =
                Container.read((ObjectNode) context.templates(labels).fill(merged, "the runtime " + runtime.name()));
        boolean engine = isEngine(runtime) || ModelServerImages.format(container) != null;
        Form form;
        if (engine) {
            new ContainerPlanner(context, "predictor").advise(own, where + ".model", false);
            beside(runtime.pod());
            beside(spec.pod());
            form = engine(artifacts, model.formatName(), model.formatVersion(), protocol, runtime.name(), container);
        } else {
            List<Container> all = new ArrayList<>(List.of(container));
            ObjectNode transformer = ComponentPlanner.collocated(spec, selection);
            if (transformer != null) {
                all.add(0, planner.filled(Container.read(transformer), selection));
            }
            runtime.pod().containers().stream()
                    .filter(PredictorPlanner::isBeside)
                    .forEach(all::add);
            spec.pod().containers().stream().filter(PredictorPlanner::isBeside).forEach(all::add);
            form = new Workload.Process(artifacts, planner.processes(all, where, Map.of(), "predictor"));
        }
        Map<String, String> allLabels = new LinkedHashMap<>(runtime.labels());
        allLabels.putAll(labels);
        return new Parts(form, planner.modelName(List.of(container)), allLabels, runtime.annotations());
    }

    /** Plans custom containers. An image of a known model server becomes a model in the engine. */
    Parts custom() {
        List<Container> containers = ComponentPlanner.mainFirst(spec.pod().containers());
        if (containers.isEmpty()) {
            throw ServingException.invalidArgument(where + ": expected a model, or containers");
        }
        Container main = containers.get(0);
        List<Artifact> artifacts =
                StorageArtifacts.artifacts(context, spec.storageUris(), main, spec.pod(), spec.storageContainerName());
        String format = ModelServerImages.format(main);
        if (format != null) {
            new ContainerPlanner(context, "predictor")
                    .advise(main.tree(), where + ".containers[" + main.name() + "]", false);
            containers.stream().skip(1).filter(PredictorPlanner::isBeside).forEach(this::notRun);
            String protocol = Objects.requireNonNullElse(main.env("PROTOCOL"), "v1");
            String runtime = ModelServerImages.lastPart(Objects.requireNonNull(main.image()));
            return new Parts(
                    engine(artifacts, format, null, protocol, runtime, main), planner.modelName(List.of(main)));
        }
        List<Container> all = ComponentPlanner.first(containers, ComponentPlanner.TRANSFORMER);
        return new Parts(
                new Workload.Process(artifacts, planner.processes(all, where, Map.of(), "predictor")),
                planner.modelName(all));
    }

    private void rejectUnsupported(ModelSpec model) {
        if (spec.workerSpec() != null) {
            throw ServingException.invalidArgument(
                    where + ".workerSpec: workers on further machines are not supported on one machine; leave it out");
        }
        if (model.confidential() != null && model.confidential().enabled()) {
            throw ServingException.invalidArgument(where
                    + ".model.confidential: encrypted models are not supported; store the model without encryption");
        }
    }

    private static boolean isEngine(ServingRuntime runtime) {
        return "true".equals(runtime.metadata().annotation(BuiltInRuntimes.ENGINE))
                || "true".equals(runtime.annotations().get(BuiltInRuntimes.ENGINE));
    }

    private Form engine(
            List<Artifact> artifacts,
            String format,
            @Nullable String version,
            String protocol,
            String runtime,
            Container container) {
        if (artifacts.isEmpty()) {
            throw ServingException.invalidArgument(
                    where + ": the model has no files; set storageUri, storageUris or storage "
                            + "(TrainedModel, which would add files later, is not supported)");
        }
        Map<String, String> environment = new LinkedHashMap<>();
        List<EnvironmentSource> sources = new ArrayList<>();
        environment.put("INFERENCE_SERVICE_NAME", context.name());
        new ContainerPlanner(context, "predictor").environment(container, where, environment, sources);
        for (EnvironmentSource source : sources) {
            context.advice.add(
                    where + ".env: " + source.variable() + " from the " + source.kind() + " " + source.object()
                            + " has no effect on one machine: the engine runs the model; credentials of storages are"
                            + " those of the service account");
        }
        JsonNode resources = container.tree().path("resources");
        return new Workload.Model(
                artifacts,
                format,
                version,
                protocol,
                runtime,
                container.args(),
                Collections.unmodifiableMap(environment),
                resources.isObject() ? resources : JsonNodeFactory.instance.objectNode());
    }

    /** Warns about further containers beside a model in the engine, which do not run. */
    private void beside(PodSpec pod) {
        pod.containers().stream().filter(PredictorPlanner::isBeside).forEach(this::notRun);
    }

    private void notRun(Container one) {
        context.advice.add("the container \"" + one.name()
                + "\" is not run: the engine runs the model, without further containers");
    }

    private static boolean isBeside(Container container) {
        return !container.name().equals(ComponentPlanner.MAIN)
                && !container.name().equals(ComponentPlanner.TRANSFORMER);
    }
}
