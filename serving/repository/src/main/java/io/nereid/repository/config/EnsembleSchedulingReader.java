// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Entry;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads {@code ensemble_scheduling}; {@link EnsembleDagValidator} validates the connections of its steps. Confined to
 * one thread.
 */
final class EnsembleSchedulingReader {
    private final ConfigReadContext scope;

    EnsembleSchedulingReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    /** Reads the steps; {@code c} is the whole configuration. */
    EnsembleScheduling read(TypedMessage c) {
        if ((!c.text("platform").isEmpty() && !c.text("platform").equals("ensemble"))
                || (c.text("platform").isEmpty() && !c.text("backend").isEmpty())) {
            scope.error(
                    c.place("ensemble_scheduling"),
                    "ensemble scheduling cannot be set for model '" + scope.model()
                            + "' whose platform is not ensemble",
                    "write platform: \"ensemble\" and no backend");
        }
        absent(c, "instance_group", "instance group should not be specified for ensemble", "its steps have instances");
        absent(c, "optimization", "optimization should not be specified for ensemble", "its steps have optimizations");
        absent(c, "model_warmup", "model_warmup can not be specified for ensemble", "warm up the models of its steps");
        TypedMessage e = c.message("ensemble_scheduling");
        List<Value> given = e.all("step");
        if (given.isEmpty() && !e.faulty().contains("step")) {
            scope.error(
                    c.place("ensemble_scheduling"),
                    "must specify 'step' for ensemble '" + scope.model() + "'",
                    "write step [ { model_name: … input_map { … } output_map { … } } ]");
        }
        boolean linked = !given.isEmpty() && e.faulty().isEmpty();
        List<EnsembleStep> steps = new ArrayList<>();
        Map<String, Integer> writers = new HashMap<>();
        for (Value v : given) {
            EnsembleStep step = step(v, steps.size(), writers);
            linked &= !step.inputs().isEmpty() && !step.outputs().isEmpty();
            steps.add(step);
        }
        EnsembleScheduling ensemble = new EnsembleScheduling(
                List.copyOf(steps), (int) Math.min(e.number("max_inflight_requests"), Integer.MAX_VALUE));
        if (linked) {
            new EnsembleDagValidator(scope, c, steps).check();
        }
        return ensemble;
    }

    private void absent(TypedMessage c, String field, String message, String remedy) {
        if (c.has(field)) {
            scope.error(c.place(field), message + " '" + scope.model() + "'", "remove it, " + remedy);
        }
    }

    private EnsembleStep step(Value v, int index, Map<String, Integer> writers) {
        TypedMessage s = v.message();
        for (String field : List.of("model_name", "input_map", "output_map")) {
            if (s.has(field)
                    ? field.equals("model_name") && s.text(field).isEmpty()
                    : !s.faulty().contains(field)) {
                scope.error(
                        v.at(),
                        "must specify '" + field + "' in step " + index + " of ensemble '" + scope.model() + "'",
                        null);
            }
        }
        long version = s.has("model_version") ? s.number("model_version") : -1;
        if (version < -1) {
            scope.error(
                    s.place("model_version"),
                    "model_version " + version + " in step " + index + " of ensemble '" + scope.model()
                            + "' (expected: >= 1, or -1 for the latest)",
                    null);
        }
        Map<String, String> inputs = new LinkedHashMap<>();
        for (Value m : s.all("input_map")) {
            if (inputs.putIfAbsent(m.entry().key(), text(m.entry())) != null) {
                scope.error(
                        m.at(),
                        "input " + ProblemCollector.quote(m.entry().key()) + " in model "
                                + ProblemCollector.quote(s.text("model_name"))
                                + " is mapped to multiple ensemble tensors" + inStep(index),
                        "remove all but one");
            }
        }
        Map<String, String> outputs = new LinkedHashMap<>();
        for (Value m : s.all("output_map")) {
            String tensor = text(m.entry());
            outputs.put(m.entry().key(), tensor);
            if (writers.putIfAbsent(tensor, index) != null) {
                outputs.remove(m.entry().key());
                scope.error(
                        m.at(),
                        "ensemble tensor " + ProblemCollector.quote(tensor) + " can appear in an output map only once"
                                + inStep(index),
                        "rename one of them");
            }
        }
        return new EnsembleStep(
                s.text("model_name"),
                version == 0 ? -1 : version,
                Collections.unmodifiableMap(inputs),
                Collections.unmodifiableMap(outputs),
                s.text("when"));
    }

    private String inStep(int index) {
        return " for ensemble '" + scope.model() + "' step " + index;
    }

    private static String text(Entry entry) {
        return entry.value() instanceof String s ? s : "";
    }
}
