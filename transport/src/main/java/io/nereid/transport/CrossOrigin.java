// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpReply;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Which web pages may call the server and read its answers (CORS, fetch.spec.whatwg.org). Off without origins. It opens
 * nothing by itself: a call from a page needs the same permission as any other. Immutable.
 */
public final class CrossOrigin {
    private static final Pattern ORIGIN = Pattern.compile("https?://[a-z0-9.\\-\\[\\]:]+");
    private static final String ANY = "*";

    private final Set<String> origins;

    /**
     * Allows pages of some origins.
     *
     * @param origins such as {@code https://app.example}; {@code *} for all pages
     * @throws ServingException INVALID_ARGUMENT for what is not an origin
     */
    public CrossOrigin(List<String> origins) {
        Set<String> all = new HashSet<>();
        for (String origin : origins) {
            String plain = origin.toLowerCase(Locale.ROOT);
            if (!plain.equals(ANY) && !ORIGIN.matcher(plain).matches()) {
                throw ServingException.invalidArgument(
                        "'" + origin + "' is not an origin (expected: scheme, host and port of a web page, as in"
                                + " https://app.example or http://localhost:3000, or *)");
            }
            all.add(plain);
        }
        this.origins = Set.copyOf(all);
    }

    /** Whether any pages may call. */
    public boolean enabled() {
        return !origins.isEmpty();
    }

    private boolean allows(@Nullable String origin) {
        return origin != null && (origins.contains(ANY) || origins.contains(origin.toLowerCase(Locale.ROOT)));
    }

    /**
     * The answer to an OPTIONS request: which methods the path has, and for a page of an allowed origin that it may use
     * them. Null for other methods, and where a route answers itself.
     *
     * @param status the status of the route lookup
     * @param allowed the methods of the path, where the status is 405
     * @param header the headers of the request by lower-case name
     */
    public @Nullable HttpReply options(
            String method, int status, String allowed, Function<String, @Nullable String> header) {
        if (!method.equals("OPTIONS")) {
            return null;
        }
        String origin = header.apply("origin");
        boolean preflight = enabled() && origin != null && header.apply("access-control-request-method") != null;
        if (preflight && allows(origin)) {
            String wanted = header.apply("access-control-request-headers");
            return new HttpReply(
                    204,
                    "",
                    new String[] {
                        "access-control-allow-origin", origin,
                        "access-control-allow-methods", "GET, HEAD, POST, PUT, PATCH, DELETE",
                        "access-control-allow-headers", wanted == null ? "*" : wanted,
                        "access-control-max-age", "600",
                        "vary", "origin"
                    },
                    HttpReply.text(204, "", "").content());
        }
        if (preflight) {
            return HttpReply.error(403, "web pages of '" + origin + "' may not call this server (see --cors-origin)");
        }
        if (status != 405) {
            return null;
        }
        return new HttpReply(
                204,
                "",
                new String[] {"allow", allowed},
                HttpReply.text(204, "", "").content());
    }

    /** A reply that a page of an allowed origin may read. */
    public HttpReply readable(HttpReply reply, @Nullable String origin) {
        if (!allows(origin) || origin == null) {
            return reply;
        }
        String[] headers = reply.headers();
        for (int i = 0; i < headers.length; i += 2) {
            if (headers[i].equals("access-control-allow-origin")) {
                return reply;
            }
        }
        String[] more = Arrays.copyOf(headers, headers.length + 6);
        more[headers.length] = "access-control-allow-origin";
        more[headers.length + 1] = origin;
        more[headers.length + 2] = "access-control-expose-headers";
        more[headers.length + 3] = "*";
        more[headers.length + 4] = "vary";
        more[headers.length + 5] = "origin";
        return new HttpReply(reply.status(), reply.contentType(), more, reply.content());
    }
}
