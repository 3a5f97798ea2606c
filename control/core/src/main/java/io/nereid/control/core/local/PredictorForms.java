// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Form;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.ModelServerImages;
import io.nereid.control.core.component.NvidiaResources;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.local.LocalForms.Parts;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.core.trainedmodel.MultiModelService;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Plans one predictor: a model in the engine, or processes. Confined to one call of the planner. */
final class PredictorForms {
    private final PlanningContext context;
    private final LocalForms planner;
    private final ComponentPlan plan;
    private final PredictorSpec spec;
    private final String where;

    PredictorForms(PlanningContext context, LocalForms planner, ComponentPlan plan, PredictorSpec spec) {
        this.context = context;
        this.planner = planner;
        this.plan = plan;
        this.spec = spec;
        this.where = plan.where();
    }

    /** A model with its selected runtime: in the engine when the engine replaces that server, else as a process. */
    Parts model(RuntimeSelection selection) {
        ModelSpec model = Objects.requireNonNull(spec.model());
        ServingRuntime runtime = Objects.requireNonNull(selection.chosen());
        String protocol = Objects.requireNonNull(selection.protocol());
        Container container = Objects.requireNonNull(plan.container(LocalForms.MAIN));
        boolean engine = isEngine(runtime) || ModelServerImages.format(container) != null;
        Form form;
        if (engine) {
            ObjectNode own = ComponentPlanner.withoutModel(model.container().tree());
            new ProcessForms(context, "predictor").advise(own, where + ".model", false);
            ModelAdvice.variables(context, model.container(), where + ".model");
            if (model.runtimeVersion() != null) {
                context.advice.add(
                        where + ".model.runtimeVersion has no effect on one machine: the engine runs the model,"
                                + " whose version is this program's");
            }
            plan.pod().containers().stream().filter(PredictorForms::isBeside).forEach(this::notRun);
            form = engine(
                    plan.artifacts(), model.formatName(), model.formatVersion(), protocol, runtime.name(), container);
        } else {
            List<Container> all = LocalForms.first(plan.pod().containers(), LocalForms.TRANSFORMER);
            form = new Workload.Process(plan.artifacts(), planner.processes(all, where, Map.of(), "predictor"));
        }
        Map<String, String> allLabels = new LinkedHashMap<>(plan.runtimeLabels());
        allLabels.putAll(plan.derivedLabels());
        return new Parts(form, planner.modelName(List.of(container)), allLabels, plan.runtimeAnnotations());
    }

    /** Custom containers. An image of a known model server becomes a model in the engine. */
    Parts custom() {
        List<Container> containers = LocalForms.mainFirst(plan.pod().containers());
        Container main = containers.get(0);
        String format = ModelServerImages.format(main);
        if (format != null) {
            new ProcessForms(context, "predictor")
                    .advise(main.tree(), where + ".containers[" + main.name() + "]", false);
            ModelAdvice.variables(context, main, where + ".containers[" + main.name() + "]");
            containers.stream().skip(1).filter(PredictorForms::isBeside).forEach(this::notRun);
            String protocol = Objects.requireNonNullElse(main.env("PROTOCOL"), "v1");
            String runtime = ModelServerImages.lastPart(Objects.requireNonNull(main.image()));
            return new Parts(
                    engine(plan.artifacts(), format, null, protocol, runtime, main), planner.modelName(List.of(main)));
        }
        List<Container> all = LocalForms.first(containers, LocalForms.TRANSFORMER);
        return new Parts(
                new Workload.Process(plan.artifacts(), planner.processes(all, where, Map.of(), "predictor")),
                planner.modelName(all));
    }

    /** Refuses what a model cannot have on one machine. */
    void rejectUnsupported() {
        ModelSpec model = Objects.requireNonNull(spec.model());
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
            List<Artifact> stored,
            String format,
            @Nullable String version,
            String protocol,
            String runtime,
            Container container) {
        List<Artifact> artifacts = stored;
        Map<String, String> environment = new LinkedHashMap<>();
        List<EnvironmentSource> sources = new ArrayList<>();
        environment.put("INFERENCE_SERVICE_NAME", context.name());
        new ProcessForms(context, "predictor").environment(container, where, environment, sources);
        String hub = HubModel.uri(format, container.args(), where);
        if (hub != null) {
            if (!stored.isEmpty()) {
                context.advice.add(where + ": the model is that of --model_id, as in KServe's server; the files of "
                        + stored.get(0).uri() + " are not used");
            }
            artifacts = List.of(HubModel.artifact(hub, environment, sources, spec));
            sources.removeIf(HubModel::reads);
        }
        if (artifacts.isEmpty()) {
            if (!MultiModelService.isMultiModel(context.service.tree())) {
                throw ServingException.invalidArgument(
                        where + ": the model has no files; set storageUri, storageUris or storage"
                                + (format.equals("huggingface") ? ", or the argument --model_id" : ""));
            }
            context.advice.add(
                    where + ": it has no storageUri, so the service has no model before a TrainedModel names it");
        }
        for (EnvironmentSource source : sources) {
            context.advice.add(
                    where + ".env: " + source.variable() + " from the " + source.kind() + " " + source.object()
                            + " has no effect on one machine: the engine runs the model; credentials of storages are"
                            + " those of the service account");
        }
        JsonNode resources = container.tree().path("resources");
        NvidiaResources gpus = NvidiaResources.of(resources, where);
        if (artifacts.isEmpty() && !gpus.isEmpty()) {
            context.advice.add(where + ".resources: the limit of " + gpus + " has no effect on one machine: the models"
                    + " of a service with many are placed on all GPUs");
        }
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

    /** Warns about a further container beside a model in the engine, which does not run. */
    private void notRun(Container one) {
        context.advice.add("the container \"" + one.name()
                + "\" is not run: the engine runs the model, without further containers");
    }

    private static boolean isBeside(Container container) {
        return !container.name().equals(LocalForms.MAIN) && !container.name().equals(LocalForms.TRANSFORMER);
    }
}
