// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * The steps of a {@link Transformer}: knows which methods the user's class overrides, so that the others cost nothing,
 * and runs them with error handling. Thread-safe: immutable.
 */
final class TransformerSteps {
    private final Transformer transformer;
    private final UserCodeErrors faults;
    final String modelName;
    final boolean before;
    final boolean after;
    private final boolean ownInputs;
    private final boolean ownOutputs;

    TransformerSteps(Transformer transformer, String modelName) {
        this.transformer = transformer;
        this.faults = new UserCodeErrors(transformer.getClass().getClassLoader(), modelName);
        this.modelName = modelName;
        this.before = has("preprocess", TensorMap.class);
        this.after = has("postprocess", TensorMap.class, TensorMap.class);
        this.ownInputs = has("inputs", List.class);
        this.ownOutputs = has("outputs", List.class);
    }

    /** Whether the user's class overrides a method. */
    private boolean has(String method, Class<?>... parameters) {
        try {
            return transformer.getClass().getMethod(method, parameters).getDeclaringClass() != Transformer.class;
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("every transformer has " + method, e);
        }
    }

    /** Whether clients see other tensors than the predictor's. */
    boolean ownSpecs() {
        return ownInputs || ownOutputs;
    }

    List<TensorSpec> inputs(List<TensorSpec> predictor) {
        return ownInputs ? specs("inputs", () -> transformer.inputs(predictor)) : predictor;
    }

    List<TensorSpec> outputs(List<TensorSpec> predictor) {
        return ownOutputs ? specs("outputs", () -> transformer.outputs(predictor)) : predictor;
    }

    private List<TensorSpec> specs(String method, UserCodeErrors.Step<List<TensorSpec>> step) {
        try {
            return faults.step(method, () -> List.copyOf(step.run()));
        } catch (ServingException e) {
            // The specifications do not depend on the request, so an illegal argument is the transformer's error.
            throw e.code() == ErrorCode.INVALID_ARGUMENT ? ServingException.internal(e.getMessage(), e) : e;
        }
    }

    /** The model's metadata for clients: the predictor's, with the transformer's inputs and outputs. */
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

    /**
     * Validates the client's inputs against the transformer's specifications.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown or missing input, or another type or shape
     */
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

    /** Runs preprocess: returns the predictor's inputs and parameters. The caller owns the tensors. */
    Made before(TensorMap request) {
        return step("preprocess", () -> transformer.preprocess(request));
    }

    /** Runs postprocess: returns the client's outputs and parameters. The caller owns the tensors. */
    Made after(TensorMap answer, TensorMap request) {
        return step("postprocess", () -> transformer.postprocess(answer, request));
    }

    /** The result of a step. */
    record Made(List<Tensor> tensors, Map<String, Object> parameters) {}

    private Made step(String name, UserCodeErrors.Step<TensorMap> step) {
        return faults.step(name, () -> {
            TensorMap made = step.run();
            if (made == null) {
                throw new IllegalStateException(name + " returned null");
            }
            return new Made(made.tensors(), made.parameters());
        });
    }
}
