// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.runtime;

import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.ModelSpec;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ServingRuntime.SupportedFormat;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The selection of a runtime for a model by KServe's rules, with the reason for and against each runtime. A pure
 * function of service and catalog. Immutable.
 *
 * <pre>{@code
 * RuntimeSelection selection = RuntimeSelection.of(service, catalog);
 * if (selection != null && selection.chosen() == null) {
 *     System.err.println(selection.reason() + ": " + selection.message());
 * }
 * }</pre>
 *
 * @param chosen the selected runtime; null when none fits
 * @param protocol the protocol of the service: its own, else the lowest of the runtime's; null when no runtime is
 *     selected
 * @param reason the value of {@code lastFailureInfo.reason} when no runtime is selected; null otherwise
 * @param message an explanation for users; with a remedy when no runtime is selected
 * @param considered all runtimes, the best first
 */
public record RuntimeSelection(
        @Nullable ServingRuntime chosen,
        @Nullable String protocol,
        @Nullable String reason,
        String message,
        List<Considered> considered) {
    private static final List<String> PROTOCOLS = List.of("v1", "v2", "grpc-v1", "grpc-v2");

    /**
     * A runtime that was considered.
     *
     * @param runtime its name
     * @param cluster whether it is a ClusterServingRuntime
     * @param fits whether it could serve the model
     * @param chosen whether it was selected
     * @param why the reason as a sentence
     */
    public record Considered(String runtime, boolean cluster, boolean fits, boolean chosen, String why) {}

    /**
     * Selects the runtime of the service's predictor; null when it has custom containers instead of a model.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the service chooses an unknown engine
     */
    public static @Nullable RuntimeSelection of(InferenceService service, RuntimeCatalog catalog) {
        ModelSpec model = service.predictor().model();
        return model == null
                ? null
                : of(model, service.predictor().workerSpec() != null, catalog, catalog.engine(service.metadata()));
    }

    /**
     * Selects the runtime of a model.
     *
     * @param workers whether the model has workers on further machines
     * @param engine the engine for services that name no runtime: {@code KSERVE} excludes the runtimes of Nereid's
     *     engine, {@code NEREID} prefers them to all others; null for no difference
     */
    public static RuntimeSelection of(
            ModelSpec model, boolean workers, RuntimeCatalog catalog, @Nullable ServingEngine engine) {
        String runtime = model.runtime();
        return runtime == null || runtime.isEmpty()
                ? automatic(model, workers, catalog, engine)
                : explicit(runtime, model, catalog);
    }

    private static RuntimeSelection explicit(String name, ModelSpec model, RuntimeCatalog catalog) {
        Optional<ServingRuntime> found = catalog.namespaceRuntimes().stream()
                .filter(one -> one.name().equals(name))
                .findFirst()
                .or(() -> catalog.clusterRuntimes().stream()
                        .filter(one -> one.name().equals(name))
                        .findFirst());
        List<Considered> considered = new ArrayList<>();
        String reason = null;
        String message;
        if (found.isEmpty()) {
            reason = "RuntimeNotRecognized";
            message = "Waiting for runtime " + name
                    + " to become available; there is no ServingRuntime in the namespace and "
                    + "no ClusterServingRuntime of this name. Apply it, or leave model.runtime out to have one chosen";
        } else {
            ServingRuntime runtime = found.get();
            String protocol = model.protocolVersion();
            if (runtime.disabled()) {
                reason = "RuntimeDisabled";
                message = "Specified runtime " + name
                        + " is disabled. Set spec.disabled of the runtime to false, or name another";
            } else if (protocol != null && !speaks(runtime, protocol)) {
                reason = "NoSupportingRuntime";
                message = "Specified runtime " + name + " does not support specified protocol version " + protocol
                        + "; it supports " + String.join(", ", runtime.protocolVersions());
            } else if (!supports(runtime, model, false)) {
                reason = "NoSupportingRuntime";
                message = "Specified runtime " + name + " does not support specified framework/version " + format(model)
                        + "; it supports " + formats(runtime);
            } else {
                message = "it is named in model.runtime";
            }
            considered.add(new Considered(name, runtime.cluster(), reason == null, reason == null, message));
        }
        List<ServingRuntime> all = new ArrayList<>(ordered(catalog.namespaceRuntimes(), model));
        all.addAll(ordered(catalog.clusterRuntimes(), model));
        for (ServingRuntime one : all) {
            if (found.isEmpty() || one != found.get()) {
                considered.add(new Considered(
                        one.name(), one.cluster(), false, false, "the service names the runtime " + name + " instead"));
            }
        }
        if (reason != null) {
            return new RuntimeSelection(null, null, reason, message, List.copyOf(considered));
        }
        ServingRuntime chosen = found.orElseThrow();
        return new RuntimeSelection(chosen, protocolOf(model, chosen), null, message, List.copyOf(considered));
    }

    private static RuntimeSelection automatic(
            ModelSpec model, boolean workers, RuntimeCatalog catalog, @Nullable ServingEngine engine) {
        String protocol = Objects.requireNonNullElse(model.protocolVersion(), "v1");
        List<ServingRuntime> all = new ArrayList<>(ordered(catalog.namespaceRuntimes(), model));
        all.addAll(ordered(catalog.clusterRuntimes(), model));
        if (engine == ServingEngine.NEREID) {
            all.sort(Comparator.comparing(one -> one.engine() != ServingEngine.NEREID)); // stable
        }
        ServingRuntime chosen = null;
        List<Considered> fitting = new ArrayList<>();
        List<Considered> others = new ArrayList<>();
        for (ServingRuntime one : all) {
            String not = whyNot(one, model, protocol, workers, engine);
            if (not != null) {
                others.add(new Considered(one.name(), one.cluster(), false, false, not));
            } else if (chosen == null) {
                chosen = one;
                fitting.add(
                        new Considered(one.name(), one.cluster(), true, true, whyChosen(one, model, protocol, engine)));
            } else {
                fitting.add(
                        new Considered(one.name(), one.cluster(), true, false, whyLater(one, chosen, model, engine)));
            }
        }
        fitting.addAll(others);
        if (chosen == null) {
            return new RuntimeSelection(
                    null,
                    null,
                    "NoSupportingRuntime",
                    none(model, protocol, workers, all, engine),
                    List.copyOf(fitting));
        }
        return new RuntimeSelection(
                chosen, protocolOf(model, chosen), null, fitting.get(0).why(), List.copyOf(fitting));
    }

    /** Whether the engine that was chosen for services without a named runtime excludes the runtime. */
    private static boolean excluded(ServingRuntime runtime, @Nullable ServingEngine engine) {
        return engine == ServingEngine.KSERVE && runtime.engine() == ServingEngine.NEREID;
    }

    private static @Nullable String whyNot(
            ServingRuntime runtime, ModelSpec model, String protocol, boolean workers, @Nullable ServingEngine engine) {
        if (runtime.disabled()) {
            return "it is disabled";
        }
        if (excluded(runtime, engine)) {
            return "it belongs to the engine nereid, which is chosen by the annotation " + ServingEngine.ANNOTATION
                    + ": nereid of the service or its namespace";
        }
        if (runtime.multiModel()) {
            return "it is for many models in one process (multiModel)";
        }
        if (!supports(runtime, model, true)) {
            return supports(runtime, model, false)
                    ? "it supports " + format(model) + ", but is only chosen by name (autoSelect is false)"
                    : "it does not support " + format(model) + "; it supports " + formats(runtime);
        }
        if (!speaks(runtime, protocol)) {
            return "it does not speak " + protocol
                    + (model.protocolVersion() == null ? " (assumed, as the service names no protocolVersion)" : "")
                    + "; it speaks " + String.join(", ", runtime.protocolVersions());
        }
        String generates = runtime.engine() == ServingEngine.NEREID ? TextGeneration.reason(model) : null;
        if (generates != null) {
            return "it serves encoders, and " + generates;
        }
        if ((runtime.workerSpec() != null) != workers) {
            return workers
                    ? "the service has a workerSpec, and it has none"
                    : "it has a workerSpec, and the service has none";
        }
        return null;
    }

    private static String whyChosen(
            ServingRuntime runtime, ModelSpec model, String protocol, @Nullable ServingEngine engine) {
        Integer priority = priority(runtime, model);
        return "it supports " + format(model) + " and " + protocol
                + (engine == ServingEngine.NEREID && runtime.engine() == engine ? ", is of the engine nereid" : "")
                + (runtime.cluster() ? "" : ", is of the service's namespace")
                + (priority == null ? "" : ", has priority " + priority) + ", and comes first";
    }

    private static String whyLater(
            ServingRuntime runtime, ServingRuntime chosen, ModelSpec model, @Nullable ServingEngine engine) {
        if (engine == ServingEngine.NEREID && runtime.engine() != chosen.engine()) {
            return "it fits, but runtimes of the engine nereid take precedence, by the annotation "
                    + ServingEngine.ANNOTATION + " or the settings";
        }
        if (runtime.cluster() && !chosen.cluster()) {
            return "it fits, but runtimes of the namespace take precedence over ClusterServingRuntimes";
        }
        Integer own = priority(runtime, model);
        Integer better = priority(chosen, model);
        if (!Objects.equals(own, better)) {
            return "it fits, but has " + (own == null ? "no priority" : "priority " + own) + " where " + chosen.name()
                    + " has " + (better == null ? "none" : better.toString());
        }
        return rank(runtime) != rank(chosen)
                ? "it fits, but " + chosen.name() + " speaks a lower protocol"
                : "it fits, but " + chosen.name() + " is newer, or comes first by name";
    }

    private static String none(
            ModelSpec model,
            String protocol,
            boolean workers,
            List<ServingRuntime> all,
            @Nullable ServingEngine engine) {
        StringBuilder text = new StringBuilder("No runtime found to support predictor with model type: ")
                .append(format(model))
                .append(" and protocol: ")
                .append(protocol);
        if (workers) {
            text.append(" and workers on several machines");
        }
        List<String> others = new ArrayList<>();
        for (ServingRuntime one : all) {
            if (!one.disabled() && !one.multiModel() && !excluded(one, engine) && supports(one, model, true)) {
                others.add(one.name() + " (" + String.join(", ", one.protocolVersions()) + ")");
            }
        }
        if (!others.isEmpty()) {
            return text.append(". Set model.protocolVersion to what one of these speaks: ")
                    .append(String.join("; ", others))
                    .toString();
        }
        for (ServingRuntime one : all) {
            if (excluded(one, engine) && whyNot(one, model, protocol, workers, null) == null) {
                return text.append(". ")
                        .append(one.name())
                        .append(" supports it; the annotation " + ServingEngine.ANNOTATION
                                + ": nereid of the service or its namespace has it chosen, as does model.runtime")
                        .toString();
            }
        }
        return text.append(". 'nereid explain-selection' shows the reason for each runtime; or apply a ServingRuntime"
                        + " whose container has a command")
                .toString();
    }

    /**
     * Runtimes in KServe's order of preference: by priority, then by protocol, then the newest, then by name. The
     * second sort is stable, so the first one decides among equal priorities.
     */
    private static List<ServingRuntime> ordered(List<ServingRuntime> runtimes, ModelSpec model) {
        List<ServingRuntime> all = new ArrayList<>(runtimes);
        all.sort(Comparator.<ServingRuntime>comparingInt(RuntimeSelection::rank)
                .thenComparing(
                        one -> one.metadata().creationTimestamp(), Comparator.nullsLast(Comparator.reverseOrder()))
                .thenComparing(ServingRuntime::name));
        all.sort(Comparator.comparing(one -> priority(one, model), Comparator.nullsLast(Comparator.reverseOrder())));
        return all;
    }

    /** The priority of the first entry with this format name, of any version. */
    private static @Nullable Integer priority(ServingRuntime runtime, ModelSpec model) {
        for (SupportedFormat one : runtime.supportedModelFormats()) {
            if (one.name().equals(model.formatName())) {
                return one.priority();
            }
        }
        return null;
    }

    private static int rank(ServingRuntime runtime) {
        int lowest = PROTOCOLS.size();
        for (String one : runtime.protocolVersions()) {
            int rank = PROTOCOLS.indexOf(one);
            lowest = rank < 0 ? lowest : Math.min(lowest, rank);
        }
        return lowest;
    }

    private static boolean speaks(ServingRuntime runtime, String protocol) {
        return runtime.protocolVersions().isEmpty()
                || runtime.protocolVersions().contains(protocol);
    }

    private static boolean supports(ServingRuntime runtime, ModelSpec model, boolean automatic) {
        String version = model.formatVersion();
        for (SupportedFormat one : runtime.supportedModelFormats()) {
            if (one.name().equals(model.formatName())
                    && (one.autoSelect() || !automatic)
                    && (version == null || version.isEmpty() || version.equals(one.version()))) {
                return true;
            }
        }
        return false;
    }

    private static String protocolOf(ModelSpec model, ServingRuntime chosen) {
        String own = model.protocolVersion();
        if (own != null) {
            return own;
        }
        int rank = rank(chosen);
        return rank < PROTOCOLS.size() ? PROTOCOLS.get(rank) : "v1";
    }

    private static String format(ModelSpec model) {
        String version = model.formatVersion();
        return version == null || version.isEmpty() ? model.formatName() : model.formatName() + ":" + version;
    }

    private static String formats(ServingRuntime runtime) {
        List<String> all = new ArrayList<>();
        for (SupportedFormat one : runtime.supportedModelFormats()) {
            all.add(one.version() == null ? one.name() : one.name() + ":" + one.version());
        }
        return all.isEmpty() ? "nothing" : String.join(", ", all);
    }
}
