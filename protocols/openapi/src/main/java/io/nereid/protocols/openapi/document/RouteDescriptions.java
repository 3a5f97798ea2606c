// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.document;

import static io.nereid.protocols.openapi.schema.OpenApiNodes.member;
import static io.nereid.protocols.openapi.schema.OpenApiNodes.object;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.json.JsonValues;
import io.nereid.protocols.openapi.schema.OpenApiNodes;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The descriptions of one protocol's routes, read from {@link ProtocolCodec#openApi}. Immutable.
 */
final class RouteDescriptions {
    private static final String NEREID = "x-nereid-";

    private final String protocol;
    private final Map<String, @Nullable Object> root;
    private final Map<String, @Nullable Object> paths;
    private final Map<String, @Nullable Object> prefixes;

    /**
     * Reads descriptions.
     *
     * @throws ServingException INTERNAL when they are not JSON
     */
    RouteDescriptions(ProtocolCodec codec) {
        this.protocol = codec.name();
        this.root = read(codec.openApi());
        this.paths = member(root, "paths");
        this.prefixes = member(root, NEREID + "prefixes");
    }

    private static Map<String, @Nullable Object> read(@Nullable URL from) {
        if (from == null) {
            return object();
        }
        try (InputStream in = from.openStream()) {
            Map<String, @Nullable Object> whole = new LinkedHashMap<>();
            whole.put("root", JsonValues.read(in.readAllBytes()));
            return member(whole, "root");
        } catch (IOException | ServingException e) {
            throw ServingException.of(
                    ErrorCode.INTERNAL, "the descriptions of routes " + from + " are not readable: " + e.getMessage());
        }
    }

    /** The name of the protocol. */
    String protocol() {
        return protocol;
    }

    /** Tags or components, to be copied. */
    @Nullable Object part(String name) {
        return OpenApiNodes.copy(root.get(name));
    }

    /** The schema of the body of an error; null without one. */
    @Nullable Object error() {
        return OpenApiNodes.copy(root.get(NEREID + "error"));
    }

    /** The description of a route that stands for all paths with a prefix; null without one. */
    @Nullable Object prefix(HttpRoute route) {
        return OpenApiNodes.copy(prefixes.get(route.template()));
    }

    /** The description of a route, to be changed; null without one. */
    @Nullable Map<String, @Nullable Object> operation(HttpRoute route) {
        String method = route.method().toLowerCase(Locale.ROOT);
        Map<String, @Nullable Object> found = described(route.template(), method);
        if (found != null) {
            return found;
        }
        for (String part : new String[] {"version", "label"}) {
            String infix = "/" + part + "s/{" + part + "}";
            int at = route.template().indexOf(infix);
            if (at >= 0) {
                String template =
                        route.template().substring(0, at) + route.template().substring(at + infix.length());
                found = described(template, method);
                if (found != null) {
                    found.computeIfPresent(
                            "operationId",
                            (key, id) -> id + "Of" + Character.toUpperCase(part.charAt(0)) + part.substring(1));
                    found.computeIfPresent("summary", (key, text) -> text + ", by " + part);
                    return found;
                }
            }
        }
        return route.operations() == Operation.METRICS ? pick(member(root, NEREID + "metrics"), method) : null;
    }

    private @Nullable Map<String, @Nullable Object> described(String template, String method) {
        return pick(member(paths, template), method);
    }

    private static @Nullable Map<String, @Nullable Object> pick(Map<String, @Nullable Object> item, String method) {
        if (!item.containsKey(method)) {
            return null;
        }
        Map<String, @Nullable Object> copy = new LinkedHashMap<>();
        member(item, method).forEach((key, value) -> copy.put(key, OpenApiNodes.copy(value)));
        return copy;
    }
}
