// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import io.nereid.control.api.CommandLineArguments;
import io.nereid.control.api.Container;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The images of model servers that the engine replaces, from any registry and with any tag. Stateless. */
public final class ModelServerImages {
    /** The model format of a server, by the last part of the image's name, or by its last two parts. */
    private static final Map<String, String> FORMATS = Map.ofEntries(
            Map.entry("sklearnserver", "sklearn"),
            Map.entry("xgbserver", "xgboost"),
            Map.entry("lgbserver", "lightgbm"),
            Map.entry("predictiveserver", "sklearn"),
            Map.entry("pmmlserver", "pmml"),
            Map.entry("paddleserver", "paddle"),
            Map.entry("huggingfaceserver", "huggingface"),
            Map.entry("mlserver", "mlflow"),
            Map.entry("tritonserver", "triton"),
            Map.entry("torchserve", "pytorch"),
            Map.entry("torchserve-kfs", "pytorch"),
            Map.entry("pytorch-serve", "pytorch"),
            Map.entry("tensorflow-serving", "tensorflow"),
            Map.entry("tensorflow/serving", "tensorflow"),
            Map.entry("tensorflow/serving-gpu", "tensorflow"),
            Map.entry("openvino/model_server", "onnx"),
            Map.entry("nereid/nereid", "nereid"));

    /** The commands of these images; a container with another command runs as a process. */
    private static final List<String> COMMANDS =
            List.of("tensorflow_model_server", "tritonserver", "mlserver", "torchserve", "ovms", "nereid");

    private ModelServerImages() {}

    /**
     * The model format of the container's server; null when the image is not known, or the command is a different one.
     */
    public static @Nullable String format(Container container) {
        String image = container.image();
        if (image == null || !runsItself(container.command())) {
            return null;
        }
        String name = name(image);
        String last = name.substring(name.lastIndexOf('/') + 1);
        String format = FORMATS.get(last);
        if (format == null) {
            int slash = name.lastIndexOf('/', Math.max(0, name.lastIndexOf('/') - 1));
            format = FORMATS.get(name.substring(name.contains("/") && slash >= 0 ? slash + 1 : 0));
        }
        if ("predictiveserver".equals(last)) {
            return CommandLineArguments.of(container.args()).getOrDefault("framework", format);
        }
        return format;
    }

    /** Whether the image has this name, in any registry and with any tag. */
    public static boolean is(String image, String name) {
        String found = name(image);
        return found.equals(name) || found.endsWith("/" + name);
    }

    /** The last part of an image's name, without registry, tag and digest. */
    public static String lastPart(String image) {
        String name = name(image);
        return name.substring(name.lastIndexOf('/') + 1);
    }

    /** The image with another tag; an image that is pinned by a digest is not changed. */
    public static String withTag(String image, String tag) {
        if (image.contains("@")) {
            return image;
        }
        return name(image, false) + ":" + tag;
    }

    private static boolean runsItself(List<String> command) {
        if (command.isEmpty()) {
            return true;
        }
        String program = command.get(0).substring(command.get(0).lastIndexOf('/') + 1);
        if (program.startsWith("python")
                && command.size() >= 3
                && command.get(1).equals("-m")) {
            return FORMATS.containsKey(command.get(2));
        }
        return COMMANDS.contains(program);
    }

    private static String name(String image) {
        return name(image, true);
    }

    private static String name(String image, boolean lower) {
        String name = image.contains("@") ? image.substring(0, image.indexOf('@')) : image;
        int colon = name.lastIndexOf(':');
        if (colon > name.lastIndexOf('/')) {
            name = name.substring(0, colon);
        }
        return lower ? name.toLowerCase(Locale.ROOT) : name;
    }
}
