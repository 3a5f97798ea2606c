// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/** A transformer as requests meet it: which steps it has, and what its failures mean. Thread-safe: fixed. */
final class Steps {
    private final Transformer transformer;
    private final Faults faults;
    final String modelName;
    final boolean before;
    final boolean after;
    private final boolean ownInputs;
    private final boolean ownOutputs;

    Steps(Transformer transformer, String modelName) {
        this.transformer = transformer;
        this.faults = new Faults(transformer.getClass().getClassLoader(), modelName);
        this.modelName = modelName;
        this.before = has("preprocess", Payload.class);
        this.after = has("postprocess", Payload.class, Payload.class);
        this.ownInputs = has("inputs", List.class);
        this.ownOutputs = has("outputs", List.class);
    }

    private boolean has(String method, Class<?>... parameters) {
        try {
            return transformer.getClass().getMethod(method, parameters).getDeclaringClass() != Transformer.class;
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("every transformer has " + method, e);
        }
    }

    /** Whether clients meet other tensors than the predictor's. */
    boolean ownSpecs() {
        return ownInputs || ownOutputs;
    }

    List<TensorSpec> inputs(List<TensorSpec> predictor) {
        return ownInputs ? specs("inputs", () -> transformer.inputs(predictor)) : predictor;
    }

    List<TensorSpec> outputs(List<TensorSpec> predictor) {
        return ownOutputs ? specs("outputs", () -> transformer.outputs(predictor)) : predictor;
    }

    private List<TensorSpec> specs(String method, Faults.Step<List<TensorSpec>> step) {
        try {
            return faults.step(method, () -> List.copyOf(step.run()));
        } catch (ServingException e) {
            // what a client asks has no part in it
            throw e.code() == ErrorCode.INVALID_ARGUMENT ? ServingException.internal(e.getMessage(), e) : e;
        }
    }

    /** What a client may be told of the model. */
    ModelMetadata metadata(ModelMetadata predictor) {
        if (!ownSpecs()) {
            return predictor;
        }
        return new ModelMetadata(
                predictor.id(),
                predictor.platform(),
                inputs(predictor.inputs()),
                outputs(predictor.outputs()),
                0,
                predictor.properties());
    }

    /** Refuses inputs that are not what clients were told to send. */
    void check(List<Tensor> given, List<TensorSpec> specs) {
        for (Tensor tensor : given) {
            TensorSpec spec = named(specs, tensor.name());
            if (spec.dataType() != tensor.dataType()) {
                throw ServingException.invalidArgument("input '" + tensor.name() + "' of model '" + modelName
                        + "' is of type " + tensor.dataType() + ", expected " + spec.dataType());
            }
            if (!spec.unchecked() && !spec.shape().accepts(tensor.shape())) {
                throw ServingException.invalidArgument("input '" + tensor.name() + "' of model '" + modelName
                        + "' has the shape " + tensor.shape() + ", expected " + spec.shape());
            }
        }
        for (TensorSpec spec : specs) {
            if (!spec.optional() && given.stream().noneMatch(t -> t.name().equals(spec.name()))) {
                throw ServingException.invalidArgument(
                        "input '" + spec.name() + "' of model '" + modelName + "' is missing");
            }
        }
    }

    private TensorSpec named(List<TensorSpec> specs, String name) {
        for (TensorSpec spec : specs) {
            if (spec.name().equals(name)) {
                return spec;
            }
        }
        throw ServingException.invalidArgument(
                "model '" + modelName + "' has no input '" + name + "'",
                "it has " + specs.stream().map(TensorSpec::name).toList());
    }

    /** The inputs for the predictor, and the parameters; the caller owns the tensors. */
    Made before(Payload request) {
        return step("preprocess", () -> transformer.preprocess(request));
    }

    /** The outputs for the client, and the parameters; the caller owns the tensors. */
    Made after(Payload answer, Payload request) {
        return step("postprocess", () -> transformer.postprocess(answer, request));
    }

    /** What a step made. */
    record Made(List<Tensor> tensors, Map<String, Object> parameters) {}

    private Made step(String name, Faults.Step<Payload> step) {
        return faults.step(name, () -> {
            Payload made = step.run();
            if (made == null) {
                throw new IllegalStateException(name + " gave null");
            }
            return new Made(made.tensors(), made.parameters());
        });
    }
}
