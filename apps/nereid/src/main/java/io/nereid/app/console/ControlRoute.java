// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ResponseStream;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The control API below a path of the console: a page may only call the port that it came from, and the control API has
 * a port of its own. The same handler decides and answers; only the beginning of the path differs. Immutable.
 */
final class ControlRoute {
    private ControlRoute() {}

    /**
     * Makes the route.
     *
     * @param prefix the path below which the control API is to be found, without a slash at the end
     * @param control the control API's route, which matches every path
     */
    static HttpRoute below(String prefix, HttpRoute control) {
        return new HttpRoute(
                HttpRoute.ANY,
                prefix + "/{rest...}",
                (method, path) -> control.operations().select(method, without(prefix, path)),
                new HttpRoute.HttpHandler() {
                    @Override
                    public void handle(HttpExchange exchange) {
                        control.handler().handle(new Below(exchange, prefix));
                    }

                    @Override
                    public HttpReply denied(ServingException e) {
                        return control.handler().denied(e);
                    }
                });
    }

    private static String without(String prefix, String path) {
        return path.startsWith(prefix)
                ? path.length() == prefix.length() ? "/" : path.substring(prefix.length())
                : path;
    }

    /** An exchange whose path begins behind the prefix. */
    private record Below(HttpExchange whole, String prefix) implements HttpExchange {
        @Override
        public String method() {
            return whole.method();
        }

        @Override
        public String path() {
            return without(prefix, whole.path());
        }

        @Override
        public String query() {
            return whole.query();
        }

        @Override
        public String pathParameter(int index) {
            return whole.pathParameter(index);
        }

        @Override
        public @Nullable String queryParameter(String name) {
            return whole.queryParameter(name);
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return whole.header(lowerCaseName);
        }

        @Override
        public MemoryRegion body() {
            return whole.body();
        }

        @Override
        public long arrivedNanos() {
            return whole.arrivedNanos();
        }

        @Override
        public void onCancel(Runnable action) {
            whole.onCancel(action);
        }

        @Override
        public boolean inEventLoop() {
            return whole.inEventLoop();
        }

        @Override
        public void reply(HttpReply reply) {
            whole.reply(reply);
        }

        @Override
        public ResponseStream stream(HttpReply head) {
            return whole.stream(head);
        }

        @Override
        public void headers(BiConsumer<String, String> each) {
            whole.headers(each);
        }

        @Override
        public HttpExchange origin() {
            return whole.origin();
        }
    }
}
