// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Functions for storage URIs. Stateless. */
public final class StorageUri {
    private StorageUri() {}

    /** The scheme of a URI in lower case; empty without one. */
    public static String scheme(String uri) {
        int end = uri.indexOf("://");
        return end < 0 ? "" : uri.substring(0, end).toLowerCase(Locale.ROOT);
    }

    /** A URI for messages and logs: without user, password and query. */
    public static String shown(@Nullable String uri) {
        if (uri == null) {
            return "";
        }
        String shown = uri;
        int query = shown.indexOf('?');
        if (query >= 0) {
            shown = shown.substring(0, query) + "?...";
        }
        int authority = shown.indexOf("://");
        if (authority > 0) {
            int end = shown.indexOf('/', authority + 3);
            int at = shown.lastIndexOf('@', end < 0 ? shown.length() - 1 : end);
            String scheme = shown.substring(0, authority);
            if (at > authority && !scheme.startsWith("oci")) {
                shown = scheme + "://" + shown.substring(at + 1);
            }
        }
        return shown;
    }
}
