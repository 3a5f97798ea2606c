// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.PodSpec;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.core.Drafts.Parts;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Form;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What one predictor runs. Confined to one call of the planner. */
final class Predictors {
    private final Scene scene;
    private final Drafts drafts;
    private final PredictorSpec spec;
    private final String where;

    Predictors(Scene scene, Drafts drafts, PredictorSpec spec, String where) {
        this.scene = scene;
        this.drafts = drafts;
        this.spec = spec;
        this.where = where;
    }

    /** A model with the runtime that was chosen for it. */
    Parts model(RuntimeSelection selection) {
        ModelSpec model = Objects.requireNonNull(spec.model());
        ServingRuntime runtime = Objects.requireNonNull(selection.chosen());
        refuse(model);
        Container base = runtime.pod().container(Drafts.MAIN);
        if (base == null) {
            throw ServingException.invalidArgument(
                    "the runtime " + runtime.name() + " has no container named " + Drafts.MAIN + "; give it one");
        }
        ObjectNode own = Containers.withoutModel(model.container().tree());
        ObjectNode merged = Merge.containers(base.tree(), own);
        merged.put("name", Drafts.MAIN);
        String protocol = Objects.requireNonNull(selection.protocol());
        List<Artifact> artifacts = Storages.artifacts(
                scene,
                model.storageUri(),
                model.storage(),
                spec.storageUris(),
                Container.read(own),
                spec.pod(),
                spec.storageContainerName());
        Map<String, String> labels =
                ServerDefaults.apply(runtime, model, protocol, !artifacts.isEmpty(), scene, merged);
        if (model.runtimeVersion() != null && merged.hasNonNull("image")) {
            merged.put("image", KnownImages.withTag(merged.path("image").asText(), model.runtimeVersion()));
        }
        Container container =
                Container.read((ObjectNode) scene.templates(labels).fill(merged, "the runtime " + runtime.name()));
        boolean engine = isEngine(runtime) || KnownImages.format(container) != null;
        Form form;
        if (engine) {
            new Containers(scene, "predictor").advise(own, where + ".model", false);
            beside(runtime.pod());
            beside(spec.pod());
            form = engine(artifacts, model.formatName(), model.formatVersion(), protocol, runtime.name(), container);
        } else {
            List<Container> all = new ArrayList<>(List.of(container));
            ObjectNode transformer = Drafts.collocated(spec, selection);
            if (transformer != null) {
                all.add(0, drafts.filled(Container.read(transformer), selection));
            }
            runtime.pod().containers().stream().filter(Predictors::isBeside).forEach(all::add);
            spec.pod().containers().stream().filter(Predictors::isBeside).forEach(all::add);
            form = new Workload.Process(artifacts, drafts.processes(all, where, Map.of(), "predictor"));
        }
        Map<String, String> allLabels = new LinkedHashMap<>(runtime.labels());
        allLabels.putAll(labels);
        return new Parts(form, drafts.modelName(List.of(container)), allLabels, runtime.annotations());
    }

    /** Containers of the owner's own. */
    Parts custom() {
        List<Container> containers = Drafts.mainFirst(spec.pod().containers());
        if (containers.isEmpty()) {
            throw ServingException.invalidArgument(where + ": expected a model, or containers");
        }
        Container main = containers.get(0);
        List<Artifact> artifacts =
                Storages.artifacts(scene, spec.storageUris(), main, spec.pod(), spec.storageContainerName());
        String format = KnownImages.format(main);
        if (format != null) {
            new Containers(scene, "predictor").advise(main.tree(), where + ".containers[" + main.name() + "]", false);
            containers.stream().skip(1).filter(Predictors::isBeside).forEach(this::notRun);
            String protocol = Objects.requireNonNullElse(main.env("PROTOCOL"), "v1");
            String runtime = KnownImages.lastPart(Objects.requireNonNull(main.image()));
            return new Parts(engine(artifacts, format, null, protocol, runtime, main), drafts.modelName(List.of(main)));
        }
        List<Container> all = Drafts.first(containers, Drafts.TRANSFORMER);
        return new Parts(
                new Workload.Process(artifacts, drafts.processes(all, where, Map.of(), "predictor")),
                drafts.modelName(all));
    }

    private void refuse(ModelSpec model) {
        if (spec.workerSpec() != null) {
            throw ServingException.invalidArgument(
                    where + ".workerSpec: a model on several machines cannot run on one; leave it out");
        }
        if (model.confidential() != null && model.confidential().enabled()) {
            throw ServingException.invalidArgument(where
                    + ".model.confidential: encrypted models are not read here; store the model without encryption");
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
                            + "(TrainedModel, which would bring them later, is not served)");
        }
        Map<String, String> environment = new LinkedHashMap<>();
        List<EnvironmentSource> sources = new ArrayList<>();
        environment.put("INFERENCE_SERVICE_NAME", scene.name());
        new Containers(scene, "predictor").environment(container, where, environment, sources);
        for (EnvironmentSource source : sources) {
            scene.advice.add(where + ".env: " + source.variable() + " from the " + source.kind() + " " + source.object()
                    + " has no effect on one machine: the engine runs the model; credentials of storages are those of the "
                    + "service account");
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

    /** Tells of containers beside a model in the engine. */
    private void beside(PodSpec pod) {
        pod.containers().stream().filter(Predictors::isBeside).forEach(this::notRun);
    }

    private void notRun(Container one) {
        scene.advice.add("the container \"" + one.name()
                + "\" is not run: the engine runs the model, and there is nothing beside it");
    }

    private static boolean isBeside(Container container) {
        return !container.name().equals(Drafts.MAIN) && !container.name().equals(Drafts.TRANSFORMER);
    }
}
