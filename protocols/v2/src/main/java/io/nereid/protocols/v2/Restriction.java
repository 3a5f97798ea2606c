// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a caller of a restricted group of calls must send. Immutable.
 *
 * @param header a header's name in lower case
 * @param value its value
 */
record Restriction(String header, String value) {
    /** Whether a header's value opens the group; takes the same time for every wrong value of one length. */
    boolean allows(@Nullable String given) {
        if (given == null || given.length() != value.length()) {
            return false;
        }
        int different = 0;
        for (int i = 0; i < given.length(); i++) {
            different |= given.charAt(i) ^ value.charAt(i);
        }
        return different == 0;
    }

    /** Adds what {@code group,group:header=value} says, the header under a prefix. */
    static void parse(String spec, String prefix, EnumMap<ApiGroup, Restriction> into) {
        int colon = spec.indexOf(':');
        int equals = spec.indexOf('=', colon + 1);
        if (colon <= 0 || equals <= colon + 1) {
            throw ServingException.invalidArgument(
                    "restriction '" + spec + "' is not of the form <api>[,<api>]:<header>=<value>");
        }
        String header = prefix + spec.substring(colon + 1, equals).strip().toLowerCase(java.util.Locale.ROOT);
        Restriction restriction = new Restriction(header, spec.substring(equals + 1));
        for (String name : spec.substring(0, colon).split(",", -1)) {
            if (into.put(ApiGroup.of(name.strip()), restriction) != null) {
                throw ServingException.invalidArgument(
                        "restricted api '" + name.strip() + "' can not be specified in multiple config groups");
            }
        }
    }

    /** An unmodifiable copy. */
    static Map<ApiGroup, Restriction> copy(EnumMap<ApiGroup, Restriction> restrictions) {
        return restrictions.isEmpty() ? Map.of() : java.util.Collections.unmodifiableMap(new EnumMap<>(restrictions));
    }
}
