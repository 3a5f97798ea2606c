// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Parses command-line arguments of the forms {@code --name=value}, {@code --name value} and {@code --flag}. Stateless.
 */
final class CommandLineArguments {
    private CommandLineArguments() {}

    /** Values by name, without dashes. The last occurrence wins, and a flag has the value {@code true}. */
    static Map<String, String> of(List<String> args) {
        Map<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < args.size(); i++) {
            String arg = args.get(i);
            if (!arg.startsWith("--")) {
                continue;
            }
            int equals = arg.indexOf('=');
            if (equals > 0) {
                all.put(arg.substring(2, equals), arg.substring(equals + 1));
            } else if (i + 1 < args.size() && !args.get(i + 1).startsWith("--")) {
                all.put(arg.substring(2), args.get(++i));
            } else {
                all.put(arg.substring(2), "true");
            }
        }
        return all;
    }

    /** The arguments without the named ones and their values. */
    static List<String> without(List<String> args, Set<String> names) {
        List<String> rest = new ArrayList<>();
        for (int i = 0; i < args.size(); i++) {
            String arg = args.get(i);
            if (arg.startsWith("--")) {
                int equals = arg.indexOf('=');
                if (names.contains(equals > 0 ? arg.substring(2, equals) : arg.substring(2))) {
                    if (equals < 0 && i + 1 < args.size() && !args.get(i + 1).startsWith("--")) {
                        i++;
                    }
                    continue;
                }
            }
            rest.add(arg);
        }
        return List.copyOf(rest);
    }
}
