// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.local;

import io.nereid.base.ServingException;
import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.HubSettings;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The model of the Hugging Face Hub that arguments of KServe's Hugging Face server name, {@code --model_id} and {@code
 * --model_revision}. Stateless.
 */
final class HubModel {
    /** The variables of a predictor that count for the download. */
    private static final Set<String> VARIABLES = Set.of("HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][\\w.-]*/[A-Za-z0-9][\\w.-]*");

    private HubModel() {}

    /**
     * The storage URI of the model that the arguments name; null when they name none.
     *
     * @param where the path of the predictor, for messages
     * @throws ServingException INVALID_ARGUMENT for a name that the Hub cannot have
     */
    static @Nullable String uri(String format, List<String> arguments, String where) {
        Map<String, String> options = CommandLineArguments.normalized(arguments);
        String id = options.getOrDefault("model_id", "");
        if (id.isEmpty() || !format.equals("huggingface")) {
            return null;
        }
        if (!NAME.matcher(id).matches()) {
            throw ServingException.invalidArgument(
                    where + ".model.args: --model_id is '" + id + "' (expected: OWNER/MODEL of the Hugging Face Hub)",
                    "correct it, or set storageUri");
        }
        String revision = options.getOrDefault("model_revision", "");
        return "hf://" + id + (revision.isEmpty() ? "" : ":" + revision);
    }

    /** The artifact with the settings of the predictor's variables. */
    static Artifact artifact(
            String uri, Map<String, String> environment, List<EnvironmentSource> sources, PredictorSpec spec) {
        Map<String, String> settings = new LinkedHashMap<>();
        environment.forEach((name, value) -> {
            if (VARIABLES.contains(name)) {
                settings.put(name, value);
            }
        });
        return new Artifact(
                uri,
                StorageUri.MODELS,
                null,
                Map.of(),
                spec.pod().serviceAccountName(),
                spec.storageContainerName(),
                new HubSettings(
                        Map.copyOf(settings),
                        sources.stream().filter(HubModel::reads).toList()));
    }

    /** Whether a variable counts, of a container with these arguments. */
    static boolean counts(String variable, List<String> arguments) {
        return VARIABLES.contains(variable)
                && CommandLineArguments.normalized(arguments).containsKey("model_id");
    }

    /** Whether the download reads a variable that comes from a secret or a config map. */
    static boolean reads(EnvironmentSource source) {
        return source.key() != null && VARIABLES.contains(source.variable());
    }
}
