// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.BuiltInTransformer;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.TransformerSpec;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Form;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Plans the components of a service: predictor, transformer and explainer. Confined to one call of the planner. */
public final class ComponentPlanner {
    static final String MAIN = InferenceService.MAIN_CONTAINER;
    static final String TRANSFORMER = InferenceService.TRANSFORMER_CONTAINER;

    private final PlanningContext context;

    public ComponentPlanner(PlanningContext context) {
        this.context = context;
    }

    /** The parts of a component's workload that depend on its kind; labels and annotations are those of the runtime. */
    record Parts(Form form, String modelName, Map<String, String> labels, Map<String, String> annotations) {
        Parts(Form form, String modelName) {
            this(form, modelName, Map.of(), Map.of());
        }
    }

    public ComponentPlan predictor(PredictorSpec spec, String where) {
        String name = spec.name();
        String base = context.name() + (name == null || name.isEmpty() ? "" : "-" + name) + "-predictor";
        RuntimeSelection selection = spec.model() == null
                ? null
                : RuntimeSelection.of(spec.model(), spec.workerSpec() != null, context.catalog);
        if (selection != null && selection.chosen() == null) {
            Problem problem = new Problem(Objects.requireNonNull(selection.reason()), selection.message());
            return new ComponentPlan(Component.PREDICTOR, base, null, problem, spec.extension(), selection);
        }
        try {
            UnsupportedPodFields.advise(context, spec.pod().tree(), where);
            PredictorPlanner predictors = new PredictorPlanner(context, this, spec, where);
            Parts parts = selection == null ? predictors.custom() : predictors.model(selection);
            return plan(Component.PREDICTOR, base, parts, spec.extension(), selection, where);
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidPredictorSpec", e.getMessage());
            return new ComponentPlan(Component.PREDICTOR, base, null, problem, spec.extension(), selection);
        }
    }

    /**
     * Plans the transformer. When the predictor's model runs in the engine, a transformer container in the predictor's
     * pod becomes a component of its own, because there is no process beside which it could run. Null for none.
     */
    public @Nullable ComponentPlan transformer(ComponentPlan predictor) {
        TransformerSpec spec = context.service.transformer();
        PredictorSpec host = context.service.predictor();
        boolean engine = predictor.template() != null && predictor.template().form() instanceof Workload.Model;
        ObjectNode collocated = engine ? collocated(host, predictor.selection()) : null;
        if (spec == null && collocated == null) {
            return null;
        }
        String base = context.name() + "-transformer";
        String where = spec == null ? "spec.predictor" : "spec.transformer";
        ComponentExtensionSpec extension = spec == null ? besideModel(host.extension()) : spec.extension();
        try {
            if (spec != null && collocated != null) {
                throw ServingException.invalidArgument("spec.transformer and a " + TRANSFORMER
                        + " in spec.predictor are both set; leave one of them out");
            }
            List<Container> containers;
            List<Artifact> artifacts;
            if (spec != null && spec.builtIn() != null) {
                UnsupportedPodFields.advise(context, spec.pod().tree(), where);
                return plan(
                        Component.TRANSFORMER, base, steps(spec, spec.builtIn(), predictor), extension, null, where);
            }
            if (spec == null) {
                containers = List.of(
                        here(filled(Container.read(Objects.requireNonNull(collocated)), predictor.selection())));
                artifacts = StorageArtifacts.artifacts(
                        context, List.of(), containers.get(0), host.pod(), host.storageContainerName());
            } else {
                UnsupportedPodFields.advise(context, spec.pod().tree(), where);
                containers = mainFirst(spec.pod().containers());
                artifacts = StorageArtifacts.artifacts(
                        context,
                        spec.storageUris(),
                        containers.isEmpty() ? null : containers.get(0),
                        spec.pod(),
                        spec.storageContainerName());
            }
            Map<String, String> more = new LinkedHashMap<>();
            more.put("model_name", context.name());
            Long concurrency = extension.containerConcurrency();
            if (concurrency != null && concurrency > 0) {
                more.put("workers", concurrency.toString());
            }
            Form form = new Workload.Process(artifacts, processes(containers, where, more, "transformer"));
            return plan(Component.TRANSFORMER, base, new Parts(form, modelName(containers)), extension, null, where);
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidTransformerSpec", e.getMessage());
            return new ComponentPlan(Component.TRANSFORMER, base, null, problem, extension, null);
        }
    }

    /** A transformer that this server runs, under the name that clients use for the model. */
    private Parts steps(TransformerSpec spec, BuiltInTransformer own, ComponentPlan predictor) {
        List<Artifact> artifacts = StorageArtifacts.artifacts(
                context, own.storageUri(), null, spec.storageUris(), null, spec.pod(), spec.storageContainerName());
        Form form = new Workload.Transformer(own.className(), own.file(), own.config(), artifacts);
        Workload model = predictor.template();
        return new Parts(form, model == null ? context.name() : model.modelName());
    }

    public @Nullable ComponentPlan explainer() {
        InferenceService.ExplainerSpec spec = context.service.explainer();
        if (spec == null) {
            return null;
        }
        String base = context.name() + "-explainer";
        String where = "spec.explainer";
        try {
            UnsupportedPodFields.advise(context, spec.pod().tree(), where);
            Parts parts = new Parts(ExplainerPlanner.form(context, spec, this), context.name());
            return plan(Component.EXPLAINER, base, parts, spec.extension(), null, where);
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidExplainerSpec", e.getMessage());
            return new ComponentPlan(Component.EXPLAINER, base, null, problem, spec.extension(), null);
        }
    }

    private ComponentPlan plan(
            Component component,
            String base,
            Parts parts,
            ComponentExtensionSpec spec,
            @Nullable RuntimeSelection selection,
            String where) {
        if (spec.deploymentStrategy() != null) {
            context.advice.add(
                    where + ".deploymentStrategy has no effect on one machine: a new revision receives traffic when it "
                            + "is ready");
        }
        Long concurrency = spec.containerConcurrency();
        Workload template = new Workload(
                context.namespace(),
                context.name(),
                component,
                "",
                parts.modelName(),
                parts.form(),
                ScalingPlanner.of(context, spec, where),
                concurrency == null ? 0 : (int) Math.min(Integer.MAX_VALUE, concurrency),
                timeout(spec),
                logger(spec),
                batcher(spec, where),
                context.labels(parts.labels(), spec.labels(), component.text()),
                context.annotations(parts.annotations(), spec.annotations()));
        return new ComponentPlan(component, base, template, null, spec, selection);
    }

    private Duration timeout(ComponentExtensionSpec spec) {
        if (spec.timeout() != null && spec.timeout() > 0) {
            return Duration.ofSeconds(Math.min(spec.timeout(), 86_400));
        }
        if (context.knative()) {
            return Duration.ofMinutes(5);
        }
        return context.config.ingress().disableHttpRouteTimeout() ? Duration.ofDays(1) : Duration.ofMinutes(1);
    }

    private Workload.@Nullable Logger logger(ComponentExtensionSpec spec) {
        InferenceService.LoggerSpec logger = spec.logger();
        if (logger == null) {
            return null;
        }
        ObjectNode settings = logger.tree().deepCopy();
        settings.remove(List.of("url", "mode"));
        String url = logger.url() == null || logger.url().isEmpty()
                ? context.config.logger().defaultUrl()
                : logger.url();
        return new Workload.Logger(url, logger.mode(), settings);
    }

    private Workload.@Nullable Batcher batcher(ComponentExtensionSpec spec, String where) {
        InferenceService.BatcherSpec batcher = spec.batcher();
        if (batcher == null) {
            return null;
        }
        if (batcher.timeout() != null) {
            context.advice.add(where + ".batcher.timeout has no effect, as in KServe; set the component's timeout");
        }
        Integer size = batcher.maxBatchSize();
        Integer latency = batcher.maxLatency();
        return new Workload.Batcher(
                size == null || size <= 0 ? context.config.batcher().maxBatchSize() : size,
                Duration.ofMillis(
                        latency == null || latency <= 0
                                ? context.config.batcher().maxLatencyMillis()
                                : latency));
    }

    /** The transformer's container in the predictor's pod: the runtime's, merged with the service's; null for none. */
    static @Nullable ObjectNode collocated(PredictorSpec spec, @Nullable RuntimeSelection selection) {
        Container own = spec.pod().container(TRANSFORMER);
        Container base = selection == null || selection.chosen() == null
                ? null
                : selection.chosen().pod().container(TRANSFORMER);
        if (base == null) {
            return own == null ? null : own.tree();
        }
        return own == null ? base.tree() : StrategicMerge.containers(base.tree(), own.tree());
    }

    /** Fills in the templates of a transformer's container when the predictor has a runtime. */
    Container filled(Container container, @Nullable RuntimeSelection selection) {
        return selection == null
                ? container
                : Container.read((ObjectNode) context.templates(Map.of()).fill(container.tree(), TRANSFORMER));
    }

    /**
     * Removes the predictor's address from a transformer's arguments: in the pod it refers to a container that does not
     * run, because the model is in the engine. The infrastructure passes the real address when it starts the
     * transformer.
     */
    private Container here(Container container) {
        List<String> rest = CommandLineArguments.without(
                container.args(), Set.of("predictor_host", "predictor_port", "predictor-host"));
        if (rest.size() == container.args().size()) {
            return container;
        }
        ObjectNode tree = container.tree().deepCopy();
        ArrayNode args = tree.putArray("args");
        rest.forEach(args::add);
        context.advice.add("the " + TRANSFORMER
                + "'s --predictor_host is replaced by the address at which the engine serves the predictor");
        return Container.read(tree);
    }

    /** The predictor's fields for its collocated transformer: all except those that the predictor applies itself. */
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

    /** The containers with the main container first. */
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

    /**
     * All containers as processes. The first one gets those of the arguments in {@code more} that it does not set
     * itself.
     */
    List<ProcessContainer> processes(
            List<Container> containers, String where, Map<String, String> more, String component) {
        if (containers.isEmpty()) {
            throw ServingException.invalidArgument(where + ".containers: expected at least one");
        }
        ContainerPlanner containerPlanner = new ContainerPlanner(context, component);
        List<ProcessContainer> all = new ArrayList<>();
        for (Container one : containers) {
            String place = where + ".containers[" + one.name() + "]";
            containerPlanner.advise(one.tree(), place, true);
            all.add(containerPlanner.process(one, place, all.isEmpty() ? more : Map.of()));
        }
        return List.copyOf(all);
    }

    /** The model name that the container's server is configured with; the service's name by default. */
    String modelName(List<Container> containers) {
        Container first = containers.get(0);
        String server = first.env("MLSERVER_MODEL_NAME");
        if (server != null && !server.isEmpty()) {
            return server;
        }
        List<String> all = new ArrayList<>(first.command());
        all.addAll(first.args());
        String named = CommandLineArguments.of(all).get("model_name");
        return named == null || named.isEmpty() || named.contains("$(") ? context.name() : named;
    }
}
