// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Command line arguments such as {@code --name=value}, {@code --name value} and {@code --flag}. Stateless. */
final class Options {
    private Options() {}

    /** Values by name without dashes, {@code -} in names as {@code _}; the last one counts; a flag is {@code true}. */
    static Map<String, String> read(List<String> arguments) {
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

    /** The arguments with another value for an option, in the form that it has; unchanged when it is not there. */
    static List<String> with(List<String> arguments, String option, String value) {
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
