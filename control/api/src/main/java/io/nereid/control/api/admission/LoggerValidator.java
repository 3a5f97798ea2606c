// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.base.NameSuggestions;
import io.nereid.control.api.InferenceService.LoggerSpec;
import io.nereid.control.api.InferenceService.StorageSpec;
import io.nereid.control.api.ValidationErrors;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Validates loggers and the {@code nereid.io/logger-*} annotations with further settings for them. Stateless. */
final class LoggerValidator {
    private static final String ANNOTATION = "nereid.io/logger-";

    /** The settings after the prefix, with the minimum and maximum of numbers; equal ones mark strings. */
    private static final Map<String, double[]> SETTINGS = Map.of(
            "sampling", new double[] {0, 1},
            "redact", new double[] {0, 0},
            "queue-events", new double[] {1, 1_000_000},
            "queue-bytes", new double[] {1, 1L << 40},
            "retries", new double[] {0, 100});

    private LoggerValidator() {}

    static void logger(String path, LoggerSpec logger, ValidationErrors problems) {
        StorageSpec store = logger.storage();
        String url = logger.url();
        // A file: URL is an extension of Nereid; a local directory needs no credentials.
        if (store != null && (url == null || !url.startsWith("file:"))) {
            List<String> missing = new ArrayList<>();
            if (store.path() == null || store.path().isEmpty()) {
                missing.add("path");
            }
            if (store.parameters().isEmpty()) {
                missing.add("parameters");
            }
            if (store.key() == null || store.key().isEmpty()) {
                missing.add("key");
            }
            if (!missing.isEmpty()) {
                problems.add(
                        path + ".storage",
                        String.join(", ", missing) + " missing; path, parameters and key must be given");
            }
        }
        if (url != null && !url.matches("(?s)[A-Za-z][A-Za-z0-9+.-]*:.+")) {
            problems.add(path + ".url", "expected a URL, found \"" + ValidationErrors.clip(url) + "\"");
        }
        if (logger.batchSize() != null && logger.batchSize() < 1) {
            problems.add(path + ".batchSize", logger.batchSize() + " is less than 1");
        }
        if (logger.batchInterval() != null && logger.batchInterval().isNegative()) {
            problems.add(path + ".batchInterval", logger.batchInterval().toSeconds() + " s is less than 0");
        }
    }

    static void annotations(String path, Map<String, String> annotations, ValidationErrors problems) {
        annotations.forEach((key, value) -> {
            if (!key.startsWith(ANNOTATION)) {
                return;
            }
            String name = key.substring(ANNOTATION.length());
            double[] range = SETTINGS.get(name);
            String at = path + "." + ValidationErrors.clip(key);
            if (range == null) {
                List<String> known = SETTINGS.keySet().stream().sorted().toList();
                problems.add(
                        at,
                        "not a setting of a logger; "
                                + NameSuggestions.didYouMean(
                                        name, known, "there are " + ANNOTATION + String.join(", -", known)));
            } else if (range[0] < range[1] && !within(value, range, name.equals("sampling"))) {
                problems.add(
                        at,
                        "expected a " + (name.equals("sampling") ? "number" : "whole number") + " from "
                                + (long) range[0] + " to " + (long) range[1] + ", found \""
                                + ValidationErrors.clip(value)
                                + "\"");
            }
        });
    }

    private static boolean within(String text, double[] range, boolean fractions) {
        try {
            double value = fractions ? Double.parseDouble(text) : Long.parseLong(text);
            return value >= range[0] && value <= range[1];
        } catch (NumberFormatException e) {
            return false;
        }
    }
}
