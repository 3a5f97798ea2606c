// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import io.nereid.base.access.Operation;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.routing.PercentEncoding;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.routing.RouteTable;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The target of a request: route, path parameters and query. Whatever is encoded decodes to the same text; a path parameter has no
 * unescaped slash unless it is the rest of the path. Confined to one thread.
 */
public final class PathTarget implements FuzzTarget {
    private static final RouteTable TABLE = new RouteTable(List.of(
            HttpRoute.get("/v2", Operation.INFERENCE, x -> {}),
            HttpRoute.get("/v2/models/{model}", Operation.INFERENCE, x -> {}),
            HttpRoute.post("/v2/models/{model}/infer", Operation.INFERENCE, x -> {}),
            HttpRoute.post("/v2/models/{model}/versions/{version}/infer", Operation.INFERENCE, x -> {}),
            HttpRoute.post("/v1/models/{model}:predict", Operation.INFERENCE, x -> {}),
            new HttpRoute(HttpRoute.ANY, "/v1/models/{rest...}", Operation.INFERENCE, x -> {})));

    @Override
    public void read(byte[] input) {
        String text = new String(input, StandardCharsets.ISO_8859_1);
        String valid = new String(input, StandardCharsets.UTF_8);
        if (valid.indexOf('\ufffd') < 0) {
            String encoded = PercentEncoding.encode(valid);
            if (!PercentEncoding.decode(encoded, false).equals(valid)) {
                throw new AssertionError(
                        "encoded as " + encoded + ", decoded as " + PercentEncoding.decode(encoded, false));
            }
        }
        RequestLine line = RequestLine.of((input.length & 1) != 0 ? "GET" : "POST", text);
        line.queryParameter("q");
        if (Operation.ofPath(line.method(), text) == null) {
            throw new AssertionError("a path without an operation");
        }
        RouteTable.Match match = TABLE.match(line.method(), line.path());
        if (match.route() != null
                && !match.route().template().contains("{rest")
                && line.path().indexOf('%') < 0) {
            for (String parameter : match.parameters()) {
                if (parameter.indexOf('/') >= 0) {
                    throw new AssertionError("the parameter '" + parameter + "' of " + text + " spans segments");
                }
            }
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "/v2/models/a%20b/infer?q=%41+b&q=2",
                "/v2/models/m/versions/3/infer",
                "/v1/models/m:predict",
                "/v1/models/m/labels/x:classify",
                "/v2/models/%2e%2e%2f/infer",
                "http://h:80/v2?q",
                "/v2/models/%c3%a9");
    }
}
