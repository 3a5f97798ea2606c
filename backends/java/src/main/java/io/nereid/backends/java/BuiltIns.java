// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import java.util.List;

/** The built-in models by name. Immutable. */
final class BuiltIns {
    static final List<String> NAMES = List.of(
            "identity",
            "add_sub",
            "pooling",
            "repeat",
            "square",
            "sequence",
            "dyna_sequence",
            "implicit_state",
            "iterative_sequence");

    private BuiltIns() {}

    /** @throws ServingException INVALID_ARGUMENT for a name that is none, or a configuration that does not fit */
    static BackendModel load(String name, String backend, ModelConfig config, BackendContext context) {
        BuiltInModel model = switch (name) {
            case "identity" -> new IdentityModel(IdentityModel.complete(config));
            case "add_sub" -> new AddSubModel(AddSubModel.complete(config));
            case "pooling", "mean_pool" -> MeanPoolModel.of(config, context.settings(), context.autoComplete());
            case "repeat" -> new RepeatModel(RepeatModel.complete(config));
            case "square" -> new SquareModel(SquareModel.complete(config));
            case "sequence" -> new SlotSums(Sums.complete(config, "START", "READY"));
            case "dyna_sequence" -> new IdSums(Sums.complete(config, "START", "END", "READY", "CORRID"));
            case "implicit_state" -> new StateSums(StateSums.complete(config));
            case "iterative_sequence" -> new CountdownModel(CountdownModel.complete(config));
            default ->
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' asks for the built-in Java model '" + name + "' (expected: "
                                + String.join(", ", NAMES) + ")",
                        name.length() > 64
                                ? null
                                : NameSuggestions.didYouMean(name, NAMES, "correct the parameter 'model'"));
        };
        return new LoadedJavaModel(model.config(), backend, backend, model, Delays.read(config), () -> {});
    }
}
