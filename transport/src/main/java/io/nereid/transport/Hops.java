// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import java.util.HashSet;
import java.util.Locale;
import java.util.Set;

/** Which headers are for one connection alone and are not relayed. Confined to one message. */
final class Hops {
    private static final Set<String> KNOWN =
            Set.of("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection");

    private Set<String> named = Set.of();

    /** Looks at a value of {@code connection}, which names further ones. */
    void connection(String value) {
        Set<String> all = new HashSet<>(named);
        for (String name : value.split(",", -1)) {
            all.add(name.strip().toLowerCase(Locale.ROOT));
        }
        named = all;
    }

    /** Whether a header ends here. */
    boolean drops(String lowerCaseName) {
        return KNOWN.contains(lowerCaseName) || lowerCaseName.startsWith("proxy-") || named.contains(lowerCaseName);
    }
}
