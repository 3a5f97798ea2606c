// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code nereid transformer}: steps in Python or Java as a process of their own, in front of a predictor. */
@Command(
        name = "transformer",
        mixinStandardHelpOptions = true,
        description = {
            "Runs the steps of a Python file or jar before and after a predictor that another server serves.",
            "",
            "This is the container of spec.transformer.nereid of an InferenceService on Kubernetes. The process ends when"
                    + " the steps cannot be loaded or their process ends; its last line says why."
        },
        footer = {
            "",
            "Try it:",
            "  nereid transformer --dir steps/transformer.py --model_name words --predictor_host localhost:8000"
        })
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class TransformerCommand implements Callable<Integer> {
    @Option(names = "--class", paramLabel = "NAME", description = "The class of the steps (default: the only one).")
    @Nullable String className;

    @Option(
            names = "--file",
            paramLabel = "NAME",
            description = "The .py or .jar file in --dir (default: transformer.jar, transformer.py, or the only one).")
    @Nullable String file;

    @Mixin
    ComponentOptions options;

    @Override
    public Integer call() throws Exception {
        if (options.directories.isEmpty()) {
            throw ServingException.invalidArgument(
                    "--dir is missing (expected: the directory of the .py or .jar file, or the file)");
        }
        return options.run(
                Component.TRANSFORMER,
                new Workload.Transformer(className, file, options.settings(), options.artifacts()));
    }
}
