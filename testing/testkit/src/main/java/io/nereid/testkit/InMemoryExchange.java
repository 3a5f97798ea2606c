// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A fake HTTP exchange without a socket. It records the reply and releases the reply's body, as the transport does. Any
 * thread can reply; everything else is confined to the test's thread.
 */
public class InMemoryExchange implements HttpExchange {
    /** The request's headers, with names in lower case. */
    protected final Map<String, String> headers = new TreeMap<>();

    private final String method;
    private final String path;
    private final List<String> parameters;
    private final MemoryRegion body;
    private volatile @Nullable HttpReply reply;
    private volatile @Nullable Runnable cancel;

    /**
     * Creates a request.
     *
     * @param parameters the values of the route's placeholders
     * @param body the body; its ownership passes to the exchange
     */
    protected InMemoryExchange(String method, String path, List<String> parameters, MemoryRegion body) {
        this.method = method;
        this.path = path;
        this.parameters = parameters;
        this.body = body;
    }

    /** Creates a body from a text. */
    protected static MemoryRegion region(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return MemoryRegion.copyOf(bytes, 0, bytes.length);
    }

    /** Returns the bytes of a body, and releases its tensors. */
    public static byte[] bytes(ResponseBody content) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int text = 0;
        for (int i = 0; i < content.tensorCount(); i++) {
            out.write(content.text(), text, content.position(i) - text);
            text = content.position(i);
            Tensor tensor = content.tensor(i);
            byte[] elements = new byte[tensor.byteLength()];
            tensor.region().getBytes(tensor.offset(), elements, 0, elements.length);
            out.writeBytes(elements);
        }
        out.write(content.text(), text, content.textLength() - text);
        content.discard();
        return out.toByteArray();
    }

    /** Returns the reply; null before it. */
    public final @Nullable HttpReply replied() {
        return reply;
    }

    /** Returns the reply's status; 0 before it. */
    public int status() {
        HttpReply r = reply;
        return r == null ? 0 : r.status();
    }

    /** Returns the reply's text; empty before it. */
    public String text() {
        HttpReply r = reply;
        return r == null ? "" : new String(r.content().text(), 0, r.content().textLength(), StandardCharsets.UTF_8);
    }

    /** Returns a header of the reply, or null. */
    public final @Nullable String replyHeader(String name) {
        HttpReply r = reply;
        String[] all = r == null ? new String[0] : r.headers();
        for (int i = 0; i < all.length; i += 2) {
            if (all[i].equals(name)) {
                return all[i + 1];
            }
        }
        return null;
    }

    /** Simulates a client that closes the connection. */
    public final void leave() {
        Runnable action = cancel;
        if (action != null) {
            action.run();
        }
    }

    @Override
    public Caller caller() {
        return Caller.INTERNAL;
    }

    @Override
    public String method() {
        return method;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public String pathParameter(int index) {
        return parameters.get(index);
    }

    @Override
    public @Nullable String queryParameter(String name) {
        return null;
    }

    @Override
    public final @Nullable String header(String lowerCaseName) {
        return headers.get(lowerCaseName);
    }

    @Override
    public final void headers(BiConsumer<String, String> each) {
        headers.forEach(each);
    }

    @Override
    public final MemoryRegion body() {
        return body;
    }

    @Override
    public final long arrivedNanos() {
        return 1_000;
    }

    @Override
    public void onCancel(Runnable action) {
        cancel = action;
    }

    @Override
    public final boolean inEventLoop() {
        return true;
    }

    @Override
    public void reply(HttpReply made) {
        if (reply != null) {
            throw new AssertionError("a second reply");
        }
        reply = made;
        body.release();
    }

    @Override
    public ResponseStream stream(HttpReply head) {
        throw new AssertionError("streamed replies are not supported");
    }
}
