// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.config;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.nereid.app.config.ConfigurationFile.Entry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

/**
 * The options of {@code nereid serve} as they are in force, each with where its value comes from: {@code nereid config show}
 * prints them, and the settings page of the web console shows them. Values that are secrets are not among them.
 *
 * <pre>{@code
 * for (EffectiveOptions.Row row : EffectiveOptions.of(parsed, configuration, System.getenv(), false)) {
 *     out.println(row.option() + " = " + row.value() + "   # " + row.from());
 * }
 * }</pre>
 */
public final class EffectiveOptions {
    /** Values that are secrets themselves, not files with them, alone or as part of a setting. */
    private static final Pattern SECRET =
            Pattern.compile("((?:password|secret|token|credential)[^=,/]*(?<!file)=)[^,]*");

    /** tritonserver's options that restrict calls to those who send a header, whose value is the secret. */
    private static final Set<String> RESTRICTED = Set.of("--http-restricted-api", "--grpc-restricted-protocol");

    /**
     * One option. Immutable.
     *
     * @param option its longest name without hyphens
     * @param value as text; {@code -} for none
     * @param from {@code command line}, the name of a variable, the place in a file, or {@code default}
     */
    public record Row(String option, String value, String from) {}

    private EffectiveOptions() {}

    /**
     * Lists the options.
     *
     * @param parsed the arguments of the command, with those of the configuration file
     * @param configuration where the arguments come from
     * @param environment the variables of the process
     * @param all whether to list options without a value too
     */
    public static List<Row> of(
            ParseResult parsed, ServeConfiguration configuration, Map<String, String> environment, boolean all) {
        List<Row> rows = new ArrayList<>();
        Entry listed = configuration.used().get("models");
        if (!parsed.matchedPositionals().isEmpty()) {
            rows.add(new Row(
                    "models",
                    shown(parsed.matchedPositionals().get(0).getValue()),
                    listed == null ? "command line" : place(configuration, listed)));
        }
        for (OptionSpec option : parsed.commandSpec().options()) {
            String name = option.longestName();
            Entry entry = configuration.used().get(name);
            String variable = ServeConfiguration.variable(option);
            String origin = entry != null
                    ? place(configuration, entry)
                    : parsed.hasMatchedOption(option)
                            ? "command line"
                            : environment.containsKey(variable) ? variable : "default";
            Object value = option.getValue();
            boolean set = !origin.equals("default");
            boolean shown = set || !option.hidden() && (all || value != null && !isEmpty(value));
            if (shown && !option.usageHelp() && !option.versionHelp()) {
                rows.add(new Row(
                        name.replaceFirst("^-+", ""),
                        RESTRICTED.contains(name) ? restricted(value) : mask(name, shown(value)),
                        origin));
            }
        }
        return rows;
    }

    /** The options as an array of objects with {@code option}, {@code value} and {@code from}. */
    public static ArrayNode document(List<Row> rows) {
        ArrayNode array = new ObjectMapper().createArrayNode();
        rows.forEach(row -> array.addObject()
                .put("option", row.option)
                .put("value", row.value)
                .put("from", row.from));
        return array;
    }

    private static boolean isEmpty(Object value) {
        return value instanceof List<?> list && list.isEmpty() || value.equals("");
    }

    private static String place(ServeConfiguration configuration, Entry entry) {
        return Objects.requireNonNull(configuration.file()).place(entry);
    }

    private static String shown(@Nullable Object value) {
        if (value == null) {
            return "-";
        }
        if (value instanceof List<?> list) {
            return list.isEmpty()
                    ? "-"
                    : String.join(", ", list.stream().map(Object::toString).toList());
        }
        return value instanceof Object[] array ? Arrays.toString(array) : value.toString();
    }

    private static String restricted(@Nullable Object value) {
        return value instanceof List<?> list
                ? shown(list.stream()
                        .map(e -> e.toString().replaceFirst("(?s)=.*", "=(not shown)"))
                        .toList())
                : shown(value);
    }

    private static String mask(String name, String value) {
        return SECRET.matcher(name + "=" + value).replaceAll("$1(not shown)").substring(name.length() + 1);
    }
}
