// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ServingRuntime;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The ClusterServingRuntimes that are there without being applied. They have the names, formats, priorities, protocols and
 * arguments of those that KServe ships; the annotation {@value #ENGINE} says that the engine of this server runs their models.
 * Stateless.
 */
public final class BuiltInRuntimes {
    /** The annotation of runtimes whose models the engine runs: {@code "true"}. */
    public static final String ENGINE = "nereid.io/engine";

    private BuiltInRuntimes() {}

    /** All of them, as records. */
    public static List<ServingRuntime> all() {
        List<ServingRuntime> all = new ArrayList<>();
        for (ObjectNode tree : trees()) {
            all.add(ServingRuntime.read(tree));
        }
        return List.copyOf(all);
    }

    /** All of them, as resources that the caller owns. */
    public static List<ObjectNode> trees() {
        try (InputStream file = BuiltInRuntimes.class.getResourceAsStream("built-in-runtimes.json")) {
            List<ObjectNode> all = new ArrayList<>();
            for (JsonNode one : new ObjectMapper().readTree(Objects.requireNonNull(file))) {
                all.add((ObjectNode) one);
            }
            return all;
        } catch (IOException e) {
            throw ServingException.internal("the built-in runtimes cannot be read", e);
        }
    }

    /** These runtimes, and the built-in ones of other names. */
    static List<ServingRuntime> with(List<ServingRuntime> stored) {
        List<ServingRuntime> all = new ArrayList<>(stored);
        for (ServingRuntime one : all()) {
            if (stored.stream().noneMatch(other -> other.name().equals(one.name()))) {
                all.add(one);
            }
        }
        return List.copyOf(all);
    }
}
