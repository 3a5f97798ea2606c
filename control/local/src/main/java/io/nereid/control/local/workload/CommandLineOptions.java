// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads command-line arguments such as {@code --name=value}, {@code --name value} and {@code --flag}. Stateless. */
public final class CommandLineOptions {
    private CommandLineOptions() {}

    /**
     * Returns the values by option name. Names have no leading dashes, and {@code _} in place of {@code -}. The last
     * value of an option wins; the value of a flag is {@code true}.
     */
    public static Map<String, String> read(List<String> arguments) {
        Map<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < arguments.size(); i++) {
            String a = arguments.get(i);
            if (!a.startsWith("--") || a.length() == 2) {
                continue;
            }
            int equals = a.indexOf('=');
            if (equals > 0) {
                all.put(name(a.substring(2, equals)), a.substring(equals + 1));
            } else if (i + 1 < arguments.size() && !arguments.get(i + 1).startsWith("--")) {
                all.put(name(a.substring(2)), arguments.get(++i));
            } else {
                all.put(name(a.substring(2)), "true");
            }
        }
        return all;
    }

    private static String name(String given) {
        return given.replace('-', '_');
    }

    /**
     * Replaces the value of an option, in the form that the option is written in; without the option nothing changes.
     */
    public static List<String> with(List<String> arguments, String option, String value) {
        List<String> all = new ArrayList<>(arguments);
        for (int i = 0; i < all.size(); i++) {
            String a = all.get(i);
            int equals = a.indexOf('=');
            if (a.startsWith("--") && equals > 0 && name(a.substring(2, equals)).equals(option)) {
                all.set(i, a.substring(0, equals + 1) + value);
            } else if (a.startsWith("--")
                    && name(a.substring(2)).equals(option)
                    && i + 1 < all.size()
                    && !all.get(i + 1).startsWith("--")) {
                all.set(i + 1, value);
            }
        }
        return List.copyOf(all);
    }
}
