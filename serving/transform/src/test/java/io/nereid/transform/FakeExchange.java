// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.testkit.InMemoryExchange;
import java.util.List;

/** An exchange without a socket. Confined to a test. */
final class FakeExchange extends InMemoryExchange {
    FakeExchange(String method, String path, String body) {
        super(method, path, List.of(), region(body));
    }

    /** With a request header. */
    FakeExchange with(String name, String value) {
        headers.put(name, value);
        return this;
    }

    /** Status and body of the reply. */
    String answer() {
        return replied() == null ? "none" : status() + " " + text();
    }

    @Override
    public String query() {
        return method().equals("GET") ? "a=b" : "";
    }
}
