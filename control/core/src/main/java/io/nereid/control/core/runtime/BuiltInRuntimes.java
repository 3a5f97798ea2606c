// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.runtime;

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
 * The ClusterServingRuntimes that exist without being applied. They have the names, formats, priorities, protocols and
 * arguments of those that KServe ships; the annotation {@value #ENGINE} marks runtimes whose models run in the engine
 * of this server. Stateless.
 */
public final class BuiltInRuntimes {
    /** The annotation with the value {@code "true"} of runtimes whose models run in the engine. */
    public static final String ENGINE = "nereid.io/engine";

    private static final String FILE = "built-in-runtimes.json";

    private BuiltInRuntimes() {}

    /** All built-in runtimes as records. */
    public static List<ServingRuntime> all() {
        List<ServingRuntime> all = new ArrayList<>();
        for (ObjectNode tree : trees()) {
            all.add(ServingRuntime.read(tree));
        }
        return List.copyOf(all);
    }

    /** All built-in runtimes as resources; each call returns new trees, which the caller may modify. */
    public static List<ObjectNode> trees() {
        try (InputStream file = BuiltInRuntimes.class.getResourceAsStream(FILE)) {
            List<ObjectNode> all = new ArrayList<>();
            for (JsonNode one : new ObjectMapper().readTree(Objects.requireNonNull(file))) {
                all.add((ObjectNode) one);
            }
            return all;
        } catch (IOException e) {
            throw ServingException.internal("the built-in runtimes cannot be read", e);
        }
    }

    /** These runtimes, and the built-in ones that none of them replaces by its name. */
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
