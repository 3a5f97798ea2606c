// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One HTTP/1.1 request to an {@code http://} address over a socket of its own. A command that asks a server once starts
 * in half the time without the Java runtime's HTTP client, which starts threads and some hundred classes. Thread-safe.
 */
final class PlainHttp {
    private static final int MAX_LINE = 64 << 10;
    private static final int MAX_HEADERS = 1_000;

    private PlainHttp() {}

    /** Whether requests can be sent this way: not where the Java runtime is configured to use a proxy. */
    static boolean usable() {
        return System.getProperty("http.proxyHost") == null
                && System.getProperty("socksProxyHost") == null
                && !Boolean.getBoolean("java.net.useSystemProxies");
    }

    /**
     * Sends a request and reads the response.
     *
     * @param target the URL
     * @param headers headers besides those of the connection and of the body's length
     * @param body the body; null for a request without one
     * @throws ConnectException when nothing accepts the connection
     * @throws IOException when the response is missing, cut off or not HTTP
     */
    static HttpText exchange(
            String method, URI target, Map<String, String> headers, byte @Nullable [] body, int connectMillis)
            throws IOException {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        request.writeBytes(head(method, target, headers, body).getBytes(StandardCharsets.ISO_8859_1));
        if (body != null) {
            request.writeBytes(body);
        }
        try (Socket socket = connect(target, connectMillis)) {
            socket.setTcpNoDelay(true);
            IOException unsent = null;
            try {
                request.writeTo(socket.getOutputStream());
            } catch (IOException e) {
                // A server that refuses a request early may have answered before it closed the connection.
                unsent = e;
            }
            try {
                return read(new BufferedInputStream(socket.getInputStream()), method);
            } catch (IOException e) {
                throw unsent == null ? e : unsent;
            }
        }
    }

    private static Socket connect(URI target, int millis) throws IOException {
        InetSocketAddress address =
                new InetSocketAddress(target.getHost(), target.getPort() < 0 ? 80 : target.getPort());
        Socket socket = new Socket();
        try {
            socket.connect(address, millis);
            return socket;
        } catch (SocketTimeoutException | ConnectException e) {
            socket.close();
            throw e;
        } catch (IOException e) {
            socket.close();
            ConnectException unreachable = new ConnectException(e.getMessage());
            unreachable.initCause(e);
            throw unreachable;
        }
    }

    private static String head(String method, URI target, Map<String, String> headers, byte @Nullable [] body) {
        String path = target.getRawPath() == null || target.getRawPath().isEmpty() ? "/" : target.getRawPath();
        StringBuilder head = new StringBuilder();
        head.append(method).append(' ').append(path);
        if (target.getRawQuery() != null) {
            head.append('?').append(target.getRawQuery());
        }
        head.append(" HTTP/1.1\r\nhost: ").append(target.getRawAuthority()).append("\r\nconnection: close\r\n");
        headers.forEach((name, value) -> {
            if (value.chars().anyMatch(c -> c < ' ' || c == 0x7f || c > 0xff)) {
                throw new IllegalArgumentException("the value of the header '" + name + "' has characters that no"
                        + " header can have (expected: printable characters of ISO 8859-1)");
            }
            head.append(name).append(": ").append(value).append("\r\n");
        });
        if (body != null) {
            head.append("content-length: ").append(body.length).append("\r\n");
        }
        return head.append("\r\n").toString();
    }

    private static HttpText read(InputStream in, String method) throws IOException {
        int status;
        List<String> headers;
        do {
            status = status(line(in, true));
            headers = headers(in);
        } while (status < 200);
        if (method.equals("HEAD") || status == 204 || status == 304) {
            return new HttpText(status, "");
        }
        byte[] body;
        String length = value(headers, "content-length");
        if (value(headers, "transfer-encoding").toLowerCase(Locale.ROOT).endsWith("chunked")) {
            body = chunks(in);
        } else if (length.isEmpty()) {
            body = in.readAllBytes();
        } else {
            int expected = number(length, 10);
            body = in.readNBytes(expected);
            if (body.length < expected) {
                throw new EOFException("EOF after " + body.length + " of " + expected + " bytes of the body");
            }
        }
        return new HttpText(status, new String(body, StandardCharsets.UTF_8));
    }

    private static int status(String line) throws IOException {
        boolean http = line.startsWith("HTTP/1.") && line.length() >= 12 && line.charAt(8) == ' ';
        int status = http ? number(line.substring(9, 12), 10) : 0;
        if (status < 100) {
            throw new IOException("it received no bytes of HTTP/1.1 but '"
                    + line.substring(0, Math.min(40, line.length())).replaceAll("[^ -~]", "?") + "'");
        }
        return status;
    }

    private static List<String> headers(InputStream in) throws IOException {
        List<String> headers = new ArrayList<>();
        for (String line = line(in, false); !line.isEmpty(); line = line(in, false)) {
            headers.add(line);
            if (headers.size() > MAX_HEADERS) {
                throw new IOException("the response has more than " + MAX_HEADERS + " headers");
            }
        }
        return headers;
    }

    /** The value of a header; empty without one. */
    private static String value(List<String> headers, String name) {
        for (String header : headers) {
            int colon = header.indexOf(':');
            if (colon == name.length() && header.regionMatches(true, 0, name, 0, colon)) {
                return header.substring(colon + 1).strip();
            }
        }
        return "";
    }

    private static byte[] chunks(InputStream in) throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        while (true) {
            String size = line(in, false);
            int semicolon = size.indexOf(';');
            int length = number((semicolon < 0 ? size : size.substring(0, semicolon)).strip(), 16);
            if (length == 0) {
                var unused = headers(in);
                return body.toByteArray();
            }
            byte[] chunk = in.readNBytes(length);
            if (chunk.length < length || !line(in, false).isEmpty()) {
                throw new EOFException("EOF inside a chunk of the body");
            }
            body.writeBytes(chunk);
        }
    }

    private static int number(String text, int radix) throws IOException {
        try {
            int number = Integer.parseInt(text, radix);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new IOException("the response has '" + text.replaceAll("[^ -~]", "?") + "' in place of a number");
    }

    private static String line(InputStream in, boolean first) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException(
                        first && line.size() == 0
                                ? "the server closed the connection, it received no bytes"
                                : "EOF inside the headers");
            }
            if (line.size() == MAX_LINE) {
                throw new IOException("the response has a line of more than " + MAX_LINE + " bytes");
            }
            line.write(next);
        }
        String text = line.toString(StandardCharsets.ISO_8859_1);
        return text.endsWith("\r") ? text.substring(0, text.length() - 1) : text;
    }
}
