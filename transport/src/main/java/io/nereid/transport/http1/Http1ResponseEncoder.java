// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Encodes HTTP/1.1 responses. Head and small body go into one direct buffer, so that a usual response is one write;
 * large tensors are passed to the socket from where they are. Holds no mutable state.
 */
public final class Http1ResponseEncoder {
    private static final Map<Integer, byte[]> JSON_HEADS = new HashMap<>();
    /** Keeps browsers from taking an answer, which may quote a request, for something else than it says. */
    private static final String NOSNIFF = "x-content-type-options: nosniff\r\n";

    private static final byte[] CLOSE = ascii("connection: close\r\n");
    private static final byte[] KEEP_ALIVE = ascii("connection: keep-alive\r\n");
    private static final byte[] JSON_200 = jsonHead(200);

    static {
        for (int status : new int[] {400, 404, 405, 413, 429, 500, 501, 503, 504}) {
            JSON_HEADS.put(status, jsonHead(status));
        }
    }

    private static final byte[] NOTHING = {};

    private Http1ResponseEncoder() {}

    /** Whether a response already carries a header, such as {@code date} in one that was proxied. */
    static boolean has(HttpReply reply, String lowerCaseName) {
        String[] headers = reply.headers();
        for (int i = 0; i < headers.length; i += 2) {
            if (headers[i].equals(lowerCaseName)) {
                return true;
            }
        }
        return false;
    }

    private static byte[] ascii(String s) {
        return s.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] jsonHead(int status) {
        return ascii(statusLine(status) + "content-type: application/json\r\n" + NOSNIFF);
    }

    /** Whether a browser might take a body for a page or a script, if it were free to guess. */
    public static boolean isText(String contentType) {
        return contentType.startsWith("text/") || contentType.contains("json") || contentType.contains("xml");
    }

    private static String statusLine(int status) {
        return "HTTP/1.1 " + status + " " + HttpResponseStatus.valueOf(status).reasonPhrase() + "\r\n";
    }

    /**
     * Encodes a response and takes its content over.
     *
     * @param keepAlive 0 to send {@code connection: close}, 1 to send no connection header, 2 to send {@code
     *     keep-alive}
     * @param headOnly whether to send the headers without the body, as for HEAD
     * @return the buffers to write, in order
     */
    public static ByteBuf[] render(
            HttpReply reply, ContentEncoding encoding, byte[] dateLine, int keepAlive, boolean headOnly) {
        ResponseBody content = reply.content();
        if (encoding != ContentEncoding.IDENTITY) {
            content = AbstractHttpExchange.compressed(content, encoding);
        }
        int status = reply.status();
        ByteBuf out = begin(reply, 160 + dateLine.length + (headOnly ? 0 : GatheringWrite.copied(content)));
        if (encoding != ContentEncoding.IDENTITY) {
            write(out, "content-encoding: ");
            write(out, encoding.token);
            write(out, "\r\nvary: accept-encoding\r\n");
        }
        // a response to HEAD and a 304 keep the content-length of the body that they describe
        boolean described = (headOnly || status == 304) && has(reply, "content-length");
        if (status >= 200 && status != 204 && status != 304 && !described) {
            write(out, "content-length: ");
            decimal(out, content.length());
            crlf(out);
        }
        end(out, has(reply, "date") ? NOTHING : dateLine, keepAlive);
        if (headOnly || status == 204 || status == 304) {
            content.discard();
            return new ByteBuf[] {out};
        }
        return GatheringWrite.into(out, content);
    }

    /** The head of a streamed response; does not touch its content. */
    static ByteBuf streamHead(HttpReply reply, byte[] dateLine, int keepAlive, boolean chunked) {
        ByteBuf out = begin(reply, 160 + dateLine.length);
        if (chunked) {
            write(out, "transfer-encoding: chunked\r\n");
        }
        end(out, has(reply, "date") ? NOTHING : dateLine, keepAlive);
        return out;
    }

    /** A buffer that begins with status line, content type and further headers and has {@code spare} bytes left. */
    private static ByteBuf begin(HttpReply reply, int spare) {
        int status = reply.status();
        String[] headers = reply.headers();
        byte[] head;
        if (HttpReply.JSON.equals(reply.contentType())) {
            byte[] known = status == 200 ? JSON_200 : JSON_HEADS.get(status);
            head = known == null ? jsonHead(status) : known;
        } else {
            String type = reply.contentType();
            head = ascii(statusLine(status)
                    + (type.isEmpty() ? "" : "content-type: " + clean(type) + "\r\n")
                    + (isText(type) ? NOSNIFF : ""));
        }
        int size = spare + head.length;
        for (String h : headers) {
            size += h.length() + 4;
        }
        ByteBuf out = NettyBuffers.allocator().directBuffer(size);
        out.writeBytes(head);
        for (int i = 0; i < headers.length; i += 2) {
            write(out, clean(headers[i]));
            out.writeShort(':' << 8 | ' ');
            write(out, clean(headers[i + 1]));
            crlf(out);
        }
        return out;
    }

    private static void end(ByteBuf out, byte[] dateLine, int keepAlive) {
        out.writeBytes(dateLine);
        if (keepAlive != 1) {
            out.writeBytes(keepAlive == 0 ? CLOSE : KEEP_ALIVE);
        }
        crlf(out);
    }

    /** Replaces control characters, by which a header's value could inject further headers (response splitting). */
    public static String clean(String value) {
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c < ' ' && c != '\t' || c >= 127) {
                return value.replaceAll("[^\\t\\x20-\\x7e]", "?");
            }
        }
        return value;
    }

    private static void write(ByteBuf out, String ascii) {
        out.writeCharSequence(ascii, StandardCharsets.US_ASCII);
    }

    private static void crlf(ByteBuf out) {
        out.writeShort('\r' << 8 | '\n');
    }

    private static void decimal(ByteBuf out, long n) {
        if (n < 10) {
            out.writeByte('0' + (int) n);
            return;
        }
        long power = 10;
        while (n / power >= 10) {
            power *= 10;
        }
        for (; power > 0; power /= 10) {
            out.writeByte('0' + (int) (n / power % 10));
        }
    }
}
