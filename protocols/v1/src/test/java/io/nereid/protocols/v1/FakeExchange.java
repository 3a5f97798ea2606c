// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.HttpReply;
import java.util.List;
import java.util.Objects;

/** An exchange without a socket. Confined to a test. */
public final class FakeExchange extends InMemoryExchange {
    FakeExchange(String method, String path, List<String> parameters, String body) {
        super(method, path, parameters, region(body));
    }

    /** With a request header. */
    FakeExchange header(String name, String value) {
        headers.put(name, value);
        return this;
    }

    public HttpReply answer() {
        return Objects.requireNonNull(replied(), "no reply");
    }
}
