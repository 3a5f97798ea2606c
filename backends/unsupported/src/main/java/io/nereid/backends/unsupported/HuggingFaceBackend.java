// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Weights of Hugging Face's libraries, {@code model.safetensors} or {@code pytorch_model.bin}: beside a
 * {@code config.json}, which names the architecture, or alone. Stateless.
 */
public final class HuggingFaceBackend extends UnsupportedBackend {
    private static final int MOST_BYTES = 1 << 20;
    private static final Pattern ARCHITECTURE = Pattern.compile("\"architectures\"\\s*:\\s*\\[\\s*\"(\\w{1,100})\"");
    private static final Pattern TYPE = Pattern.compile("\"model_type\"\\s*:\\s*\"([\\w.-]{1,100})\"");

    /** For {@link java.util.ServiceLoader}. */
    public HuggingFaceBackend() {
        super(
                "huggingface",
                List.of(),
                List.of(
                        "model.safetensors",
                        "model.safetensors.index.json",
                        "pytorch_model.bin",
                        "pytorch_model.bin.index.json"));
    }

    /** By the name: the endings of index files and of PyTorch's weights are common to many files. */
    @Override
    public boolean recognises(Path file) {
        String name = String.valueOf(file.getFileName());
        return name.endsWith(".safetensors")
                || name.endsWith(".safetensors.index.json")
                || (name.startsWith("pytorch_model") && (name.endsWith(".bin") || name.endsWith(".bin.index.json")));
    }

    @Override
    String reason(Path file, FileHeader head) {
        String config = config(file);
        String architecture = found(ARCHITECTURE, config);
        String type = found(TYPE, config);
        if (architecture == null && type == null) {
            return "has weights only; the architecture that they belong to is in the code that saved them, as there is no"
                    + " config.json of Hugging Face's transformers beside it";
        }
        return "has the weights of a Hugging Face model of the architecture "
                + (architecture == null ? "'" + type + "'" : architecture)
                + (architecture == null || type == null ? "" : " (model_type '" + type + "')")
                + ", which this server does not run";
    }

    @Override
    String remedy(Path file) {
        Path directory = file.toAbsolutePath().normalize().getParent();
        String config = config(file);
        String architecture = found(ARCHITECTURE, config);
        if (architecture == null && found(TYPE, config) == null) {
            return "load them in the code that defines the model, export it with torch.onnx.export(model, example, '"
                    + (directory == null ? "" : directory + "/") + "model.onnx'), and remove '" + file.getFileName()
                    + "'";
        }
        String task =
                architecture != null && architecture.endsWith("ForCausalLM") ? " --task text-generation-with-past" : "";
        return "convert it to ONNX, which is served without configuration: python3 -m pip install 'optimum[onnxruntime]' &&"
                + " optimum-cli export onnx --model " + directory + task + " " + converted(directory);
    }

    /** A directory beside the model's for the converted one, with the same version. */
    private static String converted(@Nullable Path directory) {
        String name = String.valueOf(directory);
        int slash = name.lastIndexOf('/');
        return slash > 0 && name.substring(slash + 1).matches("[0-9]+")
                ? name.substring(0, slash) + "-onnx" + name.substring(slash)
                : name + "-onnx";
    }

    private static String config(Path file) {
        try (InputStream in = Files.newInputStream(file.resolveSibling("config.json"))) {
            return new String(in.readNBytes(MOST_BYTES), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "";
        }
    }

    private static @Nullable String found(Pattern pattern, String text) {
        Matcher matcher = pattern.matcher(text);
        return matcher.find() ? matcher.group(1) : null;
    }
}
