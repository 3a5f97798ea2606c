// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import java.math.BigInteger;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * An option of an execution provider: ONNX Runtime's key for it, and how its values are checked. Immutable.
 *
 * @param key ONNX Runtime's key
 * @param expected what a value must be, for messages
 * @param reader returns ONNX Runtime's form of a value, or null when the value is wrong
 */
record ProviderOption(String key, String expected, Function<String, @Nullable String> reader) {
    private static final BigInteger SIZES = BigInteger.ONE.shiftLeft(64);
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]*");
    /** {@code input:1x3x224x224,other:1x8}. */
    private static final Pattern SHAPES = Pattern.compile("[^,:]+:\\d+(x\\d+)*(,[^,:]+:\\d+(x\\d+)*)*");

    /** A truth value, written as Triton reads it. */
    static ProviderOption flag(String key) {
        return new ProviderOption(key, "1 or true, 0 or false", text -> switch (text.toLowerCase(Locale.ROOT)) {
            case "1", "true" -> "1";
            case "0", "false" -> "0";
            default -> null;
        });
    }

    /** A whole number in a range, both ends included. */
    static ProviderOption whole(String key, int least, int most) {
        String expected = most == Integer.MAX_VALUE
                ? "a whole number >= " + least
                : "a whole number from " + least + " to " + most;
        return new ProviderOption(key, expected, text -> {
            try {
                int value = Integer.parseInt(text);
                return value >= least && value <= most ? Integer.toString(value) : null;
            } catch (NumberFormatException e) {
                return null;
            }
        });
    }

    /** A number of bytes, which may use all of 64 bits. */
    static ProviderOption bytes(String key) {
        return new ProviderOption(key, "a number of bytes from 0 to 18446744073709551615", text -> {
            try {
                BigInteger value = new BigInteger(text);
                return value.signum() >= 0 && value.compareTo(SIZES) < 0 ? value.toString() : null;
            } catch (NumberFormatException e) {
                return null;
            }
        });
    }

    /** One of a few names; the number of a name in ONNX Runtime's C API stands for it as well. */
    static ProviderOption choice(String key, Map<String, String> byText) {
        Map<String, String> sorted = new TreeMap<>(byText);
        return new ProviderOption(key, "one of " + String.join(", ", sorted.keySet()), byText::get);
    }

    /** A text that is not empty. */
    static ProviderOption text(String key) {
        return new ProviderOption(key, "a text", text -> text.isEmpty() ? null : text);
    }

    /** The name of a file, without a directory. */
    static ProviderOption fileName(String key) {
        return new ProviderOption(
                key,
                "the name of a file without a directory",
                text -> NAME.matcher(text).matches() ? text : null);
    }

    /** An absolute path. */
    static ProviderOption directory(String key) {
        return new ProviderOption(
                key,
                "an absolute path",
                text -> text.startsWith("/") ? Path.of(text).normalize().toString() : null);
    }

    /** A shape for each of several inputs. */
    static ProviderOption shapes(String key) {
        return new ProviderOption(
                key,
                "shapes of inputs such as input1:1x3x224x224,input2:1x8",
                text -> SHAPES.matcher(text).matches() ? text : null);
    }
}
