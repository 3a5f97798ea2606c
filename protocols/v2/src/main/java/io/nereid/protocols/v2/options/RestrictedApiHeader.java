// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.options;

import io.nereid.base.ServingException;
import java.util.EnumMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The header that a client must send to call a restricted group of calls. Immutable.
 *
 * @param header a header's name in lower case
 * @param value its value
 */
public record RestrictedApiHeader(String header, String value) {
    /**
     * Whether a header has the right value; compares in constant time, so that the value cannot be guessed by timing.
     */
    public boolean allows(@Nullable String given) {
        if (given == null || given.length() != value.length()) {
            return false;
        }
        int different = 0;
        for (int i = 0; i < given.length(); i++) {
            different |= given.charAt(i) ^ value.charAt(i);
        }
        return different == 0;
    }

    /** Parses {@code group,group:header=value} and adds its restrictions; the header gets a prefix. */
    static void parse(String spec, String prefix, EnumMap<ApiGroup, RestrictedApiHeader> into) {
        int colon = spec.indexOf(':');
        int equals = spec.indexOf('=', colon + 1);
        if (colon <= 0 || equals <= colon + 1) {
            throw ServingException.invalidArgument(
                    "restriction '" + spec + "' is not of the form <api>[,<api>]:<header>=<value>");
        }
        String header = prefix + spec.substring(colon + 1, equals).strip().toLowerCase(java.util.Locale.ROOT);
        RestrictedApiHeader restriction = new RestrictedApiHeader(header, spec.substring(equals + 1));
        for (String name : spec.substring(0, colon).split(",", -1)) {
            if (into.put(ApiGroup.of(name.strip()), restriction) != null) {
                throw ServingException.invalidArgument(
                        "restricted api '" + name.strip() + "' can not be specified in multiple config groups");
            }
        }
    }

    /** An unmodifiable copy. */
    static Map<ApiGroup, RestrictedApiHeader> copy(EnumMap<ApiGroup, RestrictedApiHeader> restrictions) {
        return restrictions.isEmpty() ? Map.of() : java.util.Collections.unmodifiableMap(new EnumMap<>(restrictions));
    }
}
