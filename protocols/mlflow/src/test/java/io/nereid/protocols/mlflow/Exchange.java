// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.testkit.InMemoryExchange;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** An exchange without a socket. Confined to a test. */
final class Exchange extends InMemoryExchange {
    private final Map<String, String> query;

    Exchange(String type, String body, Map<String, String> query, List<String> parameters) {
        super("POST", "/invocations", parameters, region(body));
        this.query = query;
        headers.put("content-type", type);
    }

    @Override
    public @Nullable String queryParameter(String name) {
        return query.get(name);
    }
}
