// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tracing;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Trace settings of the server or of a model (Triton: {@code TraceSetting}). Immutable.
 *
 * @param levels OFF alone, or any of TIMESTAMPS and TENSORS
 * @param rate every {@code rate}-th request is traced, at least 1
 * @param count remaining number of traces; -1 for no limit
 * @param logFrequency number of traces in a file; 0 for a single file
 */
record TraceSettings(Set<Level> levels, long rate, long count, long logFrequency) {
    static final TraceSettings DEFAULT = new TraceSettings(Set.of(Level.OFF), 1000, -1, 0);

    /** What a trace records. */
    enum Level {
        OFF,
        TIMESTAMPS,
        TENSORS
    }

    boolean on() {
        return !levels.contains(Level.OFF) && count != 0;
    }

    boolean tensors() {
        return levels.contains(Level.TENSORS);
    }

    boolean timestamps() {
        return levels.contains(Level.TIMESTAMPS);
    }

    /** Returns these settings with changes; a null value is replaced by that of {@code fallback}. */
    TraceSettings with(Map<String, ? extends @Nullable List<String>> changes, TraceSettings fallback) {
        TraceSettings s = this;
        for (Map.Entry<String, ? extends @Nullable List<String>> e : changes.entrySet()) {
            List<String> values = e.getValue();
            s = switch (e.getKey()) {
                case "trace_level" ->
                    new TraceSettings(
                            values == null ? fallback.levels : levels(values), s.rate, s.count, s.logFrequency);
                case "trace_rate" ->
                    new TraceSettings(
                            s.levels,
                            values == null ? fallback.rate : number("trace_rate", values, 1),
                            s.count,
                            s.logFrequency);
                case "trace_count" ->
                    new TraceSettings(
                            s.levels,
                            s.rate,
                            values == null ? fallback.count : number("trace_count", values, -1),
                            s.logFrequency);
                case "log_frequency" ->
                    new TraceSettings(
                            s.levels,
                            s.rate,
                            s.count,
                            values == null ? fallback.logFrequency : number("log_frequency", values, 0));
                case "trace_file" ->
                    throw ServingException.of(
                            ErrorCode.UNIMPLEMENTED,
                            "trace file location can not be updated through network protocol",
                            "start the server with --trace-config triton,file=PATH");
                case "trace_mode" ->
                    throw ServingException.of(
                            ErrorCode.UNIMPLEMENTED,
                            "trace mode can not be updated through network protocol",
                            "start the server with --trace-config mode=MODE");
                default ->
                    throw ServingException.invalidArgument(
                            "unknown trace setting '" + e.getKey() + "'",
                            NameSuggestions.didYouMean(
                                    e.getKey(),
                                    List.of("trace_level", "trace_rate", "trace_count", "log_frequency"),
                                    "expected trace_level, trace_rate, trace_count or log_frequency"));
            };
        }
        return s;
    }

    private static Set<Level> levels(List<String> values) {
        Set<Level> levels = new LinkedHashSet<>();
        for (String value : values) {
            try {
                Level level = Level.valueOf(value.toUpperCase(Locale.ROOT));
                levels.add(level);
            } catch (IllegalArgumentException e) {
                // Deprecated names of TIMESTAMPS.
                if (value.equals("MIN") || value.equals("MAX")) {
                    levels.add(Level.TIMESTAMPS);
                    continue;
                }
                throw ServingException.invalidArgument(
                        "unknown trace level '" + value + "'", "expected OFF, TIMESTAMPS or TENSORS");
            }
        }
        if (levels.isEmpty()) {
            throw ServingException.invalidArgument("no trace level given", "expected OFF, TIMESTAMPS or TENSORS");
        }
        if (levels.contains(Level.OFF) && levels.size() > 1) {
            throw ServingException.invalidArgument("Expect only one trace level 'OFF' is specified");
        }
        return levels;
    }

    private static long number(String name, List<String> values, long least) {
        String text = values.size() == 1 ? values.get(0) : values.toString();
        try {
            long n = Long.parseLong(text.strip());
            if (n >= least) {
                return n;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument(
                "Unable to parse '" + name + "', got: " + text + " (expected: a whole number >= " + least + ")");
    }

    /** Returns the settings with the names and values that clients see. */
    Map<String, List<String>> shown() {
        Map<String, List<String>> shown = new LinkedHashMap<>();
        List<String> names = new ArrayList<>();
        levels.forEach(l -> names.add(l.name()));
        shown.put("trace_level", names);
        shown.put("trace_rate", List.of(Long.toString(rate)));
        shown.put("trace_count", List.of(Long.toString(count)));
        shown.put("log_frequency", List.of(Long.toString(logFrequency)));
        return shown;
    }
}
