// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.transport.api.access.RequestHead;
import io.nereid.transport.codec.FieldSyntax;
import io.nereid.transport.exchange.CompiledRoutes;
import io.nereid.transport.routing.RequestLine;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The head of an HTTP/1.x request (RFC 9112): its bytes, and the positions of the headers in them. Header values become
 * strings only when a handler asks for them.
 *
 * <p>The parser is strict wherever two readers of the same bytes could disagree on where a request ends, as that is how
 * requests are smuggled past a proxy: bare CR or LF, folded lines, white space before the colon, repeated or malformed
 * {@code content-length}, any {@code transfer-encoding} other than {@code chunked}, and both of them together are
 * errors.
 *
 * <p>Immutable once parsed; a connection reuses it for the next request whose head has equal bytes.
 */
final class Http1RequestHead implements RequestHead {
    /** The error response that a malformed or unsupported head leads to. Immutable. */
    record Refusal(int status, String text) {}

    /** The head from the request line to the empty line, both included. */
    final byte[] bytes;

    /** For each header: start and end of its name, start and end of its value. */
    private int[] fields = new int[4 * 12];

    private int fieldCount;
    private int lineEnd;
    private @Nullable RequestLine line;
    private @Nullable Refusal refusal;
    private long contentLength = -1;
    private boolean transferEncoding;
    private boolean chunked;
    private boolean http10;
    private boolean close;
    private boolean keep;
    private boolean expectsContinue;
    private int hosts;

    /** The authority of a target in absolute form; null for the usual origin form. */
    private @Nullable String absolute;

    private Http1RequestHead(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * Parses a head. The caller has checked that every LF follows a CR and that an empty line ends it, which is what
     * stops the loops below at the array's end.
     *
     * @param b the head from the request line to the empty line
     * @param routes the routes to look the path up in; null when the virtual host must be resolved from the headers
     *     first
     * @param before the previous head of the connection, whose request line is reused when it is equal
     */
    static Http1RequestHead parse(byte[] b, @Nullable CompiledRoutes routes, @Nullable Http1RequestHead before) {
        Http1RequestHead head = new Http1RequestHead(b);
        head.refusal = head.parseAll(routes, before);
        return head;
    }

    private @Nullable Refusal parseAll(@Nullable CompiledRoutes routes, @Nullable Http1RequestHead before) {
        int end = 0;
        while (bytes[end] != '\r') {
            end++;
        }
        lineEnd = end;
        if (bytes[end + 1] != '\n') {
            return new Refusal(400, "bare CR in the request line");
        }
        RequestLine same = before == null ? null : before.line;
        if (same != null
                && before != null
                && before.lineEnd == end
                && Arrays.equals(bytes, 0, end, before.bytes, 0, end)) {
            line = same;
            http10 = before.http10;
            absolute = before.absolute;
        } else {
            Refusal r = parseLine(end, routes);
            if (r != null) {
                return r;
            }
        }
        int at = end + 2;
        while (bytes[at] != '\r' || bytes[at + 1] != '\n') {
            int next = parseField(at);
            if (next < 0) {
                return refusal;
            }
            at = next;
        }
        return check();
    }

    private @Nullable Refusal parseLine(int end, @Nullable CompiledRoutes routes) {
        int methodEnd = 0;
        while (methodEnd < end && FieldSyntax.isTokenByte(bytes[methodEnd])) {
            methodEnd++;
        }
        if (methodEnd == 0 || methodEnd == end || bytes[methodEnd] != ' ') {
            return new Refusal(400, "malformed request line (expected: METHOD target HTTP/1.1)");
        }
        int targetEnd = methodEnd + 1;
        while (targetEnd < end && bytes[targetEnd] > ' ' && bytes[targetEnd] < 127) {
            targetEnd++;
        }
        if (targetEnd == methodEnd + 1 || targetEnd == end || bytes[targetEnd] != ' ') {
            return new Refusal(400, "malformed request line (expected: METHOD target HTTP/1.1)");
        }
        if (end - targetEnd != 9
                || bytes[targetEnd + 1] != 'H'
                || bytes[targetEnd + 2] != 'T'
                || bytes[targetEnd + 3] != 'T'
                || bytes[targetEnd + 4] != 'P'
                || bytes[targetEnd + 5] != '/'
                || !isDigit(bytes[targetEnd + 6])
                || bytes[targetEnd + 7] != '.'
                || !isDigit(bytes[targetEnd + 8])) {
            return new Refusal(400, "malformed protocol version (expected: HTTP/1.1)");
        }
        if (bytes[targetEnd + 6] != '1') {
            return new Refusal(505, "HTTP version not supported (expected: HTTP/1.1 or HTTP/2)");
        }
        http10 = bytes[targetEnd + 8] == '0';
        String method = new String(bytes, 0, methodEnd, StandardCharsets.ISO_8859_1);
        String target = new String(bytes, methodEnd + 1, targetEnd - methodEnd - 1, StandardCharsets.ISO_8859_1);
        if (target.charAt(0) != '/') {
            // absolute form, as clients send it to a proxy; its authority takes precedence over the host header
            absolute = authorityOf(target);
            target = originForm(target);
            if (absolute != null && (absolute.isEmpty() || !FieldSyntax.isHost(absolute))) {
                return new Refusal(400, "malformed host in the request target");
            }
            if (target.charAt(0) != '/' && !(target.equals("*") && method.equals("OPTIONS"))) {
                return new Refusal(400, "malformed request target (expected: a path, such as /v2)");
            }
        }
        RequestLine parsed = RequestLine.of(method, target);
        line = routes == null ? parsed : routes.line(parsed);
        return null;
    }

    /** The target without scheme and authority, which requests to a proxy carry. */
    private static String originForm(String target) {
        if (!target.regionMatches(true, 0, "http://", 0, 7) && !target.regionMatches(true, 0, "https://", 0, 8)) {
            return target;
        }
        int authority = target.indexOf("//") + 2;
        for (int i = authority; i < target.length(); i++) {
            char c = target.charAt(i);
            if (c == '/') {
                return target.substring(i);
            }
            if (c == '?') {
                return "/" + target.substring(i);
            }
        }
        return "/";
    }

    /** The authority of a target in absolute form, without user name and password; null for any other target. */
    private static @Nullable String authorityOf(String target) {
        int start = target.indexOf("://");
        if (originForm(target).equals(target) || start < 0) {
            return null;
        }
        int end = start + 3;
        while (end < target.length() && target.charAt(end) != '/' && target.charAt(end) != '?') {
            end++;
        }
        String authority = target.substring(start + 3, end);
        return authority.substring(authority.lastIndexOf('@') + 1);
    }

    /** Parses one header line. Returns the position after it, or -1 with the refusal set. */
    private int parseField(int start) {
        int nameEnd = start;
        while (FieldSyntax.isTokenByte(bytes[nameEnd])) {
            nameEnd++;
        }
        if (nameEnd == start || bytes[nameEnd] != ':') {
            refusal = new Refusal(
                    400,
                    bytes[start] == ' ' || bytes[start] == '\t'
                            ? "folded header lines are not allowed"
                            : "malformed header name (expected: name, colon, value)");
            return -1;
        }
        int at = nameEnd + 1;
        while (bytes[at] == ' ' || bytes[at] == '\t') {
            at++;
        }
        int valueStart = at;
        while ((bytes[at] >= ' ' && bytes[at] != 127) || bytes[at] == '\t' || bytes[at] < 0) {
            at++;
        }
        if (bytes[at] != '\r' || bytes[at + 1] != '\n') {
            refusal = new Refusal(400, "control character in the value of a header");
            return -1;
        }
        int valueEnd = at;
        while (valueEnd > valueStart && (bytes[valueEnd - 1] == ' ' || bytes[valueEnd - 1] == '\t')) {
            valueEnd--;
        }
        if (fieldCount * 4 == fields.length) {
            fields = Arrays.copyOf(fields, fields.length * 2);
        }
        int f = 4 * fieldCount++;
        fields[f] = start;
        fields[f + 1] = nameEnd;
        fields[f + 2] = valueStart;
        fields[f + 3] = valueEnd;
        Refusal r = known(start, nameEnd, valueStart, valueEnd);
        if (r != null) {
            refusal = r;
            return -1;
        }
        return at + 2;
    }

    /**
     * Interprets the headers that determine the length of the message and the life of the connection. The switch on the
     * length of the name lets all other headers pass without a comparison.
     */
    private @Nullable Refusal known(int start, int nameEnd, int valueStart, int valueEnd) {
        switch (nameEnd - start) {
            case 4 -> {
                if (is("host", start, nameEnd)) {
                    hosts++;
                    if (!FieldSyntax.isHost(text(valueStart, valueEnd))) {
                        return new Refusal(400, "malformed host (expected: a host name or address, and a port)");
                    }
                }
            }
            case 6 -> {
                if (is("expect", start, nameEnd)) {
                    if (!is("100-continue", valueStart, valueEnd)) {
                        return new Refusal(417, "unknown expectation (expected: 100-continue)");
                    }
                    expectsContinue = true;
                }
            }
            case 10 -> {
                if (is("connection", start, nameEnd)) {
                    String value = text(valueStart, valueEnd).toLowerCase(java.util.Locale.ROOT);
                    close |= hasToken(value, "close");
                    keep |= hasToken(value, "keep-alive");
                }
            }
            case 14 -> {
                if (is("content-length", start, nameEnd)) {
                    return contentLength(valueStart, valueEnd);
                }
            }
            case 17 -> {
                if (is("transfer-encoding", start, nameEnd)) {
                    if (transferEncoding) {
                        return new Refusal(400, "repeated transfer-encoding");
                    }
                    transferEncoding = true;
                    if (!is("chunked", valueStart, valueEnd)) {
                        return new Refusal(501, "unsupported transfer-encoding (expected: chunked)");
                    }
                    chunked = true;
                }
            }
            default -> {}
        }
        return null;
    }

    private @Nullable Refusal contentLength(int start, int end) {
        if (contentLength >= 0) {
            return new Refusal(400, "repeated content-length");
        }
        if (end == start || end - start > 18) {
            return new Refusal(400, "malformed content-length (expected: a decimal number)");
        }
        long n = 0;
        for (int i = start; i < end; i++) {
            if (!isDigit(bytes[i])) {
                return new Refusal(400, "malformed content-length (expected: a decimal number)");
            }
            n = n * 10 + bytes[i] - '0';
        }
        contentLength = n;
        return null;
    }

    /** The rules that need all headers (RFC 9112, sections 3.2 and 6.1). */
    private @Nullable Refusal check() {
        if (transferEncoding && contentLength >= 0) {
            return new Refusal(400, "both transfer-encoding and content-length");
        }
        if (transferEncoding && http10) {
            return new Refusal(400, "transfer-encoding in an HTTP/1.0 request");
        }
        if (hosts > 1 || hosts == 0 && !http10) {
            return new Refusal(400, hosts == 0 ? "no host header" : "repeated host header");
        }
        return null;
    }

    private static boolean hasToken(String list, String token) {
        for (String part : list.split(",", -1)) {
            if (part.strip().equals(token)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isDigit(byte b) {
        return b >= '0' && b <= '9';
    }

    /** Whether the bytes equal the given lower-case text, ignoring case. */
    private boolean is(String lowerCase, int start, int end) {
        if (end - start != lowerCase.length()) {
            return false;
        }
        for (int i = start; i < end; i++) {
            byte b = bytes[i];
            if ((b >= 'A' && b <= 'Z' ? b + 32 : b) != lowerCase.charAt(i - start)) {
                return false;
            }
        }
        return true;
    }

    private String text(int start, int end) {
        return new String(bytes, start, end - start, StandardCharsets.ISO_8859_1);
    }

    /**
     * The first value of a header by lower-case name, or null. The host of a target in absolute form replaces that of
     * the host header (RFC 9112, section 3.2.2).
     */
    @Override
    public @Nullable String header(String lowerCaseName) {
        if (absolute != null && lowerCaseName.equals("host")) {
            return absolute;
        }
        int length = lowerCaseName.length();
        for (int f = 0; f < 4 * fieldCount; f += 4) {
            if (fields[f + 1] - fields[f] == length && is(lowerCaseName, fields[f], fields[f + 1])) {
                return text(fields[f + 2], fields[f + 3]);
            }
        }
        return null;
    }

    @Override
    public boolean hasHeader(String lowerCaseName, String value) {
        int length = lowerCaseName.length();
        for (int f = 0; f < 4 * fieldCount; f += 4) {
            if (fields[f + 1] - fields[f] == length && is(lowerCaseName, fields[f], fields[f + 1])) {
                int start = fields[f + 2];
                if (fields[f + 3] - start != value.length()) {
                    return false;
                }
                int difference = 0;
                for (int i = 0; i < value.length(); i++) {
                    difference |= value.charAt(i) ^ bytes[start + i];
                }
                return difference == 0;
            }
        }
        return false;
    }

    @Override
    public boolean grpc() {
        return false;
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        for (int f = 0; f < 4 * fieldCount; f += 4) {
            String name = text(fields[f], fields[f + 1]).toLowerCase(Locale.ROOT);
            String named = absolute != null && name.equals("host") ? absolute : null;
            each.accept(name, named != null ? named : text(fields[f + 2], fields[f + 3]));
        }
    }

    @Override
    public String method() {
        return line().method();
    }

    @Override
    public String path() {
        return line().sent();
    }

    /** The host of a target in absolute form, which RFC 9112 puts first, else that of the host header. */
    @Override
    public @Nullable String authority() {
        String named = header("host");
        return named == null || named.isEmpty() ? null : named.toLowerCase(Locale.ROOT);
    }

    /** The error that the request is rejected with, or null. */
    @Nullable Refusal refusal() {
        return refusal;
    }

    /** The request line; only when it was well-formed. */
    RequestLine line() {
        return java.util.Objects.requireNonNull(line, "line");
    }

    /** The request line, or null when it was malformed. */
    @Nullable RequestLine lineOrNull() {
        return line;
    }

    /** Length of the body; 0 for a chunked body and for a request without one. */
    long contentLength() {
        return Math.max(0, contentLength);
    }

    /** Whether the body is chunked. */
    boolean chunked() {
        return chunked;
    }

    /** Whether the client keeps the connection open after the response. */
    boolean keepAlive() {
        return !close && (!http10 || keep);
    }

    /** Whether a connection that stays open must be announced by a header, as HTTP/1.0 closes by default. */
    boolean needsKeepAliveHeader() {
        return http10;
    }

    /** Whether the client waits for {@code 100 Continue} before it sends its body. */
    boolean expectsContinue() {
        return expectsContinue && !http10;
    }
}
