// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Form;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.ModelServerImages;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.local.LocalForms.Parts;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Plans one predictor: a model in the engine, or processes. Confined to one call of the planner. */
final class PredictorForms {
    /** Arguments of KServe's Hugging Face server that name a model of the Hub. */
    private static final Set<String> HUB_ARGUMENTS =
            Set.of("model_id", "model-id", "model_revision", "model-revision");

    private static final Pattern HUB_MODEL = Pattern.compile("[A-Za-z0-9][\\w.-]*(/[A-Za-z0-9][\\w.-]*)?");

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
        List<String> arguments = container.args();
        if (artifacts.isEmpty() && format.equalsIgnoreCase("huggingface")) {
            artifacts = ofHub(arguments);
            arguments = CommandLineArguments.without(arguments, HUB_ARGUMENTS);
        }
        if (artifacts.isEmpty()) {
            throw ServingException.invalidArgument(
                    where + ": the model has no files; set storageUri, storageUris or storage "
                            + "(TrainedModel, which would add files later, is not supported)");
        }
        Map<String, String> environment = new LinkedHashMap<>();
        List<EnvironmentSource> sources = new ArrayList<>();
        environment.put("INFERENCE_SERVICE_NAME", context.name());
        new ProcessForms(context, "predictor").environment(container, where, environment, sources);
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
                arguments,
                Collections.unmodifiableMap(environment),
                resources.isObject() ? resources : JsonNodeFactory.instance.objectNode());
    }

    /** The model of the Hub that the arguments of KServe's Hugging Face server name; empty without one. */
    private List<Artifact> ofHub(List<String> arguments) {
        Map<String, String> options = CommandLineArguments.normalized(arguments);
        String id = options.getOrDefault("model_id", "");
        if (id.isEmpty()) {
            return List.of();
        }
        if (!HUB_MODEL.matcher(id).matches()) {
            throw ServingException.invalidArgument(
                    where + ".model.args: --model_id is '" + id + "' (expected: OWNER/MODEL of the Hugging Face Hub)",
                    "correct it, or set storageUri");
        }
        String revision = options.getOrDefault("model_revision", "");
        return List.of(new Artifact(
                "hf://" + id + (revision.isEmpty() ? "" : ":" + revision),
                StorageUri.MODELS,
                null,
                Map.of(),
                spec.pod().serviceAccountName(),
                spec.storageContainerName()));
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
