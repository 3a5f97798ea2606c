// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The methods of an estimator that requests may ask for besides the outputs of its configuration: a signature for each,
 * with the name of the method, and one with all of them. Immutable.
 */
final class MethodSignatures {
    /** The signature with all methods. */
    static final String ALL = "all_methods";

    private static final List<String> PARAMETERS = List.of("method", "predict_fn");

    private final Map<String, Signature> signatures;
    private final Map<String, List<OutputWriter>> writers;

    private MethodSignatures(Map<String, Signature> signatures, Map<String, List<OutputWriter>> writers) {
        this.signatures = signatures;
        this.writers = writers;
    }

    /**
     * The signatures of a model.
     *
     * @param config the completed configuration
     * @param specs the output of each method
     * @param configured the names of the configured outputs
     */
    static MethodSignatures of(
            Estimator estimator, ModelConfig config, Map<PredictMethod, TensorSpec> specs, List<String> configured) {
        Map<String, Signature> signatures = new TreeMap<>();
        Map<String, List<OutputWriter>> writers = new TreeMap<>();
        List<TensorSpec> all = new ArrayList<>();
        List<OutputWriter> allWriters = new ArrayList<>();
        for (PredictMethod method : estimator.methods()) {
            TensorSpec spec = specs.get(method);
            if (spec == null) {
                continue;
            }
            OutputWriter writer = new OutputWriter(spec.name(), method, spec.dataType(), estimator.width(method) == 0);
            all.add(spec);
            allWriters.add(writer);
            if (configured.size() != 1 || !configured.get(0).equals(method.text())) {
                signatures.put(
                        method.text(), new Signature(Signature.PREDICT, config.inputs(), List.of(spec), Map.of()));
                writers.put(method.text(), List.of(writer));
            }
        }
        if (all.size() > 1) {
            signatures.put(ALL, new Signature(Signature.PREDICT, config.inputs(), List.copyOf(all), Map.of()));
            writers.put(ALL, List.copyOf(allWriters));
        }
        return new MethodSignatures(Collections.unmodifiableMap(signatures), Collections.unmodifiableMap(writers));
    }

    Map<String, Signature> signatures() {
        return signatures;
    }

    /** The writers of a signature's outputs. */
    List<OutputWriter> writers(String signature) {
        List<OutputWriter> found = writers.get(signature);
        if (found == null) {
            throw ServingException.invalidArgument("there is no signature '" + signature + "' (expected: "
                    + String.join(", ", signatures.keySet()) + ")");
        }
        return found;
    }

    /** The signature with these outputs; empty when there is none. */
    String with(List<String> outputs) {
        if (outputs.size() == 1 && signatures.containsKey(outputs.get(0))) {
            return outputs.get(0);
        }
        List<OutputWriter> all = writers.getOrDefault(ALL, List.of());
        return !all.isEmpty()
                        && outputs.stream()
                                .allMatch(name ->
                                        all.stream().anyMatch(w -> w.name().equals(name)))
                ? ALL
                : "";
    }

    /**
     * The signature that a request's parameters select; empty for the default one.
     *
     * @throws ServingException INVALID_ARGUMENT for a method that the model does not have
     */
    String byParameters(Map<String, Object> parameters, ModelConfig config) {
        for (String name : PARAMETERS) {
            Object value = parameters.get(name);
            if (value == null) {
                continue;
            }
            String method = String.valueOf(value).strip();
            if (config.outputs().size() == 1 && config.outputs().get(0).name().equals(method)) {
                return "";
            }
            if (!signatures.containsKey(method)) {
                throw ServingException.invalidArgument(
                        "parameter '" + name + "' is '"
                                + (method.length() > 40 ? method.substring(0, 40) + "…" : method)
                                + "' (expected for model '" + config.name() + "': " + expected(config) + ")",
                        "name a method that the model has, or several in 'outputs'");
            }
            return method;
        }
        return "";
    }

    private String expected(ModelConfig config) {
        List<String> names = new ArrayList<>();
        config.outputs().forEach(output -> names.add(output.name()));
        signatures.keySet().stream()
                .filter(s -> !s.equals(ALL) && !names.contains(s))
                .forEach(names::add);
        return String.join(", ", names);
    }
}
