// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.RateLimiter.Total;
import io.nereid.spi.config.InstanceGroup.Resource;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Totals and current use of the rate limiter's resources. Guarded by the limiter's lock. */
final class RateLimiterResources {
    private final List<Total> explicit;
    private final Map<Key, Integer> demands = new HashMap<>();
    private final Map<Key, Integer> used = new HashMap<>();

    RateLimiterResources(List<Total> totals) {
        this.explicit = List.copyOf(totals);
    }

    /** Returns the requirements of an instance on a device, by resource. */
    static Map<Key, Integer> needs(List<Resource> resources, int device) {
        Map<Key, Integer> needs = new HashMap<>();
        for (Resource r : resources) {
            if (r.count() > 0) {
                needs.merge(new Key(r.name(), r.global() ? Key.GLOBAL : device), r.count(), Integer::sum);
            }
        }
        return needs;
    }

    int used(Key key) {
        return used.getOrDefault(key, 0);
    }

    /** Returns whether all of these amounts are free. */
    boolean free(Map<Key, Integer> needs) {
        for (Map.Entry<Key, Integer> need : needs.entrySet()) {
            if (used(need.getKey()) + need.getValue() > total(need.getKey())) {
                return false;
            }
        }
        return true;
    }

    void take(Map<Key, Integer> needs) {
        needs.forEach((key, count) -> used.merge(key, count, Integer::sum));
    }

    void giveBack(Map<Key, Integer> needs) {
        needs.forEach((key, count) -> used.merge(key, -count, Integer::sum));
    }

    void forgetDemands() {
        demands.clear();
    }

    /** Notes the requirements of an instance: the total of a resource without explicit total is the largest of them. */
    void demand(Map<Key, Integer> needs) {
        needs.forEach((key, count) -> demands.merge(key, count, Math::max));
    }

    private int total(Key key) {
        int limit = limit(key);
        return limit >= 0 ? limit : demands.getOrDefault(key, 0);
    }

    /** Returns the explicit total of a resource, or -1. A total for one device takes precedence over a general one. */
    private int limit(Key key) {
        int limit = -1;
        for (Total total : explicit) {
            if (total.name().equals(key.name)) {
                if (total.device() == key.device) {
                    return total.count();
                }
                if (total.device() == Total.EVERY_DEVICE || key.device == Key.GLOBAL) {
                    limit = Math.max(limit, total.count());
                }
            }
        }
        return limit;
    }

    /**
     * Checks that instances with these requirements could run, together with the known instances.
     *
     * @throws ServingException INVALID_ARGUMENT when one requires more than the explicit total, or when a resource
     *     is both global and specific to a device
     */
    void check(Collection<Map<Key, Integer>> more) {
        Map<Key, Integer> most = new HashMap<>(demands);
        for (Map<Key, Integer> needs : more) {
            needs.forEach((key, count) -> most.merge(key, count, Math::max));
        }
        for (Map<Key, Integer> needs : more) {
            for (Key key : needs.keySet()) {
                check(key, most);
            }
        }
    }

    private void check(Key key, Map<Key, Integer> most) {
        int limit = limit(key);
        int least = most.getOrDefault(key, 0);
        if (limit >= 0 && limit < least) {
            throw ServingException.invalidArgument(
                    "Resource count for \"" + key.name + "\" is limited to " + limit
                            + " which will prevent scheduling of one or more model instances, the minimum required"
                            + " count is "
                            + least,
                    "give a larger --rate-limit-resource, or lower the model's resources");
        }
        for (Key other : most.keySet()) {
            if (other.name.equals(key.name) && (other.device == Key.GLOBAL) != (key.device == Key.GLOBAL)) {
                throw ServingException.invalidArgument("Resource \"" + key.name
                        + "\" is present as both global and device-specific resource in the model configuration.");
            }
        }
    }

    /** A resource on a device, or a global resource. Immutable. */
    record Key(String name, int device) {
        static final int GLOBAL = -2;
    }
}
