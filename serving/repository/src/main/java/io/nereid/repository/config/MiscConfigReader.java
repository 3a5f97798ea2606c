// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.OptimizationPolicy;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads parameters, metric tags, custom operators, optimization and model metrics. Confined to one thread. */
final class MiscConfigReader {
    private static final String FIRST_RESPONSE = "nv_inference_first_response_histogram_ms";

    private final ConfigReadContext scope;

    MiscConfigReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    Map<String, String> parameters(List<Value> given) {
        Map<String, String> parameters = new LinkedHashMap<>();
        for (Value v : given) {
            parameters.put(v.entry().key(), v.entry().value() instanceof TypedMessage m ? m.text("string_value") : "");
        }
        return Collections.unmodifiableMap(parameters);
    }

    /** Checks the latency objective, which the schedulers of requests that do not depend on each other keep. */
    void objective(TypedMessage config) {
        for (Value v : config.all("parameters")) {
            if (!v.entry().key().equals(LatencyObjective.PARAMETER)) {
                continue;
            }
            String text = v.entry().value() instanceof TypedMessage m ? m.text("string_value") : "";
            String where = "parameter '" + LatencyObjective.PARAMETER + "'" + scope.forModel() + ": ";
            try {
                LatencyObjective.parse(text);
            } catch (IllegalArgumentException e) {
                scope.error(v.at(), where + e.getMessage(), "write an objective such as p99=20ms");
            }
            String without = config.has("sequence_batching")
                    ? "sequence batching"
                    : config.has("ensemble_scheduling")
                            ? "an ensemble; its composing models may have one"
                            : config.message("model_transaction_policy").flag("decoupled")
                                    ? "the decoupled transaction policy"
                                    : "";
            if (!without.isEmpty()) {
                scope.error(v.at(), where + "a latency objective is not supported with " + without, "remove it");
            }
        }
    }

    static Map<String, String> texts(List<Value> given) {
        Map<String, String> texts = new LinkedHashMap<>();
        for (Value v : given) {
            texts.put(v.entry().key(), v.entry().value() instanceof String s ? s : "");
        }
        return Collections.unmodifiableMap(texts);
    }

    List<String> operatorLibraries(TypedMessage operations) {
        List<String> files = new ArrayList<>();
        for (Value v : operations.all("op_library_filename")) {
            TypedMessage one = new TypedMessage(v.at());
            one.fields().put("op_library_filename", List.of(v));
            scope.inside(scope.directory(), one, "op_library_filename", "custom operators:");
            files.add(v.text());
        }
        return List.copyOf(files);
    }

    OptimizationPolicy optimization(TypedMessage o) {
        TypedMessage accelerators = o.message("execution_accelerators");
        return new OptimizationPolicy(
                (int) o.message("graph").number("level"),
                accelerators(accelerators.all("cpu_execution_accelerator")),
                accelerators(accelerators.all("gpu_execution_accelerator")));
    }

    private List<ExecutionAccelerator> accelerators(List<Value> given) {
        List<ExecutionAccelerator> read = new ArrayList<>();
        for (Value v : given) {
            TypedMessage a = v.message();
            if (a.text("name").isEmpty() && !a.faulty().contains("name")) {
                scope.error(v.at(), "execution accelerator must specify 'name'" + scope.forModel(), null);
            }
            read.add(new ExecutionAccelerator(a.text("name"), texts(a.all("parameters"))));
        }
        return List.copyOf(read);
    }

    Map<String, List<Double>> histogramBuckets(List<Value> given) {
        Map<String, List<Double>> buckets = new LinkedHashMap<>();
        for (Value v : given) {
            TypedMessage control = v.message();
            TypedMessage identifier = control.message("metric_identifier");
            TypedMessage histogram = control.message("histogram_options");
            String family = identifier.text("family");
            if (control.lacks("metric_identifier")) {
                scope.error(v.at(), "metric control must specify 'metric_identifier'", null);
            } else if (family.isEmpty() && !identifier.faulty().contains("family")) {
                scope.error(
                        control.place("metric_identifier"),
                        "metric identifier must specify non-empty 'family'",
                        "name the metric");
            }
            boolean known = family.equals(FIRST_RESPONSE);
            if (!known && !family.isEmpty()) {
                // Triton logs it too, and loads the model.
                scope.warning(
                        identifier.place("family"),
                        "metric family " + ProblemCollector.quote(family)
                                + " has no buckets of a model's own, so they have no effect (expected: "
                                + FIRST_RESPONSE + ")",
                        "remove it");
            }
            if (control.lacks("histogram_options")) {
                scope.error(v.at(), "metric control must specify 'histogram_options'", null);
            } else if (histogram.lacks("buckets")) {
                scope.error(
                        control.place("histogram_options"), "histogram options must specify non-empty 'buckets'", null);
            }
            List<Double> bounds = ascending(histogram.all("buckets"));
            if (known) {
                buckets.put(family, bounds);
            }
        }
        return Collections.unmodifiableMap(buckets);
    }

    private List<Double> ascending(List<Value> given) {
        List<Double> bounds = new ArrayList<>();
        double last = Double.NaN;
        for (Value v : given) {
            double bound = v.value() instanceof Double d ? d : 0;
            if (Double.isNaN(bound) || bound <= last) {
                scope.error(
                        v.at(),
                        "histogram options have bucket " + bound + " after " + last + " (expected: ascending bounds)",
                        null);
                return List.copyOf(bounds);
            }
            bounds.add(bound);
            last = bound;
        }
        return List.copyOf(bounds);
    }
}
