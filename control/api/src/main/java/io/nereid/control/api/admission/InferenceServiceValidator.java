// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Container;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.ArtExplainer;
import io.nereid.control.api.InferenceService.BuiltInExplainer;
import io.nereid.control.api.InferenceService.BuiltInTransformer;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Confidential;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import io.nereid.control.api.InferenceService.LoggerSpec;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.TransformerSpec;
import io.nereid.control.api.PodSpec;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.api.schema.ResourceSchemas;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Validates an InferenceService as KServe's validating webhook does. Confined to one admission. */
final class InferenceServiceValidator {
    private static final Pattern CLASS_NAME =
            Pattern.compile("[\\p{L}_$][\\p{L}\\p{N}_$]*(\\.[\\p{L}_$][\\p{L}\\p{N}_$]*)*");

    private static final Pattern RESOURCE_ID = Pattern.compile("kbs:///[^/\\s]+/[^/\\s]+/[^/\\s]+");

    private final AdmissionContext context;
    private final ValidationErrors problems;
    private final StorageValidator storage;

    InferenceServiceValidator(AdmissionContext context, ValidationErrors problems) {
        this.context = context;
        this.problems = problems;
        this.storage = new StorageValidator(context.storageContainers(), problems);
    }

    /** Checks the service, and returns its mode. */
    DeploymentMode check(ObjectNode resource, @Nullable ObjectNode old) {
        InferenceService service = InferenceService.read(resource);
        InferenceServiceConfig config = context.config(service.metadata().namespace());
        DeploymentMode mode = mode(service, old, config);
        ScalingValidator scaling = new ScalingValidator(service.metadata().annotations(), mode, problems);
        scaling.service();
        ObjectMetaValidator.engine(service.metadata(), problems);
        LoggerValidator.annotations("metadata.annotations", service.metadata().annotations(), problems);

        PredictorSpec predictor = service.predictor();
        predictor("spec.predictor", predictor, scaling);
        new WorkerSpecValidator(problems, config, service.metadata()).predictor("spec.predictor", predictor);
        TransformerSpec transformer = service.transformer();
        if (transformer != null) {
            String path = "spec.transformer";
            BuiltInTransformer builtIn = transformer.builtIn();
            boolean containers = !transformer.pod().containers().isEmpty();
            if (builtIn == null && !containers) {
                problems.add(
                        path + ".containers",
                        "missing; a transformer is containers of your own, or nereid with the storageUri of a jar or a"
                                + " Python file");
            } else if (builtIn != null && containers) {
                problems.add(path, "has nereid and containers; expected exactly one of them");
            }
            if (builtIn != null) {
                transformer(path + ".nereid", builtIn, transformer.storageContainerName());
            }
            component(path, transformer.extension(), transformer.pod(), scaling);
            storage.uris(path + ".storageUris", transformer.storageUris(), transformer.storageContainerName());
        }
        ExplainerSpec explainer = service.explainer();
        if (explainer != null) {
            explainer("spec.explainer", explainer, scaling);
        }
        canaries(service, mode, scaling);
        if (old != null) {
            update(service, InferenceService.read(old));
        }
        return mode;
    }

    /**
     * The deployment mode: that of the status, else of the annotation, else of the configuration. The mode of a running
     * service cannot be changed.
     */
    private DeploymentMode mode(InferenceService service, @Nullable ObjectNode old, InferenceServiceConfig config) {
        String written = service.metadata().annotation(InferenceServiceDefaulter.MODE_ANNOTATION);
        DeploymentMode mode = written == null || written.isEmpty() ? null : DeploymentMode.of(written);
        String path = "metadata.annotations." + InferenceServiceDefaulter.MODE_ANNOTATION;
        if (written != null && !written.isEmpty() && mode == null) {
            problems.add(path, ValidationErrors.unknownValue(written, List.of("Knative", "Standard", "ModelMesh")));
        }
        DeploymentMode running = old == null
                ? null
                : DeploymentMode.of(old.path("status").path("deploymentMode").asText(""));
        if (running != null && mode != null && running != mode) {
            problems.add(
                    path,
                    "the service runs in the mode " + running.text() + ", which cannot be changed to " + mode.text()
                            + "; delete it and create it again");
        }
        if (running != null) {
            return running;
        }
        if (written != null && written.isEmpty()) {
            return DeploymentMode.STANDARD;
        }
        return mode != null ? mode : config.deploy().defaultDeploymentMode();
    }

    private void predictor(String path, PredictorSpec predictor, ScalingValidator scaling) {
        if (predictor.name() != null && !predictor.name().isEmpty()) {
            ObjectMetaValidator.serviceName(path + ".name", predictor.name(), problems);
        }
        List<String> implementations = new ArrayList<>();
        FieldReader fields = new FieldReader(predictor.pod().tree(), path);
        ResourceSchemas.FRAMEWORKS.stream().filter(fields::has).forEach(implementations::add);
        ModelSpec model = predictor.model();
        if (model != null) {
            implementations.add("model");
        }
        PodSpec pod = predictor.pod();
        if (pod.container(InferenceService.MAIN_CONTAINER) != null) {
            implementations.add("containers");
        }
        if (implementations.size() > 1) {
            problems.add(path, "has " + String.join(" and ", implementations) + "; expected exactly one of them");
        } else if (implementations.isEmpty()) {
            problems.add(
                    path,
                    pod.containers().isEmpty()
                            ? "serves nothing; expected model, or one of "
                                    + String.join(", ", ResourceSchemas.FRAMEWORKS) + ", or containers"
                            : "has a transformer-container, but neither a model nor a container that serves one");
        }
        if (model != null) {
            model(path, predictor, model);
        } else {
            Container main = pod.container(InferenceService.MAIN_CONTAINER);
            String protocol = main == null ? null : main.env("PROTOCOL");
            if (protocol != null && !protocol.equals("v1") && !protocol.equals("v2")) {
                problems.add(
                        path + ".containers",
                        "the variable PROTOCOL must be v1 or v2, found \"" + ValidationErrors.clip(protocol) + "\"");
            }
        }
        Container transformer = pod.container(InferenceService.TRANSFORMER_CONTAINER);
        if (transformer != null
                && transformer.env().stream().anyMatch(env -> env.name().equals("STORAGE_URI"))) {
            problems.add(path + ".containers", "the transformer-container must not have the variable STORAGE_URI");
        }
        storage.uris(path + ".storageUris", predictor.storageUris(), predictor.storageContainerName());
        component(path, predictor.extension(), pod, scaling);
    }

    private void model(String path, PredictorSpec predictor, ModelSpec model) {
        String at = path + ".model";
        if (model.formatName().isBlank()) {
            problems.add(at + ".modelFormat.name", "empty; expected a format such as sklearn");
        }
        if (!model.container().name().isEmpty()) {
            problems.add(at + ".name", "cannot be set; clients use the InferenceService's name");
        }
        if (model.storageUri() != null && !predictor.storageUris().isEmpty()) {
            problems.add(path + ".storageUris", "storageUri and storageUris exclude each other");
        }
        storage.source(at, model.storageUri(), model.storage(), predictor.storageContainerName());
        noPythonPath(at, model.container());
        Confidential confidential = model.confidential();
        if (confidential != null && confidential.enabled()) {
            if (model.storageUri() == null || model.storageUri().isEmpty()) {
                problems.add(at + ".confidential", "needs storageUri");
            }
            String id = confidential.resourceId();
            if (id != null && !id.isEmpty() && !RESOURCE_ID.matcher(id).matches()) {
                problems.add(
                        at + ".confidential.resourceId",
                        "expected kbs:///repository/type/tag, found \"" + ValidationErrors.clip(id) + "\"");
            }
        }
    }

    private void transformer(String path, BuiltInTransformer transformer, @Nullable String container) {
        storage.uri(path + ".storageUri", transformer.storageUri(), container);
        String name = transformer.className();
        if (name != null && !CLASS_NAME.matcher(name).matches()) {
            problems.add(
                    path + ".class", "expected the name of a class, found \"" + ValidationErrors.clip(name) + "\"");
        }
        String file = transformer.file();
        if (file == null) {
            return;
        }
        if (!file.endsWith(".jar") && !file.endsWith(".py")) {
            problems.add(path + ".file", "expected a .jar or .py file, found \"" + ValidationErrors.clip(file) + "\"");
        } else if (file.startsWith("/") || List.of(file.split("/")).contains("..")) {
            problems.add(
                    path + ".file",
                    "expected a path below storageUri such as transformer.py, found \"" + ValidationErrors.clip(file)
                            + "\"");
        }
    }

    private void explainer(String path, ExplainerSpec explainer, ScalingValidator scaling) {
        List<String> implementations = new ArrayList<>();
        ArtExplainer art = explainer.art();
        if (art != null) {
            implementations.add("art");
            if (!art.container().name().isEmpty()) {
                problems.add(path + ".art.name", "cannot be set");
            }
            storage.source(path + ".art", art.storageUri(), art.storage(), explainer.storageContainerName());
            noPythonPath(path + ".art", art.container());
        }
        BuiltInExplainer builtIn = explainer.builtIn();
        if (builtIn != null) {
            implementations.add("nereid");
            if (builtIn.method().isBlank()) {
                problems.add(path + ".nereid.method", "empty; expected a method such as shap");
            }
            if (builtIn.storageUri() != null) {
                storage.uri(path + ".nereid.storageUri", builtIn.storageUri(), explainer.storageContainerName());
            }
        }
        if (!explainer.pod().containers().isEmpty()) {
            implementations.add("containers");
        }
        if (implementations.size() != 1) {
            problems.add(
                    path,
                    (implementations.isEmpty() ? "explains nothing" : "has " + String.join(" and ", implementations))
                            + "; expected exactly one of art, nereid and containers");
        }
        storage.uris(path + ".storageUris", explainer.storageUris(), explainer.storageContainerName());
        component(path, explainer.extension(), explainer.pod(), scaling);
    }

    private void component(String path, ComponentExtensionSpec spec, PodSpec pod, ScalingValidator scaling) {
        scaling.component(path, spec);
        pod(path, pod);
        ObjectMetaValidator.labels(path + ".labels", spec.labels(), problems);
        ObjectMetaValidator.annotations(path + ".annotations", spec.annotations(), problems);
        LoggerValidator.annotations(path + ".annotations", spec.annotations(), problems);
        Long percent = spec.canaryTrafficPercent();
        if (percent != null && (percent < 0 || percent > 100)) {
            problems.add(path + ".canaryTrafficPercent", percent + " is not a percentage from 0 to 100");
        }
        if (spec.timeout() != null && spec.timeout() < 0) {
            problems.add(path + ".timeout", spec.timeout() + " is less than 0");
        }
        LoggerSpec logger = spec.logger();
        if (logger != null) {
            LoggerValidator.logger(path + ".logger", logger, problems);
        }
        if (spec.batcher() != null) {
            atLeast(path + ".batcher.maxBatchSize", spec.batcher().maxBatchSize(), 1);
            atLeast(path + ".batcher.maxLatency", spec.batcher().maxLatency(), 0);
            atLeast(path + ".batcher.timeout", spec.batcher().timeout(), 0);
        }
    }

    private void pod(String path, PodSpec pod) {
        Set<String> names = new HashSet<>();
        containers(path + ".containers", pod.containers(), names);
        containers(path + ".initContainers", pod.initContainers(), names);
    }

    private void containers(String path, List<Container> containers, Set<String> names) {
        for (int i = 0; i < containers.size(); i++) {
            Container one = containers.get(i);
            String at = path + "[" + i + "]";
            if (one.name().isEmpty()) {
                problems.add(at + ".name", "missing; it must be given");
            } else if (!names.add(one.name())) {
                problems.add(
                        at + ".name",
                        "\"" + ValidationErrors.clip(one.name()) + "\" is another container's name as well");
            }
            noPythonPath(at, one);
        }
    }

    private void noPythonPath(String path, Container container) {
        noPythonPath(path, container, problems);
    }

    static void noPythonPath(String path, Container container, ValidationErrors problems) {
        for (int i = 0; i < container.env().size(); i++) {
            if (container.env().get(i).name().equals("PYTHONPATH")) {
                problems.add(path + ".env[" + i + "]", "the variable PYTHONPATH must not be set");
            }
        }
    }

    private void canaries(InferenceService service, DeploymentMode mode, ScalingValidator scaling) {
        if (service.canary().isEmpty()) {
            return;
        }
        if (mode != DeploymentMode.STANDARD) {
            problems.add(
                    "spec.canary",
                    "only for the deployment mode Standard; annotate the service with "
                            + InferenceServiceDefaulter.MODE_ANNOTATION
                            + ": Standard, or give the predictor a canaryTrafficPercent");
        }
        Container custom = service.predictor().pod().container(InferenceService.MAIN_CONTAINER);
        if (service.predictor().model() == null && (custom == null || custom.env("STORAGE_URI") == null)) {
            problems.add(
                    "spec.canary",
                    "requires a stable predictor with a model (multi-model serving is not supported with canary); write"
                            + " spec.predictor.model, or give the container the variable STORAGE_URI");
        }
        Set<String> names = new HashSet<>();
        names.add(Objects.requireNonNullElse(service.predictor().name(), ""));
        long total = 0;
        for (int i = 0; i < service.canary().size(); i++) {
            CanarySpec canary = service.canary().get(i);
            String path = "spec.canary[" + i + "]";
            PredictorSpec predictor = canary.predictor();
            if (predictor.name() == null || predictor.name().isEmpty()) {
                problems.add(path + ".predictor.name", "missing; it must be given");
            } else if (!names.add(predictor.name())) {
                problems.add(
                        path + ".predictor.name",
                        "\"" + ValidationErrors.clip(predictor.name()) + "\" is another predictor's name as well");
            }
            if (canary.trafficPercent() < 0 || canary.trafficPercent() > 100) {
                problems.add(path + ".trafficPercent", canary.trafficPercent() + " is not a percentage from 0 to 100");
            }
            total += canary.trafficPercent();
            FieldReader fields = new FieldReader(predictor.pod().tree(), path + ".predictor");
            for (String field : List.of("workerSpec", "maxReplicas", "scaleTarget", "scaleMetric", "autoScaling")) {
                if (fields.has(field)) {
                    problems.add(fields.at(field), "a canary cannot have it; the predictor beside it decides");
                }
            }
            Integer min = predictor.extension().minReplicas();
            int stable =
                    Objects.requireNonNullElse(service.predictor().extension().minReplicas(), 1);
            if (min != null && min > stable) {
                problems.add(
                        path + ".predictor.minReplicas",
                        min + " is more than the minReplicas of the predictor, " + stable);
            }
            predictor(path + ".predictor", predictor, scaling);
        }
        if (total > 100) {
            problems.add("spec.canary", "the trafficPercent add up to " + total + ", more than 100");
        }
    }

    private void update(InferenceService service, InferenceService old) {
        if (service.metadata().deletionTimestamp() != null) {
            return;
        }
        String before = Objects.requireNonNullElse(old.predictor().name(), "");
        String after = Objects.requireNonNullElse(service.predictor().name(), "");
        if (!before.equals(after) && sources(old.predictor()).equals(sources(service.predictor()))) {
            problems.add(
                    "spec.predictor.name",
                    "changes from \"" + ValidationErrors.clip(before) + "\" to \"" + ValidationErrors.clip(after)
                            + "\" while storageUri stays; a new name goes with a new model, as when a canary is"
                            + " promoted");
        }
    }

    private static List<Object> sources(PredictorSpec predictor) {
        List<Object> all = new ArrayList<>(predictor.storageUris());
        ModelSpec model = predictor.model();
        if (model != null) {
            all.add(Objects.requireNonNullElse(model.storageUri(), ""));
            if (model.storage() != null) {
                all.add(model.storage());
            }
        }
        return all;
    }

    private void atLeast(String path, @Nullable Integer value, int least) {
        if (value != null && value < least) {
            problems.add(path, value + " is less than " + least);
        }
    }
}
