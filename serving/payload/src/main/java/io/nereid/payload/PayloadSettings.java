// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a logger: the field {@code logger} of an InferenceService, and the annotations whose names begin with
 * {@code nereid.io/logger-}. Immutable.
 *
 * @param url where events are sent
 * @param requests whether requests are logged
 * @param responses whether responses are logged
 * @param metadataHeaders request headers that events include, as written in the specification
 * @param metadataAnnotations annotations that events include
 * @param storage where and how objects are written
 * @param format the format of objects
 * @param marshallerUrl the service that encodes objects instead of {@code format}; null for none
 * @param strategy when events are sent
 * @param batchSize most events in an object
 * @param batchInterval how long the first event of an object waits for others
 * @param samplingRate the share of requests that are logged, from 0 to 1
 * @param redact paths and headers that are redacted, as written; empty for none
 * @param queueEvents most events that are queued or being sent
 * @param queueBytes most bytes of bodies that are queued or being sent
 * @param retries most retries for an event
 * @param warnings settings that have no effect
 */
public record PayloadSettings(
        String url,
        boolean requests,
        boolean responses,
        List<String> metadataHeaders,
        List<String> metadataAnnotations,
        Storage storage,
        BatchFormat format,
        @Nullable String marshallerUrl,
        Strategy strategy,
        int batchSize,
        Duration batchInterval,
        double samplingRate,
        String redact,
        int queueEvents,
        long queueBytes,
        int retries,
        List<String> warnings) {
    /** The receiver of events when no URL is given, as in KServe. */
    public static final String DEFAULT_URL = "http://default-broker";

    /** The prefix of the annotations for settings that the specification does not have. */
    public static final String ANNOTATION = "nereid.io/logger-";

    private static final Set<String> FIELDS = Set.of(
            "url",
            "mode",
            "metadataHeaders",
            "metadataAnnotations",
            "storage",
            "marshallerUrl",
            "batchSize",
            "batchInterval");
    private static final Set<String> STORAGE_FIELDS = Set.of("path", "key", "parameters", "serviceAccountName");
    private static final List<String> OWN_PARAMETERS = List.of("format", "samplingRate", "redact");
    private static final List<String> ANNOTATIONS =
            List.of("sampling", "redact", "queue-events", "queue-bytes", "retries");

    /** When events are sent. */
    public enum Strategy {
        /** Each event at once. */
        IMMEDIATE,
        /** When a batch is full. */
        SIZE,
        /** When a batch is full, or its first event has waited for the interval. */
        TIMED
    }

    /**
     * The {@code storage} of a logger. Immutable.
     *
     * @param path a part of every key
     * @param key the entry of the secret with credentials; null for none
     * @param serviceAccount the service account whose secrets may be used; null for the namespace's default
     * @param parameters the parameters for the store, without the logger's own
     */
    public record Storage(
            String path, @Nullable String key, @Nullable String serviceAccount, Map<String, String> parameters) {}

    /**
     * Reads and validates the settings.
     *
     * @param url the receiver; empty for {@link #DEFAULT_URL}
     * @param mode {@code all}, {@code request} or {@code response}; empty for all
     * @param specification the rest of the {@code logger}
     * @param annotations the service's annotations
     * @throws ServingException INVALID_ARGUMENT that names the setting
     */
    public static PayloadSettings read(
            String url, String mode, JsonNode specification, Map<String, String> annotations) {
        specification.fieldNames().forEachRemaining(name -> {
            if (!FIELDS.contains(name)) {
                throw unknown("logger." + name, name, FIELDS);
            }
        });
        List<String> warnings = new ArrayList<>();
        String to = url.isEmpty() ? DEFAULT_URL : url;
        boolean http = to.startsWith("http://") || to.startsWith("https://");
        if (!mode.isEmpty() && !List.of("all", "request", "response").contains(mode)) {
            throw ServingException.invalidArgument(
                    "logger.mode is '" + mode + "' (expected: all, request or response)");
        }
        Map<String, String> own = new LinkedHashMap<>();
        Storage storage = storage(specification.path("storage"), own);
        Map<String, String> noted = annotations(annotations);
        if (!to.contains("://") || to.startsWith("file:") || http) {
            for (String name : storage.parameters.keySet()) {
                throw unknown("logger.storage.parameters." + name, name, OWN_PARAMETERS);
            }
            if (storage.key != null || storage.serviceAccount != null) {
                warnings.add("logger.storage.key and serviceAccountName have no effect on " + to);
            }
        }
        BatchFormat format = BatchFormat.JSON;
        String named = own.get("format");
        if (named != null) {
            try {
                format = BatchFormat.valueOf(named.toUpperCase(Locale.ROOT));
            } catch (IllegalArgumentException e) {
                throw ServingException.invalidArgument(
                        "logger.storage.parameters.format is '" + named + "' (expected: json, csv or parquet)");
            }
        }
        String marshaller = text(specification, "marshallerUrl");
        int size = (int) number(specification, "batchSize", 1, 1, 1_000_000);
        Duration interval = interval(specification.path("batchInterval"));
        if (http && size > 1) {
            warnings.add("logger.batchSize has no effect on " + to + ", which gets each event by itself");
        }
        if (!interval.isZero() && (http || size == 1)) {
            warnings.add("logger.batchInterval has no effect without a batchSize above 1 and a store of objects");
        }
        if (http && (named != null || !storage.path.isEmpty() || marshaller != null)) {
            warnings.add(
                    "logger.storage and marshallerUrl have no effect on " + to + ", which gets the bodies as they are");
        }
        Strategy strategy =
                http || size == 1 ? Strategy.IMMEDIATE : !interval.isZero() ? Strategy.TIMED : Strategy.SIZE;
        double sampling = rate(either(own, "samplingRate", noted, "sampling"));
        String redact = either(own, "redact", noted, "redact");
        if (redact != null) {
            Redaction.of(redact);
        }
        return new PayloadSettings(
                to,
                !mode.equals("response"),
                !mode.equals("request"),
                texts(specification, "metadataHeaders"),
                texts(specification, "metadataAnnotations"),
                storage,
                format,
                marshaller,
                strategy,
                strategy == Strategy.IMMEDIATE ? 1 : size,
                interval,
                sampling,
                redact == null ? "" : redact,
                (int) number(noted, "queue-events", 1000, 1, 1_000_000),
                number(noted, "queue-bytes", 64L << 20, 1, 1L << 40),
                (int) number(noted, "retries", 5, 0, 100),
                List.copyOf(warnings));
    }

    private static Storage storage(JsonNode tree, Map<String, String> own) {
        Map<String, String> others = new LinkedHashMap<>();
        tree.fieldNames().forEachRemaining(name -> {
            if (!STORAGE_FIELDS.contains(name)) {
                throw unknown("logger.storage." + name, name, STORAGE_FIELDS);
            }
        });
        tree.path("parameters").properties().forEach(e -> {
            Map<String, String> of = OWN_PARAMETERS.contains(e.getKey()) ? own : others;
            of.put(e.getKey(), e.getValue().asText());
        });
        String path = text(tree, "path");
        return new Storage(
                path == null ? "" : path, text(tree, "key"), text(tree, "serviceAccountName"), Map.copyOf(others));
    }

    private static Map<String, String> annotations(Map<String, String> all) {
        Map<String, String> noted = new LinkedHashMap<>();
        all.forEach((name, value) -> {
            if (name.startsWith(ANNOTATION)) {
                String rest = name.substring(ANNOTATION.length());
                if (!ANNOTATIONS.contains(rest)) {
                    throw unknown("the annotation " + name, rest, ANNOTATIONS);
                }
                noted.put(rest, value);
            }
        });
        return noted;
    }

    private static ServingException unknown(String what, String name, java.util.Collection<String> known) {
        return ServingException.invalidArgument(
                what + " is not a setting of a logger",
                NameSuggestions.didYouMean(
                        name, known, "known are " + known.stream().sorted().toList()));
    }

    private static @Nullable String either(
            Map<String, String> own, String parameter, Map<String, String> noted, String annotation) {
        String a = own.get(parameter);
        String b = noted.get(annotation);
        if (a != null && b != null && !a.equals(b)) {
            throw ServingException.invalidArgument("logger.storage.parameters." + parameter + " is '" + a
                    + "', but the annotation " + ANNOTATION + annotation + " is '" + b + "' (expected: one of them)");
        }
        return a == null ? b : a;
    }

    private static double rate(@Nullable String text) {
        if (text == null) {
            return 1;
        }
        try {
            double rate = Double.parseDouble(text);
            if (rate >= 0 && rate <= 1) {
                return rate;
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw ServingException.invalidArgument(
                "a logger's sampling rate is '" + text + "' (expected: a number from 0 to 1)", "0.1 logs every tenth");
    }

    private static @Nullable String text(JsonNode tree, String name) {
        String text = tree.path(name).asText("");
        return text.isEmpty() || tree.path(name).isNull() ? null : text;
    }

    private static List<String> texts(JsonNode tree, String name) {
        List<String> all = new ArrayList<>();
        tree.path(name).forEach(n -> all.add(n.asText()));
        return List.copyOf(all);
    }

    private static long number(JsonNode tree, String name, long otherwise, long least, long most) {
        JsonNode found = tree.path(name);
        return found.isMissingNode() || found.isNull()
                ? otherwise
                : number("logger." + name, found.asText(), least, most);
    }

    private static long number(Map<String, String> noted, String name, long otherwise, long least, long most) {
        String found = noted.get(name);
        return found == null ? otherwise : number("the annotation " + ANNOTATION + name, found, least, most);
    }

    /** Seconds, or a duration such as 500ms or 1m30s. */
    private static Duration interval(JsonNode node) {
        if (node.isMissingNode() || node.isNull()) {
            return Duration.ZERO;
        }
        String text = node.asText();
        Duration sum = Duration.ZERO;
        try {
            if (text.matches("[0-9]{1,6}")) {
                sum = Duration.ofSeconds(Long.parseLong(text));
            } else {
                for (String part : text.split("(?<=[a-z])(?=[0-9])", -1)) {
                    sum = sum.plus(Units.duration(part));
                }
            }
        } catch (IllegalArgumentException | ServingException e) {
            sum = Duration.ofSeconds(-1);
        }
        if (sum.isNegative() || sum.compareTo(Duration.ofDays(1)) > 0) {
            throw ServingException.invalidArgument(
                    "logger.batchInterval is '" + text + "' (expected: seconds, or a duration such as 5s, up to 24h)");
        }
        return sum;
    }

    private static long number(String what, String text, long least, long most) {
        try {
            long value = Long.parseLong(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw ServingException.invalidArgument(
                what + " is '" + text + "' (expected: a whole number from " + least + " to " + most + ")");
    }
}
