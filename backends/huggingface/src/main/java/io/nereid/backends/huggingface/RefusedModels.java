// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.backends.huggingface.graph.EncoderFamily;
import io.nereid.backends.huggingface.graph.EncoderTask;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.Map;

/** What this server does not run, with the way out for each. Stateless. */
final class RefusedModels {
    private static final String PYTHON =
            "or run it with the python backend, for which nereid convert FOLDER writes a model.py";

    private static final String KSERVE =
            "in a cluster KServe's own server serves it: set runtime: kserve-huggingfaceserver in"
                    + " the model of the service, or the annotation nereid.io/serving-engine: kserve; or ";

    private RefusedModels() {}

    /**
     * Reads the {@code config.json} and refuses what no architecture can have here: the folder's own code, and quantised weights.
     *
     * @throws ServingException INVALID_ARGUMENT for a folder that cannot be served
     */
    static EncoderConfig check(Path folder, Path version) {
        Map<?, ?> fields = FolderFile.object(folder.resolve("config.json"));
        if (fields == null) {
            throw ServingException.invalidArgument(
                    "'" + folder
                            + "' has weights only; the architecture that they belong to is in the code that saved them, as"
                            + " config.json of Hugging Face's transformers is not beside it",
                    "load them in the code that defines the model, export it with torch.onnx.export(model, example, '"
                            + version.resolve("model.onnx") + "'), and remove the weights");
        }
        EncoderConfig config = new EncoderConfig(fields);
        if (config.value("auto_map") != null) {
            throw ServingException.invalidArgument(
                    "the model in '" + folder
                            + "' has code of its own (auto_map of config.json), which this server does not run",
                    export(folder, config, "--trust-remote-code ") + ", " + PYTHON);
        }
        if (config.value("quantization_config") != null) {
            throw ServingException.invalidArgument(
                    "the weights in '" + folder + "' are quantised (quantization_config of config.json)",
                    "serve the checkpoint that they were made from, " + PYTHON);
        }
        return config;
    }

    /**
     * The family of an architecture.
     *
     * @param kserve whether the model takes the place of one of KServe's servers
     * @throws ServingException INVALID_ARGUMENT for an architecture that this server does not run
     */
    static EncoderFamily family(Path folder, EncoderConfig config, boolean kserve) {
        EncoderFamily family = EncoderFamily.of(config.architecture());
        if (family == null || EncoderTask.ofArchitecture(config.architecture()) == null) {
            throw unknown(folder, config, kserve);
        }
        return family;
    }

    /** @throws ServingException INVALID_ARGUMENT for an architecture that this server does not run */
    static EncoderTask task(Path folder, String architecture) {
        EncoderTask task = EncoderTask.ofArchitecture(architecture);
        if (task == null) {
            throw unknown(folder, new EncoderConfig(Map.of()), false);
        }
        return task;
    }

    private static ServingException unknown(Path folder, EncoderConfig config, boolean kserve) {
        String architecture = config.architecture();
        String type = config.text("model_type", "");
        return ServingException.invalidArgument(
                "'" + folder + "' has the weights of a Hugging Face model of the architecture "
                        + (architecture.isEmpty() ? "'" + type + "'" : architecture)
                        + (architecture.isEmpty() || type.isEmpty() ? "" : " (model_type '" + type + "')")
                        + ", which this server does not run (it runs the encoders "
                        + String.join(", ", EncoderFamily.architectures()) + ")",
                (kserve ? KSERVE : "") + export(folder, config, "") + ", " + PYTHON);
    }

    /** Whether an architecture continues texts; that of GPT-2 has a name of its own. */
    static boolean generates(String architecture) {
        return architecture.endsWith("ForCausalLM") || architecture.endsWith("LMHeadModel");
    }

    private static String export(Path folder, EncoderConfig config, String option) {
        String task = generates(config.architecture()) ? "--task text-generation-with-past " : "";
        return "convert it to ONNX, which is served without configuration: python3 -m pip install 'optimum[onnxruntime]' &&"
                + " optimum-cli export onnx --model " + folder + " " + option + task + converted(folder);
    }

    /** A directory beside the model's for the converted one, with the same version. */
    private static String converted(Path folder) {
        String name = String.valueOf(folder);
        int slash = name.lastIndexOf('/');
        return slash > 0 && name.substring(slash + 1).matches("[0-9]+")
                ? name.substring(0, slash) + "-onnx" + name.substring(slash)
                : name + "-onnx";
    }
}
