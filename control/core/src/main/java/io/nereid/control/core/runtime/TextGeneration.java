// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.runtime;

import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.InferenceService.ModelSpec;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Says of a model of the format {@code huggingface} whether it generates texts: the engine runs encoders, so that in a cluster KServe's
 * server gets such a model. The files are not read, only what the service says about them. Stateless.
 */
final class TextGeneration {
    private static final String FORMAT = "huggingface";
    private static final Set<String> TASKS = Set.of("text_generation", "text2text_generation", "time_series_forecast");
    private static final List<String> GPUS = List.of("nvidia.com/", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi");

    private TextGeneration() {}

    /** Why the model is not one for the engine, as the end of a sentence about its service; null when it may be. */
    static @Nullable String reason(ModelSpec model) {
        if (!model.formatName().equals(FORMAT)) {
            return null;
        }
        Map<String, String> arguments =
                CommandLineArguments.normalized(model.container().args());
        String task = arguments.getOrDefault("task", "").strip();
        if (!task.isEmpty()) {
            return TASKS.contains(task.toLowerCase(Locale.ROOT)) ? "the service has --task=" + task : null;
        }
        if (arguments.getOrDefault("backend", "").equalsIgnoreCase("vllm")) {
            return "the service has --backend=" + arguments.get("backend");
        }
        for (String resource : model.container().resources().limits().keySet()) {
            if (GPUS.stream().anyMatch(resource::startsWith)) {
                return "the service has a limit of " + resource + " and names no --task";
            }
        }
        return null;
    }
}
