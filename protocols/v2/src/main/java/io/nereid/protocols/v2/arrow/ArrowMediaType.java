// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The media type of Arrow IPC streams in the headers of requests. Holds no state. */
public final class ArrowMediaType {
    /** The media type of a stream. */
    public static final String STREAM = "application/vnd.apache.arrow.stream";

    private static final String JSON = "application/json";

    private ArrowMediaType() {}

    /** Whether a header {@code content-type} says that the body is an Arrow stream. */
    public static boolean isStream(@Nullable String contentType) {
        return contentType != null
                && !contentType.equals(JSON)
                && media(contentType).equals(STREAM);
    }

    /** Why a content type is refused, because it is close to Arrow's but another format; null when it is not. */
    public static @Nullable String refusal(@Nullable String contentType) {
        if (contentType == null || contentType.equals(JSON)) {
            return null;
        }
        String media = media(contentType);
        if (media.equals(STREAM)) {
            return null;
        }
        if (media.endsWith("arrow.file")) {
            return "content type '" + media + "' is not supported (expected: " + STREAM
                    + "; write a stream, with pyarrow.ipc.new_stream or write_ipc_stream in polars)";
        }
        if (media.contains("arrow") || media.contains("parquet") || media.contains("feather")) {
            return "content type '" + media + "' is not supported (expected: " + STREAM + " for an Arrow IPC stream)";
        }
        return null;
    }

    /**
     * Whether the response is an Arrow stream: in the type of the request, unless {@code accept} prefers the other one.
     *
     * @param accept the header; null for none
     * @param stream whether the request is an Arrow stream
     */
    public static boolean respondsWithStream(@Nullable String accept, boolean stream) {
        if (accept == null || accept.equals("*/*")) {
            return stream;
        }
        if (!stream && !accept.toLowerCase(Locale.ROOT).contains("arrow")) {
            return false;
        }
        double asStream = quality(accept, STREAM);
        double asJson = quality(accept, JSON);
        return stream ? asStream >= asJson : asStream > asJson;
    }

    private static String media(String value) {
        int end = value.indexOf(';');
        return (end < 0 ? value : value.substring(0, end)).strip().toLowerCase(Locale.ROOT);
    }

    /** The weight that a header gives a type: that of the most specific range that has it; 0 when none has. */
    private static double quality(String accept, String type) {
        double found = 0;
        int best = -1;
        for (String range : accept.split(",", -1)) {
            String media = media(range);
            int specific = media.equals(type) ? 2 : media.equals("application/*") ? 1 : media.equals("*/*") ? 0 : -1;
            if (specific > best) {
                best = specific;
                found = weight(range);
            }
        }
        return found;
    }

    private static double weight(String range) {
        for (String parameter : range.split(";", -1)) {
            String text = parameter.strip();
            if (text.startsWith("q=") || text.startsWith("Q=")) {
                try {
                    return Double.parseDouble(text.substring(2).strip());
                } catch (NumberFormatException e) {
                    return 1;
                }
            }
        }
        return 1;
    }
}
