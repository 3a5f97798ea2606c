// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.AccessAnnotation;
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
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Problem;
import io.nereid.control.core.component.ComponentPlanner;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.component.ScalingPlanner;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.component.WorkloadPlan;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The second stage of planning on one machine: makes workloads that run in the engine or as processes of a service's
 * components. Confined to one call of the planner.
 */
public final class LocalForms implements WorkloadForms {
    static final String MAIN = InferenceService.MAIN_CONTAINER;
    static final String TRANSFORMER = InferenceService.TRANSFORMER_CONTAINER;

    private final PlanningContext context;

    public LocalForms(PlanningContext context) {
        this.context = context;
    }

    @Override
    public Site site() {
        return Site.ONE_MACHINE;
    }

    /** The parts of a component's workload that depend on its kind; labels and annotations are those of the runtime. */
    record Parts(Form form, String modelName, Map<String, String> labels, Map<String, String> annotations) {
        Parts(Form form, String modelName) {
            this(form, modelName, Map.of(), Map.of());
        }
    }

    @Override
    public WorkloadPlan predictor(ComponentPlan plan, PredictorSpec spec) {
        RuntimeSelection selection = plan.selection();
        if (selection != null && selection.chosen() == null) {
            return refused(plan, Objects.requireNonNull(plan.problem()));
        }
        if (AccessAnnotation.isSet(context.service.metadata())) {
            context.advice.add(AccessAnnotation.ON_ONE_MACHINE);
        }
        ModelAdvice.annotations(context);
        UnsupportedPodFields.advise(context, plan.tree(), plan.where());
        PredictorForms predictors = new PredictorForms(context, this, plan, spec);
        if (selection != null) {
            try {
                predictors.rejectUnsupported();
            } catch (ServingException e) {
                return refused(plan, new Problem("InvalidPredictorSpec", e.getMessage()));
            }
        }
        return tried(plan, "InvalidPredictorSpec", () -> {
            Parts parts = selection == null ? predictors.custom() : predictors.model(selection);
            return plan(Component.PREDICTOR, plan.name(), parts, plan.extension(), selection, plan.where());
        });
    }

    /**
     * {@inheritDoc}
     *
     * <p>When the predictor's model runs in the engine, a transformer container in the predictor's pod becomes a component
     * of its own, because there is no process beside which it could run.
     */
    @Override
    public @Nullable WorkloadPlan transformer(
            @Nullable ComponentPlan plan, ComponentPlan host, WorkloadPlan predictor) {
        boolean engine = predictor.template() != null && predictor.template().form() instanceof Workload.Model;
        Container collocated = engine ? collocated(host) : null;
        if (plan == null) {
            return collocated == null ? null : besideModel(host, collocated);
        }
        TransformerSpec spec = Objects.requireNonNull(context.service.transformer());
        UnsupportedPodFields.advise(context, plan.tree(), plan.where());
        return tried(plan, "InvalidTransformerSpec", () -> {
            if (collocated != null) {
                throw ServingException.invalidArgument("spec.transformer and a " + TRANSFORMER
                        + " in spec.predictor are both set; leave one of them out");
            }
            Parts parts;
            if (spec.builtIn() != null) {
                parts = steps(plan, spec.builtIn(), predictor);
            } else {
                List<Container> containers = mainFirst(plan.pod().containers());
                parts = new Parts(
                        new Workload.Process(
                                plan.artifacts(), processes(containers, plan.where(), plan.arguments(), "transformer")),
                        modelName(containers));
            }
            return plan(Component.TRANSFORMER, plan.name(), parts, plan.extension(), null, plan.where());
        });
    }

    /** The transformer's container in the predictor's pod, runtime and service merged; null for none. */
    private @Nullable Container collocated(ComponentPlan host) {
        return host.container(TRANSFORMER);
    }

    private WorkloadPlan besideModel(ComponentPlan host, Container collocated) {
        ComponentExtensionSpec extension = besideModel(host.extension());
        String name = context.name() + "-transformer";
        PredictorSpec spec = context.service.predictor();
        try {
            List<Container> containers = List.of(here(collocated));
            List<Artifact> artifacts = new ComponentPlanner(context).containerArtifacts(containers.get(0), spec);
            Form form = new Workload.Process(
                    artifacts,
                    processes(
                            containers,
                            host.where(),
                            new ComponentPlanner(context).transformerArguments(extension),
                            "transformer"));
            return plan(
                    Component.TRANSFORMER, name, new Parts(form, modelName(containers)), extension, null, host.where());
        } catch (ServingException e) {
            Problem problem = new Problem("InvalidTransformerSpec", e.getMessage());
            return new WorkloadPlan(Component.TRANSFORMER, name, null, problem, extension, null);
        }
    }

    /** A transformer that this server runs, under the name that clients use for the model. */
    private Parts steps(ComponentPlan plan, BuiltInTransformer own, WorkloadPlan predictor) {
        Form form = new Workload.Transformer(own.className(), own.file(), own.config(), plan.artifacts());
        Workload model = predictor.template();
        return new Parts(form, model == null ? context.name() : model.modelName());
    }

    @Override
    public @Nullable WorkloadPlan explainer(@Nullable ComponentPlan plan) {
        if (plan == null) {
            return null;
        }
        UnsupportedPodFields.advise(context, plan.tree(), plan.where());
        return tried(plan, "InvalidExplainerSpec", () -> {
            Form form = ExplainerForms.form(plan, Objects.requireNonNull(context.service.explainer()), this);
            return plan(
                    Component.EXPLAINER,
                    plan.name(),
                    new Parts(form, context.name()),
                    plan.extension(),
                    null,
                    plan.where());
        });
    }

    private static WorkloadPlan tried(ComponentPlan plan, String reason, Supplier<WorkloadPlan> form) {
        if (plan.problem() != null) {
            return refused(plan, plan.problem());
        }
        try {
            return form.get();
        } catch (ServingException e) {
            return refused(plan, new Problem(reason, e.getMessage()));
        }
    }

    private static WorkloadPlan refused(ComponentPlan plan, Problem problem) {
        return new WorkloadPlan(plan.component(), plan.name(), null, problem, plan.extension(), plan.selection());
    }

    private WorkloadPlan plan(
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
                ScalingPlanner.of(context, spec, where, site()),
                concurrency == null ? 0 : (int) Math.min(Integer.MAX_VALUE, concurrency),
                timeout(spec),
                logger(spec),
                batcher(spec, where),
                context.labels(parts.labels(), spec.labels(), component.text()),
                context.annotations(parts.annotations(), spec.annotations()));
        return new WorkloadPlan(component, base, template, null, spec, selection);
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
        ProcessForms containerPlanner = new ProcessForms(context, component);
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
