// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.transport.api.access.RequestHead;
import io.netty.handler.codec.http2.Http2Headers;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** The head of an HTTP/2 request, for the choice of its virtual host. Confined to the connection's event loop. */
record Http2RequestHead(CharSequence verb, CharSequence target, Http2Headers headers, boolean grpc)
        implements RequestHead {
    @Override
    public String method() {
        return verb.toString();
    }

    @Override
    public String path() {
        String whole = target.toString();
        int mark = whole.indexOf('?');
        return mark < 0 ? whole : whole.substring(0, mark);
    }

    @Override
    public @Nullable String authority() {
        CharSequence named = headers.authority();
        if (named == null || named.length() == 0) {
            named = headers.get("host");
        }
        return named == null || named.length() == 0 ? null : named.toString().toLowerCase(Locale.ROOT);
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        CharSequence value = headers.get(lowerCaseName);
        return value == null ? null : value.toString();
    }

    @Override
    public boolean hasHeader(String lowerCaseName, String value) {
        CharSequence given = headers.get(lowerCaseName);
        if (given == null || given.length() != value.length()) {
            return false;
        }
        int difference = 0;
        for (int i = 0; i < value.length(); i++) {
            difference |= value.charAt(i) ^ given.charAt(i);
        }
        return difference == 0;
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        for (Map.Entry<CharSequence, CharSequence> header : headers) {
            if (header.getKey().length() > 0 && header.getKey().charAt(0) != ':') {
                each.accept(header.getKey().toString(), header.getValue().toString());
            }
        }
    }
}
