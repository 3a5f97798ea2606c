// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.spi.management.LoadOptions;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Collects the parameters of a load request: a configuration and files that replace those of the repository. Confined
 * to one thread; used for one request.
 */
public final class LoadParameters {
    private static final String FILE = "file:";

    private @Nullable String config;
    private Map<String, byte[]> files = Map.of();

    /** Whether a parameter holds the content of a file. */
    public static boolean isFile(String name) {
        return name.startsWith(FILE);
    }

    /** Adds a parameter; the value is a String, Long, Double, Boolean or byte[]. */
    public void put(String name, Object value) {
        if (name.equals("config")) {
            if (!(value instanceof String text)) {
                throw ServingException.invalidArgument("Config parameter 'config' must have string type for its value");
            }
            config = text;
        } else if (isFile(name)) {
            if (!(value instanceof byte[] content)) {
                throw wrongFile(name);
            }
            if (files.isEmpty()) {
                files = new LinkedHashMap<>();
            }
            files.put(name.substring(FILE.length()), content);
        } else {
            throw ServingException.invalidArgument(
                    "Unrecognized load parameter '" + name + "' with type '" + typeName(value) + "'");
        }
    }

    public static ServingException wrongFile(String name) {
        return ServingException.invalidArgument("File parameter '" + name + "' must have bytes type for its value");
    }

    private static String typeName(Object value) {
        if (value instanceof String) {
            return "STRING";
        }
        if (value instanceof Boolean) {
            return "BOOL";
        }
        if (value instanceof Long) {
            return "INT";
        }
        return value instanceof Double ? "DOUBLE" : "BYTES";
    }

    public LoadOptions options() {
        if (config == null && files.isEmpty()) {
            return LoadOptions.NONE;
        }
        if (config == null) {
            throw ServingException.invalidArgument("Load parameter 'config' must be specified for model file override");
        }
        return new LoadOptions(config, files);
    }
}
