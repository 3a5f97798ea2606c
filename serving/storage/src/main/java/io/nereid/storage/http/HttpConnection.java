// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpHeaders;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A connection to a web server or proxy: HTTP/1.1 over a blocking socket, one request at a time. One thread uses it;
 * {@link #abort} may come from any thread and makes reads and writes fail.
 */
final class HttpConnection {
    private static final int MAX_HEAD = 1 << 16;

    private final Socket plain;
    private final InputStream in;
    private final OutputStream out;
    /** The server's address; null behind a proxy, which resolves the name. */
    final @Nullable InetAddress address;

    private final byte[] buffer = new byte[1 << 14];
    private int position;
    private int limit;
    private boolean answered;
    long idleSinceNanos;

    /**
     * @param plain the TCP socket
     * @param secured the socket to use: the TCP socket, or TLS over it
     */
    HttpConnection(Socket plain, Socket secured, @Nullable InetAddress address) throws IOException {
        this.plain = plain;
        this.in = secured.getInputStream();
        this.out = secured.getOutputStream();
        this.address = address;
    }

    /** The start of a response, and its body. */
    record Response(int status, HttpHeaders headers, InputStream body) {}

    /** Closes the TCP socket, without TLS's farewell, which could block. */
    void abort() {
        try {
            plain.close();
        } catch (IOException e) {
            // The connection is discarded, so a failure to close it does not matter.
        }
    }

    /** Whether a byte of the current response has arrived. */
    boolean answered() {
        return answered;
    }

    /** Whether nothing has arrived while the connection was idle: a server that closes it, or sends unasked bytes. */
    boolean reusable() {
        try {
            return position == limit
                    && !plain.isClosed()
                    && plain.getInputStream().available() == 0;
        } catch (IOException e) {
            return false;
        }
    }

    /**
     * Sends a request and reads the start of its response.
     *
     * @param release called once, when the body has been read; true if the connection can be used again
     */
    Response exchange(String head, byte[] body, boolean bodiless, Released release) throws IOException {
        answered = false;
        byte[] first = head.getBytes(StandardCharsets.ISO_8859_1);
        byte[] all = new byte[first.length + body.length];
        System.arraycopy(first, 0, all, 0, first.length);
        System.arraycopy(body, 0, all, first.length, body.length);
        out.write(all);
        out.flush();
        while (true) {
            String line = line(MAX_HEAD);
            if (!line.matches("HTTP/1\\.[01] [1-5][0-9][0-9]( .*)?")) {
                throw new IOException("the server does not answer with HTTP/1.1");
            }
            int status = Integer.parseInt(line.substring(9, 12));
            HttpHeaders headers = headers();
            if (status / 100 == 1) {
                continue;
            }
            boolean kept = line.startsWith("HTTP/1.1")
                    && headers.allValues("Connection").stream()
                            .noneMatch(v -> v.toLowerCase(Locale.ROOT).contains("close"));
            return new Response(status, headers, body(status, headers, bodiless, kept, release));
        }
    }

    /** What happens to the connection after a body. */
    interface Released {
        void released(boolean reusable);
    }

    private InputStream body(int status, HttpHeaders headers, boolean bodiless, boolean kept, Released release)
            throws IOException {
        if (bodiless || status == 204 || status == 304) {
            return new Body(0, false, kept, release);
        }
        List<String> coding = headers.allValues("Transfer-Encoding");
        if (!coding.isEmpty()) {
            if (coding.size() > 1 || !coding.get(0).trim().equalsIgnoreCase("chunked")) {
                throw new IOException("the response has an unknown Transfer-Encoding");
            }
            return new Body(0, true, kept, release);
        }
        List<String> lengths =
                headers.allValues("Content-Length").stream().distinct().toList();
        if (lengths.isEmpty()) {
            return new Body(Long.MAX_VALUE, false, false, release);
        }
        if (lengths.size() > 1 || !lengths.get(0).matches("[0-9]{1,18}")) {
            throw new IOException("the response has an invalid Content-Length");
        }
        return new Body(Long.parseLong(lengths.get(0)), false, kept, release);
    }

    private HttpHeaders headers() throws IOException {
        Map<String, List<String>> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        int left = MAX_HEAD;
        for (String line = line(left); !line.isEmpty(); line = line(left)) {
            left -= line.length() + 2;
            int colon = line.indexOf(':');
            if (colon < 1 || line.charAt(0) == ' ' || line.charAt(0) == '\t') {
                throw new IOException("the response has an invalid header");
            }
            all.computeIfAbsent(line.substring(0, colon), n -> new ArrayList<>())
                    .add(line.substring(colon + 1).strip());
        }
        return HttpHeaders.of(all, (name, value) -> true);
    }

    private String line(int most) throws IOException {
        StringBuilder line = new StringBuilder();
        while (true) {
            if (position == limit && !fill()) {
                throw new EOFException("the server closed the connection before its response ended");
            }
            char c = (char) (buffer[position++] & 0xff);
            if (c == '\n') {
                int length = line.length();
                if (length > 0 && line.charAt(length - 1) == '\r') {
                    line.setLength(length - 1);
                }
                return line.toString();
            }
            line.append(c);
            if (line.length() > most) {
                throw new IOException("the head of the response has more than " + MAX_HEAD + " bytes");
            }
        }
    }

    private boolean fill() throws IOException {
        int n = in.read(buffer, 0, buffer.length);
        if (n <= 0) {
            return false;
        }
        answered = true;
        position = 0;
        limit = n;
        return true;
    }

    private int read(byte[] target, int offset, int most) throws IOException {
        if (position < limit) {
            int n = Math.min(most, limit - position);
            System.arraycopy(buffer, position, target, offset, n);
            position += n;
            return n;
        }
        return in.read(target, offset, most);
    }

    /** A response's body, which ends with its length, its last chunk or the connection. */
    private final class Body extends InputStream {
        private final boolean chunked;
        private final boolean untilEnd;
        private final boolean kept;
        private final Released release;
        private final AtomicBoolean released = new AtomicBoolean();
        private long left;
        private boolean begun;
        private boolean ended;

        Body(long left, boolean chunked, boolean kept, Released release) {
            this.left = left;
            this.chunked = chunked;
            this.untilEnd = left == Long.MAX_VALUE;
            this.kept = kept;
            this.release = release;
        }

        private void end(boolean reusable) {
            ended = true;
            if (released.compareAndSet(false, true)) {
                release.released(reusable);
            }
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] target, int offset, int length) throws IOException {
            if (length == 0) {
                return 0;
            }
            if (ended) {
                return -1;
            }
            if (released.get()) {
                throw new IOException("the response was closed");
            }
            if (left == 0 && !(chunked && chunk())) {
                end(kept);
                return -1;
            }
            int n = HttpConnection.this.read(target, offset, (int) Math.min(length, left));
            if (n < 0) {
                if (untilEnd) {
                    end(false);
                    return -1;
                }
                throw new EOFException("the server closed the connection before its response ended");
            }
            left -= n;
            if (left == 0 && !chunked) {
                end(kept);
            }
            return n;
        }

        /** Reads the head of the next chunk; false for the last one. */
        private boolean chunk() throws IOException {
            if (begun && !line(16).isEmpty()) {
                throw new IOException("a chunk of the response is longer than it says");
            }
            begun = true;
            String size = line(4096).replaceFirst("[ \t]*;.*", "").strip();
            if (!size.matches("[0-9A-Fa-f]{1,15}")) {
                throw new IOException("a chunk of the response has an invalid size");
            }
            left = Long.parseLong(size, 16);
            if (left == 0) {
                headers();
                return false;
            }
            return true;
        }

        /** Closes the connection, unless the body has been read to its end. */
        @Override
        public void close() {
            if (released.compareAndSet(false, true)) {
                release.released(left == 0 && !chunked && kept);
            }
        }
    }
}
