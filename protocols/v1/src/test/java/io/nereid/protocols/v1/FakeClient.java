// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpRoute;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Acts as the transport: calls the first route that matches and maps the exceptions of its handler. */
public final class FakeClient {
    private final List<HttpRoute> routes;

    public FakeClient(V1Codec codec) {
        routes = new ArrayList<>(codec.httpRoutes());
        routes.sort(Comparator.comparing((HttpRoute r) -> r.method().equals(HttpRoute.ANY))
                .thenComparing((HttpRoute r) -> -r.template().length()));
    }

    public FakeExchange call(String method, String path, String body) {
        return call(method, path, body, "", "");
    }

    FakeExchange call(String method, String path, String body, String header, String value) {
        return call(method, path, body, Map.of(header, value));
    }

    public FakeExchange call(String method, String path, String body, Map<String, String> headers) {
        for (HttpRoute route : routes) {
            Matcher m = Pattern.compile(
                            route.template().replace("/{rest...}", "(?:/.*)?").replaceAll("\\{[a-z]+}", "([^/:]+)"))
                    .matcher(path);
            if ((route.method().equals(method) || route.method().equals(HttpRoute.ANY)) && m.matches()) {
                List<String> parameters = new ArrayList<>();
                for (int i = 1; i <= m.groupCount(); i++) {
                    parameters.add(m.group(i));
                }
                FakeExchange x = new FakeExchange(method, path, parameters, body);
                headers.forEach(x::header);
                try {
                    route.handler().handle(x);
                } catch (ServingException e) {
                    x.fail(e);
                }
                return x;
            }
        }
        throw new AssertionError("no route for " + method + " " + path);
    }
}
