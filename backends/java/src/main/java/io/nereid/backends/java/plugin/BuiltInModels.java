// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backends.java.BuiltInModel;
import io.nereid.backends.java.LoadedJavaModel;
import io.nereid.backends.java.MeanPoolModel;
import io.nereid.backends.java.SimulatedDelays;
import io.nereid.backends.java.samples.AddSubModel;
import io.nereid.backends.java.samples.DynaSequenceModel;
import io.nereid.backends.java.samples.IdentityModel;
import io.nereid.backends.java.samples.ImplicitStateModel;
import io.nereid.backends.java.samples.IterativeSequenceModel;
import io.nereid.backends.java.samples.RepeatModel;
import io.nereid.backends.java.samples.SequenceModel;
import io.nereid.backends.java.samples.SequenceSumModel;
import io.nereid.backends.java.samples.SquareModel;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.util.List;

/** Creates the built-in models by name. Has no state. */
public final class BuiltInModels {
    public static final List<String> NAMES = List.of(
            "identity",
            "add_sub",
            "pooling",
            "repeat",
            "square",
            "sequence",
            "dyna_sequence",
            "implicit_state",
            "iterative_sequence");

    private BuiltInModels() {}

    /**
     * Creates a built-in model.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown name or a configuration that the model does not support
     */
    static BackendModel load(String name, String backend, ModelConfig config, BackendContext context) {
        BuiltInModel model = switch (name) {
            case "identity" -> new IdentityModel(IdentityModel.complete(config));
            case "add_sub" -> new AddSubModel(AddSubModel.complete(config));
            case "pooling", "mean_pool" -> MeanPoolModel.of(config, context.settings(), context.autoComplete());
            case "repeat" -> new RepeatModel(RepeatModel.complete(config));
            case "square" -> new SquareModel(SquareModel.complete(config));
            case "sequence" -> new SequenceModel(SequenceSumModel.complete(config, "START", "READY"));
            case "dyna_sequence" ->
                new DynaSequenceModel(SequenceSumModel.complete(config, "START", "END", "READY", "CORRID"));
            case "implicit_state" -> new ImplicitStateModel(ImplicitStateModel.complete(config));
            case "iterative_sequence" -> new IterativeSequenceModel(IterativeSequenceModel.complete(config));
            default ->
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' names an unknown built-in model '" + name + "' (expected: "
                                + String.join(", ", NAMES) + ")",
                        name.length() > 64
                                ? null
                                : NameSuggestions.didYouMean(name, NAMES, "correct the parameter 'model'"));
        };
        return new LoadedJavaModel(model.config(), backend, backend, model, SimulatedDelays.read(config), () -> {});
    }
}
