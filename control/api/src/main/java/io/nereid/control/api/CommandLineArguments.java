// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * Parses and edits command-line arguments of the forms {@code --name=value}, {@code --name value} and {@code --flag}.
 * Stateless.
 *
 * <pre>{@code
 * CommandLineArguments.of(List.of("--model_name=iris", "--debug"));  // {model_name=iris, debug=true}
 * }</pre>
 */
public final class CommandLineArguments {
    private CommandLineArguments() {}

    /** Values by name, without dashes. The last occurrence wins, and a flag has the value {@code true}. */
    public static Map<String, String> of(List<String> args) {
        return read(args, UnaryOperator.identity());
    }

    /** The same as {@link #of}, with {@code _} in place of each {@code -} in a name. */
    public static Map<String, String> normalized(List<String> args) {
        return read(args, CommandLineArguments::normalized);
    }

    private static Map<String, String> read(List<String> args, UnaryOperator<String> naming) {
        Map<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < args.size(); i++) {
            String arg = args.get(i);
            if (!isNamed(arg)) {
                continue;
            }
            int equals = arg.indexOf('=');
            if (equals > 0) {
                all.put(naming.apply(name(arg)), arg.substring(equals + 1));
            } else if (hasValueAfter(args, i)) {
                all.put(naming.apply(name(arg)), args.get(++i));
            } else {
                all.put(naming.apply(name(arg)), "true");
            }
        }
        return all;
    }

    /** The arguments without the named ones and their values. Names are compared as written. */
    public static List<String> without(List<String> args, Set<String> names) {
        List<String> rest = new ArrayList<>();
        for (int i = 0; i < args.size(); i++) {
            String arg = args.get(i);
            if (isNamed(arg) && names.contains(name(arg))) {
                if (arg.indexOf('=') < 0 && hasValueAfter(args, i)) {
                    i++;
                }
                continue;
            }
            rest.add(arg);
        }
        return List.copyOf(rest);
    }

    /** The arguments with each value joined to its name by {@code =}. */
    public static List<String> joined(List<String> args) {
        List<String> all = new ArrayList<>();
        for (int i = 0; i < args.size(); i++) {
            String arg = args.get(i);
            boolean value = isNamed(arg) && arg.indexOf('=') < 0 && hasValueAfter(args, i);
            all.add(value ? arg + "=" + args.get(++i) : arg);
        }
        return List.copyOf(all);
    }

    /**
     * Replaces the value of an argument wherever it occurs with a value, and keeps the form that it is written in;
     * nothing changes if it does not occur.
     *
     * @param name the normalized name
     */
    public static List<String> with(List<String> args, String name, String value) {
        List<String> all = new ArrayList<>(args);
        for (int i = 0; i < all.size(); i++) {
            String arg = all.get(i);
            if (!isNamed(arg) || !normalized(name(arg)).equals(name)) {
                continue;
            }
            int equals = arg.indexOf('=');
            if (equals > 0) {
                all.set(i, arg.substring(0, equals + 1) + value);
            } else if (hasValueAfter(all, i)) {
                all.set(i + 1, value);
            }
        }
        return List.copyOf(all);
    }

    /** A bare {@code --} is not an argument with a name. */
    private static boolean isNamed(String arg) {
        return arg.startsWith("--") && arg.length() > 2;
    }

    private static String name(String arg) {
        int equals = arg.indexOf('=');
        return equals > 0 ? arg.substring(2, equals) : arg.substring(2);
    }

    private static String normalized(String name) {
        return name.replace('-', '_');
    }

    private static boolean hasValueAfter(List<String> args, int index) {
        return index + 1 < args.size() && !args.get(index + 1).startsWith("--");
    }
}
