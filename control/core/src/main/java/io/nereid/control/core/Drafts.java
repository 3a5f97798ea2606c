// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.BuiltInTransformer;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.TransformerSpec;
import io.nereid.control.core.Draft.Problem;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Form;
import io.nereid.control.core.Workload.ProcessContainer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Turns a service's components into what they run. Confined to one call of the planner. */
final class Drafts {
    static final String MAIN = InferenceService.MAIN_CONTAINER;
    static final String TRANSFORMER = InferenceService.TRANSFORMER_CONTAINER;

    private final Scene scene;

    Drafts(Scene scene) {
        this.scene = scene;
    }

    /** What a component is made of. */
    record Parts(Form form, String modelName, Map<String, String> labels, Map<String, String> annotations) {
        Parts(Form form, String modelName) {
            this(form, modelName, Map.of(), Map.of());
        }
    }

    Draft predictor(PredictorSpec spec, String where) {
        String name = spec.name();
        String base = scene.name() + (name == null || name.isEmpty() ? "" : "-" + name) + "-predictor";
        RuntimeSelection selection = spec.model() == null
                ? null
                : RuntimeSelection.of(spec.model(), spec.workerSpec() != null, scene.catalog);
        if (selection != null && selection.chosen() == null) {
            Problem problem = new Problem(Objects.requireNonNull(selection.reason()), selection.message());
            return new Draft(Component.PREDICTOR, base, null, problem, spec.extension(), selection);
        }
        try {
            Pods.advise(scene, spec.pod().tree(), where);
            Predictors predictors = new Predictors(scene, this, spec, where);
            Parts parts = selection == null ? predictors.custom() : predictors.model(selection);
            return drafted(Component.PREDICTOR, base, parts, spec.extension(), selection, where);
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidPredictorSpec", e.getMessage());
            return new Draft(Component.PREDICTOR, base, null, problem, spec.extension(), selection);
        }
    }

    /** The transformer, or the one in the predictor's pod when the predictor is in the engine; null for none. */
    @Nullable Draft transformer(Draft predictor) {
        TransformerSpec spec = scene.service.transformer();
        PredictorSpec host = scene.service.predictor();
        boolean engine = predictor.template() != null && predictor.template().form() instanceof Workload.Model;
        ObjectNode collocated = engine ? collocated(host, predictor.selection()) : null;
        if (spec == null && collocated == null) {
            return null;
        }
        String base = scene.name() + "-transformer";
        String where = spec == null ? "spec.predictor" : "spec.transformer";
        ComponentExtensionSpec extension = spec == null ? besideModel(host.extension()) : spec.extension();
        try {
            if (spec != null && collocated != null) {
                throw ServingException.invalidArgument("spec.transformer and a " + TRANSFORMER
                        + " in spec.predictor are both there; leave one of them out");
            }
            List<Container> containers;
            List<Artifact> artifacts;
            if (spec != null && spec.builtIn() != null) {
                Pods.advise(scene, spec.pod().tree(), where);
                return drafted(
                        Component.TRANSFORMER, base, steps(spec, spec.builtIn(), predictor), extension, null, where);
            }
            if (spec == null) {
                containers = List.of(
                        here(filled(Container.read(Objects.requireNonNull(collocated)), predictor.selection())));
                artifacts = Storages.artifacts(
                        scene, List.of(), containers.get(0), host.pod(), host.storageContainerName());
            } else {
                Pods.advise(scene, spec.pod().tree(), where);
                containers = mainFirst(spec.pod().containers());
                artifacts = Storages.artifacts(
                        scene,
                        spec.storageUris(),
                        containers.isEmpty() ? null : containers.get(0),
                        spec.pod(),
                        spec.storageContainerName());
            }
            Map<String, String> more = new LinkedHashMap<>();
            more.put("model_name", scene.name());
            Long concurrency = extension.containerConcurrency();
            if (concurrency != null && concurrency > 0) {
                more.put("workers", concurrency.toString());
            }
            Form form = new Workload.Process(artifacts, processes(containers, where, more, "transformer"));
            return drafted(Component.TRANSFORMER, base, new Parts(form, modelName(containers)), extension, null, where);
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidTransformerSpec", e.getMessage());
            return new Draft(Component.TRANSFORMER, base, null, problem, extension, null);
        }
    }

    /** Steps that this server runs, under the name that clients use for the model. */
    private Parts steps(TransformerSpec spec, BuiltInTransformer own, Draft predictor) {
        List<Artifact> artifacts = Storages.artifacts(
                scene, own.storageUri(), null, spec.storageUris(), null, spec.pod(), spec.storageContainerName());
        Form form = new Workload.Transformer(own.className(), own.file(), own.config(), artifacts);
        Workload model = predictor.template();
        return new Parts(form, model == null ? scene.name() : model.modelName());
    }

    @Nullable Draft explainer() {
        InferenceService.ExplainerSpec spec = scene.service.explainer();
        if (spec == null) {
            return null;
        }
        String base = scene.name() + "-explainer";
        String where = "spec.explainer";
        try {
            Pods.advise(scene, spec.pod().tree(), where);
            Parts parts = new Parts(Explainers.form(scene, spec, this), scene.name());
            return drafted(Component.EXPLAINER, base, parts, spec.extension(), null, where);
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidExplainerSpec", e.getMessage());
            return new Draft(Component.EXPLAINER, base, null, problem, spec.extension(), null);
        }
    }

    private Draft drafted(
            Component component,
            String base,
            Parts parts,
            ComponentExtensionSpec spec,
            @Nullable RuntimeSelection selection,
            String where) {
        if (spec.deploymentStrategy() != null) {
            scene.advice.add(
                    where + ".deploymentStrategy has no effect on one machine: a new revision takes over when it is "
                            + "ready");
        }
        Long concurrency = spec.containerConcurrency();
        Workload template = new Workload(
                scene.namespace(),
                scene.name(),
                component,
                "",
                parts.modelName(),
                parts.form(),
                Scales.of(scene, spec, where),
                concurrency == null ? 0 : (int) Math.min(Integer.MAX_VALUE, concurrency),
                timeout(spec),
                logger(spec),
                batcher(spec, where),
                scene.labels(parts.labels(), spec.labels(), part(component)),
                scene.annotations(parts.annotations(), spec.annotations()));
        return new Draft(component, base, template, null, spec, selection);
    }

    /** The component's name in statuses and labels. */
    static String part(Component component) {
        return component.name().toLowerCase(Locale.ROOT);
    }

    private Duration timeout(ComponentExtensionSpec spec) {
        if (spec.timeout() != null && spec.timeout() > 0) {
            return Duration.ofSeconds(Math.min(spec.timeout(), 86_400));
        }
        if (scene.knative()) {
            return Duration.ofMinutes(5);
        }
        return scene.config.ingress().disableHttpRouteTimeout() ? Duration.ofDays(1) : Duration.ofMinutes(1);
    }

    private Workload.@Nullable Logger logger(ComponentExtensionSpec spec) {
        InferenceService.LoggerSpec logger = spec.logger();
        if (logger == null) {
            return null;
        }
        ObjectNode settings = logger.tree().deepCopy();
        settings.remove(List.of("url", "mode"));
        String url = logger.url() == null || logger.url().isEmpty()
                ? scene.config.logger().defaultUrl()
                : logger.url();
        return new Workload.Logger(url, logger.mode(), settings);
    }

    private Workload.@Nullable Batcher batcher(ComponentExtensionSpec spec, String where) {
        InferenceService.BatcherSpec batcher = spec.batcher();
        if (batcher == null) {
            return null;
        }
        if (batcher.timeout() != null) {
            scene.advice.add(where + ".batcher.timeout has no effect, in KServe neither; set the component's timeout");
        }
        Integer size = batcher.maxBatchSize();
        Integer latency = batcher.maxLatency();
        return new Workload.Batcher(
                size == null || size <= 0 ? scene.config.batcher().maxBatchSize() : size,
                Duration.ofMillis(
                        latency == null || latency <= 0 ? scene.config.batcher().maxLatencyMillis() : latency));
    }

    /** The transformer's container in the predictor's pod: the runtime's, and the service's over it. */
    static @Nullable ObjectNode collocated(PredictorSpec spec, @Nullable RuntimeSelection selection) {
        Container own = spec.pod().container(TRANSFORMER);
        Container base = selection == null || selection.chosen() == null
                ? null
                : selection.chosen().pod().container(TRANSFORMER);
        if (base == null) {
            return own == null ? null : own.tree();
        }
        return own == null ? base.tree() : Merge.containers(base.tree(), own.tree());
    }

    /** Fills in a transformer's container of a pod with a runtime. */
    Container filled(Container container, @Nullable RuntimeSelection selection) {
        return selection == null
                ? container
                : Container.read((ObjectNode) scene.templates(Map.of()).fill(container.tree(), TRANSFORMER));
    }

    /** A transformer whose predictor is in the engine: where the predictor is, is told to it when it starts. */
    private Container here(Container container) {
        List<String> rest =
                Arguments.without(container.args(), Set.of("predictor_host", "predictor_port", "predictor-host"));
        if (rest.size() == container.args().size()) {
            return container;
        }
        ObjectNode tree = container.tree().deepCopy();
        ArrayNode args = tree.putArray("args");
        rest.forEach(args::add);
        scene.advice.add("the " + TRANSFORMER
                + "'s --predictor_host is replaced by the address at which the engine has the " + "predictor");
        return Container.read(tree);
    }

    /** What the fields of a predictor mean for the transformer beside it: all but what the predictor does itself. */
    private static ComponentExtensionSpec besideModel(ComponentExtensionSpec spec) {
        return new ComponentExtensionSpec(
                spec.minReplicas(),
                spec.maxReplicas(),
                spec.scaleTarget(),
                spec.scaleMetric(),
                spec.scaleMetricType(),
                spec.autoScaling(),
                spec.containerConcurrency(),
                spec.timeout(),
                null,
                null,
                null,
                spec.labels(),
                spec.annotations(),
                null);
    }

    /** The container that answers comes first. */
    static List<Container> mainFirst(List<Container> containers) {
        return first(containers, MAIN);
    }

    static List<Container> first(List<Container> containers, String name) {
        List<Container> all = new ArrayList<>(containers);
        for (Container one : containers) {
            if (one.name().equals(name)) {
                all.remove(one);
                all.add(0, one);
                break;
            }
        }
        return all;
    }

    /** All containers as processes; the first one gets the arguments that are missing. */
    List<ProcessContainer> processes(
            List<Container> containers, String where, Map<String, String> more, String component) {
        if (containers.isEmpty()) {
            throw ServingException.invalidArgument(where + ".containers: expected at least one");
        }
        Containers maker = new Containers(scene, component);
        List<ProcessContainer> all = new ArrayList<>();
        for (Container one : containers) {
            String place = where + ".containers[" + one.name() + "]";
            maker.advise(one.tree(), place, true);
            all.add(maker.process(one, place, all.isEmpty() ? more : Map.of()));
        }
        return List.copyOf(all);
    }

    String modelName(List<Container> containers) {
        Container first = containers.get(0);
        String server = first.env("MLSERVER_MODEL_NAME");
        if (server != null && !server.isEmpty()) {
            return server;
        }
        List<String> all = new ArrayList<>(first.command());
        all.addAll(first.args());
        String named = Arguments.of(all).get("model_name");
        return named == null || named.isEmpty() || named.contains("$(") ? scene.name() : named;
    }
}
