// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.request.RequestValidator;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Validates an ensemble against its composing models. The error messages are Triton's, which operators search for.
 * Confined to the loading thread.
 */
final class EnsembleValidator {
    private final ModelConfig ensemble;
    private final ComposingModels members;
    private final Map<String, Use> tensors = new HashMap<>();

    /**
     * The type and shape of a tensor in one model.
     *
     * @param shape without the batch dimension
     * @param full with the batch dimension
     */
    private record Use(String model, DataType dataType, Shape shape, Shape full) {}

    EnsembleValidator(ModelConfig ensemble, ComposingModels members) {
        this.ensemble = ensemble;
        this.members = members;
    }

    /**
     * Returns the configuration of a step's model.
     *
     * @throws ServingException FAILED_PRECONDITION when no version, or not the required one, is loaded
     */
    ModelConfig member(EnsembleStep step) {
        try {
            return members.config(new ModelRef(step.model(), step.version(), null));
        } catch (ServingException e) {
            throw missing(step);
        }
    }

    /**
     * Validates every step against its model.
     *
     * @throws ServingException INVALID_ARGUMENT, or FAILED_PRECONDITION as {@link #member}
     */
    void check() {
        EnsembleScheduling scheduling = ensemble.ensemble();
        if (scheduling == null) {
            throw ServingException.invalidArgument(
                    "ensemble scheduling must be set for ensemble " + ensemble.name() + " whose platform is ensemble");
        }
        for (TensorSpec spec : ensemble.inputs()) {
            use(spec.name(), ensemble, spec);
        }
        for (TensorSpec spec : ensemble.outputs()) {
            use(spec.name(), ensemble, spec);
        }
        for (EnsembleStep step : scheduling.steps()) {
            check(step, member(step));
        }
        for (EnsembleStep step : scheduling.steps()) {
            Use when = tensors.get(step.when());
            if (when != null && when.dataType() != DataType.BOOL) {
                throw ServingException.invalidArgument("in ensemble " + ensemble.name() + ", ensemble tensor "
                        + step.when() + " decides whether model " + step.model() + " runs, but is "
                        + typeName(when.dataType()) + " (expected: TYPE_BOOL)");
            }
        }
    }

    private void check(EnsembleStep step, ModelConfig member) {
        int most = member.maxBatchSize();
        if (most > 0 && ensemble.maxBatchSize() > most) {
            throw ServingException.invalidArgument(
                    "ensemble " + ensemble.name() + " allows maximum batch size " + ensemble.maxBatchSize()
                            + ", but it contains model " + member.name()
                            + " which only allows maximum batch size to be " + most,
                    "set max_batch_size of the ensemble to " + most + " or less");
        }
        step.inputs()
                .forEach((input, tensor) -> use(tensor, member, port("input", member.inputs(), input, tensor, step)));
        step.outputs()
                .forEach((output, tensor) ->
                        use(tensor, member, port("output", member.outputs(), output, tensor, step)));
        for (TensorSpec spec : member.inputs()) {
            if (!spec.optional() && !step.inputs().containsKey(spec.name())) {
                throw ServingException.invalidArgument(
                        "in ensemble " + ensemble.name() + ", non-optional input " + spec.name() + " of model "
                                + step.model() + " is not mapped to an ensemble tensor",
                        "name it in the step's input_map");
            }
        }
    }

    private TensorSpec port(String kind, List<TensorSpec> specs, String name, String tensor, EnsembleStep step) {
        TensorSpec spec = RequestValidator.find(specs, name);
        if (spec == null) {
            throw ServingException.invalidArgument(
                    "in ensemble " + ensemble.name() + ", ensemble tensor " + tensor + " is mapping to non-existing "
                            + kind + " " + name + " in model " + step.model(),
                    "model " + step.model() + " has "
                            + specs.stream().map(TensorSpec::name).toList());
        }
        return spec;
    }

    private void use(String tensor, ModelConfig model, TensorSpec spec) {
        Shape full = model.batched() ? spec.shape().prepend(-1) : spec.shape();
        Use use = new Use(model.name(), spec.dataType(), spec.shape(), full);
        Use first = tensors.putIfAbsent(tensor, use);
        if (first == null) {
            return;
        }
        String where = "in ensemble " + ensemble.name() + ", ensemble tensor " + tensor + ": ";
        if (first.dataType() != use.dataType()) {
            throw ServingException.invalidArgument(where + "inconsistent data type: " + typeName(first.dataType())
                    + " is inferred from model " + first.model() + " while " + typeName(use.dataType())
                    + " is inferred from model " + use.model());
        }
        // a model without a batch dimension may take whole batches as they are: [-1,16] is compatible with [16]
        if (!compatible(first.shape(), use.shape()) && !compatible(first.full(), use.full())) {
            throw ServingException.invalidArgument(where + "inconsistent shape: " + first.shape()
                    + " is inferred from model " + first.model() + " while " + use.shape()
                    + " is inferred from model " + use.model());
        }
    }

    private static boolean compatible(Shape a, Shape b) {
        if (a.rank() != b.rank()) {
            return false;
        }
        for (int i = 0; i < a.rank(); i++) {
            if (a.dim(i) != b.dim(i) && a.dim(i) >= 0 && b.dim(i) >= 0) {
                return false;
            }
        }
        return true;
    }

    private static String typeName(DataType type) {
        return "TYPE_" + (type == DataType.BYTES ? "STRING" : type.name());
    }

    private ServingException missing(EnsembleStep step) {
        List<ServableState> states = members.states(step.model());
        boolean any = states.stream().anyMatch(s -> s.phase() == Phase.AVAILABLE);
        if (any && step.version() >= 0) {
            return ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "ensemble '" + ensemble.name() + "' depends on '" + step.model() + "' whose required version "
                            + step.version() + " is not loaded."
                            + failure(step.model(), state(states, step.version())));
        }
        StringBuilder text = new StringBuilder(
                "ensemble '" + ensemble.name() + "' depends on '" + step.model() + "' which has no loaded version.");
        for (ServableState state : states) {
            text.append(failure(step.model(), state));
        }
        return ServingException.of(ErrorCode.FAILED_PRECONDITION, text.toString());
    }

    private static @Nullable ServableState state(List<ServableState> states, long version) {
        for (ServableState state : states) {
            if (state.id().version() == version) {
                return state;
            }
        }
        return null;
    }

    private static String failure(String model, @Nullable ServableState state) {
        return state == null || state.reason() == null
                ? ""
                : " Model '" + model + "' loading failed with error: version "
                        + state.id().version() + " is at UNAVAILABLE state: " + state.reason() + ";";
    }
}
