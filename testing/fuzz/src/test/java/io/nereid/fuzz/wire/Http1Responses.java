// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A strict reader of a stream of HTTP/1.1 responses. Stateless. */
final class Http1Responses {
    private static final Pattern STATUS = Pattern.compile("HTTP/1\\.1 ([1-5][0-9][0-9]) [ -~]*");
    private static final Pattern HEADER = Pattern.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+: ?[\\x20-\\x7e\\x80-\\xff\\t]*");
    private static final Pattern CHUNK = Pattern.compile("[0-9a-fA-F]+");

    /** A response; {@code body} is null for one whose body is not sent, as for HEAD. */
    record Response(int status, List<String> headers, byte[] body) {}

    private Http1Responses() {}

    /** Reads all responses; a response that is not well formed is an {@link AssertionError}. */
    static List<Response> read(byte[] bytes) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        List<Response> all = new ArrayList<>();
        int at = 0;
        while (at < text.length()) {
            int end = text.indexOf("\r\n\r\n", at);
            if (end < 0) {
                throw bad("a head without an end", text, at);
            }
            String[] lines = text.substring(at, end).split("\r\n", -1);
            Matcher status = STATUS.matcher(lines[0]);
            if (!status.matches()) {
                throw bad("a status line is malformed", text, at);
            }
            int length = -1;
            boolean chunked = false;
            List<String> headers = new ArrayList<>();
            for (int i = 1; i < lines.length; i++) {
                if (!HEADER.matcher(lines[i]).matches()) {
                    throw bad("a header is malformed: " + lines[i], text, at);
                }
                String lower = lines[i].toLowerCase(java.util.Locale.ROOT);
                headers.add(lower);
                if (lower.startsWith("content-length:")) {
                    if (length >= 0) {
                        throw bad("two lengths", text, at);
                    }
                    length = Integer.parseInt(lower.substring(15).strip());
                } else if (lower.startsWith("transfer-encoding:")) {
                    chunked = true;
                }
            }
            int code = Integer.parseInt(status.group(1));
            at = end + 4;
            if (length >= 0 && chunked) {
                throw bad("a length and chunks", text, at);
            }
            byte[] body = null;
            if (chunked) {
                int from = at;
                at = chunks(text, at);
                body = text.substring(from, at).getBytes(StandardCharsets.ISO_8859_1);
            } else if (length > 0 && at < text.length() && !text.startsWith("HTTP/1.1 ", at)) {
                if (length > text.length() - at) {
                    throw bad("a body is shorter than its length", text, at);
                }
                body = text.substring(at, at + length).getBytes(StandardCharsets.ISO_8859_1);
                at += length;
            }
            if (length < 0 && !chunked && code >= 200 && code != 204 && code != 304) {
                // To a client of HTTP/1.0 a stream has no length: it ends with the connection.
                body = text.substring(at).getBytes(StandardCharsets.ISO_8859_1);
                at = text.length();
            }
            all.add(new Response(code, headers, body));
        }
        return all;
    }

    private static int chunks(String text, int from) {
        int at = from;
        while (true) {
            int line = text.indexOf("\r\n", at);
            if (line < 0) {
                throw bad("chunks without an end", text, from);
            }
            String size = text.substring(at, line);
            if (!CHUNK.matcher(size).matches()) {
                throw bad("the size of a chunk is malformed", text, at);
            }
            int length = Integer.parseInt(size, 16);
            at = line + 2 + length;
            if (!text.startsWith("\r\n", at)) {
                throw bad("a chunk does not end with a line end", text, at);
            }
            at += 2;
            if (length == 0) {
                return at;
            }
        }
    }

    private static AssertionError bad(String what, String text, int at) {
        return new AssertionError(what + " at byte " + at + " of the responses:\n" + text);
    }
}
