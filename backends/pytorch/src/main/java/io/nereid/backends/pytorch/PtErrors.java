// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.Locale;

/** Turns the engine's failures into ours. Its texts are long traces, of which one line tells what is wrong. Immutable. */
final class PtErrors {
    private static final String RUNTIME_ERROR = "RuntimeError: ";

    private PtErrors() {}

    /** The engine could not load a model. */
    static ServingException loading(String model, Path file, RuntimeException e) {
        String text = first(e);
        String remedy;
        if (text.contains("Unknown builtin op") || text.contains("Unknown custom class")) {
            remedy = "the model uses an operator of a library that this engine does not have, such as torchvision's:"
                    + " save the model without it, or export it to ONNX";
        } else if (text.contains("version") && text.contains("supported")) {
            remedy = "save the model with PyTorch 2.7 or older";
        } else {
            remedy = "load the file with torch.jit.load in Python, and save it again";
        }
        return ServingException.wrap(
                memory(text) ? ErrorCode.RESOURCE_EXHAUSTED : ErrorCode.INVALID_ARGUMENT,
                "unable to load model '" + model + "' from '" + file + "': " + text,
                remedy,
                e);
    }

    /** A run failed: the code says so of what it was given. */
    static ServingException running(String model, RuntimeException e) {
        String text = last(e);
        return memory(text)
                ? ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED, "not enough memory to run model '" + model + "': " + text)
                : ServingException.invalidArgument("model '" + model + "' refused the input: " + text);
    }

    private static boolean memory(String text) {
        String lower = text.toLowerCase(Locale.ROOT);
        return lower.contains("can't allocate memory") || lower.contains("not enough memory");
    }

    private static String first(RuntimeException e) {
        String found = "";
        for (String line : text(e).split("\n")) {
            String stripped = line.strip();
            if (stripped.startsWith("Unknown ")) {
                return stripped;
            }
            found = found.isEmpty() ? stripped : found;
        }
        return found;
    }

    private static String last(RuntimeException e) {
        String found = "";
        for (String line : text(e).split("\n")) {
            String stripped = line.strip();
            if (stripped.startsWith("Exception raised from") || stripped.startsWith("frame #")) {
                break;
            }
            found = stripped.isEmpty() ? found : stripped;
        }
        return found.startsWith(RUNTIME_ERROR) ? found.substring(RUNTIME_ERROR.length()) : found;
    }

    private static String text(RuntimeException e) {
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }
}
