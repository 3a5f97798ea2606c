// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import java.math.BigDecimal;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * What a container needs of NVIDIA's GPUs, by the names under which NVIDIA's device plugin offers them to Kubernetes.
 * Immutable.
 *
 * @param counts how many, each at least 1, by resource: {@value #GPU}, and {@code nvidia.com/mig-PROFILE} for parts
 */
public record NvidiaResources(Map<String, Integer> counts) {
    /** The resource of whole GPUs. */
    public static final String GPU = "nvidia.com/gpu";

    private static final String PART = "nvidia.com/mig-";
    private static final BigDecimal MOST = BigDecimal.valueOf(1024);

    /** Keeps the order of the names. */
    public NvidiaResources {
        counts = Collections.unmodifiableMap(new TreeMap<>(counts));
    }

    /**
     * Reads the limits of a container, and the requests that have no limit.
     *
     * @param resources the field {@code resources} of the container; another node than an object means none
     * @param where the place of the container, for messages
     * @throws ServingException INVALID_ARGUMENT for a number of GPUs that is not whole or not from 0 to 1024, and for a
     *     request that is not its limit
     */
    public static NvidiaResources of(JsonNode resources, String where) {
        Map<String, Integer> limits = read(resources.path("limits"), where + ".resources.limits");
        Map<String, Integer> requests = read(resources.path("requests"), where + ".resources.requests");
        Map<String, Integer> all = new TreeMap<>(requests);
        all.putAll(limits);
        for (Map.Entry<String, Integer> one : requests.entrySet()) {
            if (!one.getValue().equals(all.get(one.getKey()))) {
                throw ServingException.invalidArgument(
                        where + ".resources.requests: " + one.getKey() + " is " + one.getValue() + ", and its limit is "
                                + all.get(one.getKey()) + " (expected: the same number)",
                        "leave the request out");
            }
        }
        all.values().removeIf(count -> count == 0);
        return new NvidiaResources(all);
    }

    private static Map<String, Integer> read(JsonNode amounts, String where) {
        Map<String, Integer> all = new TreeMap<>();
        for (Map.Entry<String, JsonNode> one : amounts.properties()) {
            if (!one.getKey().equals(GPU) && !one.getKey().startsWith(PART)) {
                continue;
            }
            String text = one.getValue().asText();
            BigDecimal value = Quantity.parse(text).value();
            if (value.signum() < 0
                    || value.compareTo(MOST) > 0
                    || value.stripTrailingZeros().scale() > 0) {
                throw ServingException.invalidArgument(where + ": " + one.getKey() + " is '" + text
                        + "' (expected: a whole number from 0 to " + MOST + ")");
            }
            all.put(one.getKey(), value.intValueExact());
        }
        return all;
    }

    /** Whether the container needs no GPU. */
    public boolean isEmpty() {
        return counts.isEmpty();
    }

    /** Whether a device with this name of a product is one for a resource: a part has its profile in its name. */
    public static boolean offers(String resource, String product) {
        return resource.equals(GPU)
                ? !product.contains(" MIG ")
                : product.endsWith(" MIG " + resource.substring(PART.length()).replace(".me", "+me"));
    }

    /** The numbers with their resources, such as {@code 2 of nvidia.com/gpu}. */
    @Override
    public String toString() {
        return counts.entrySet().stream()
                .map(one -> one.getValue() + " of " + one.getKey())
                .collect(Collectors.joining(" and "));
    }
}
