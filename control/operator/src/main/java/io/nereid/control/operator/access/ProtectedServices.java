// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import io.nereid.control.core.Route;
import io.nereid.control.operator.access.AccessApi.Right;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The services and graphs of which callers need a right. The gateway calls the services of a graph by itself, so that
 * callers of a graph need the rights on those, too. Thread-safe: reads take no lock.
 */
public final class ProtectedServices {
    private final AccessReviewOptions.Mode mode;
    private final Map<String, Entry> entries = new ConcurrentHashMap<>();
    private volatile boolean any;

    /**
     * A service or graph.
     *
     * @param needed whether callers need a right on it
     * @param steps the services of the graph; empty for a service
     */
    private record Entry(String resource, boolean needed, Set<String> steps) {}

    /** @param mode which services need rights */
    public ProtectedServices(AccessReviewOptions.Mode mode) {
        this.mode = mode;
    }

    /**
     * Takes up a service or graph; must be called before requests can reach it.
     *
     * @param annotation the value of its annotation; empty for none. What is neither {@code true} nor {@code false} counts
     *     as {@code true}
     * @param steps the names of the services that a graph calls
     */
    public synchronized void put(String namespace, String name, String kind, String annotation, Set<String> steps) {
        String value = annotation.strip().toLowerCase(Locale.ROOT);
        boolean needed = value.isEmpty() ? mode == AccessReviewOptions.Mode.ALL : !value.equals("false");
        String resource = kind.equals("InferenceGraph") ? "inferencegraphs" : "inferenceservices";
        entries.put(key(namespace, name), new Entry(resource, needed, new TreeSet<>(steps)));
        any = entries.values().stream().anyMatch(Entry::needed);
    }

    /** Forgets a service or graph, which requests cannot reach any more. */
    public synchronized void remove(String namespace, String name) {
        entries.remove(key(namespace, name));
        any = entries.values().stream().anyMatch(Entry::needed);
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    AccessReviewOptions.Mode mode() {
        return mode;
    }

    /** Whether there is one at all. */
    boolean any() {
        return any;
    }

    /** The rights that a caller of a route needs; empty when it is open. */
    List<Right> rights(Route route, String verb) {
        Entry entry = entries.get(key(route.namespace(), route.name()));
        if (entry == null) {
            return List.of();
        }
        if (entry.steps.isEmpty()) {
            return entry.needed ? List.of(new Right(verb, entry.resource, route.namespace(), route.name())) : List.of();
        }
        List<Right> rights = new ArrayList<>();
        if (entry.needed) {
            rights.add(new Right(verb, entry.resource, route.namespace(), route.name()));
        }
        for (String step : entry.steps) {
            Entry service = entries.get(key(route.namespace(), step));
            if (service != null && service.needed) {
                rights.add(new Right(verb, service.resource, route.namespace(), step));
            }
        }
        return rights;
    }
}
