// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.codec;

import io.nereid.tensor.NettyBuffers;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.ResponseBody;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;

/**
 * Turns a response body into the buffers of one gathering write: text and small tensors are copied into one buffer,
 * large tensors are written from where they are, without a copy. Holds no state.
 */
public final class GatheringWrite {
    /** Tensors below this many bytes are cheaper to copy than to write from where they are. */
    private static final int COPIED = 4096;

    private GatheringWrite() {}

    /**
     * A pooled direct buffer whose capacity is exactly {@code n}, also where the pool has rounded it up.
     *
     * @throws io.nereid.base.ServingException RESOURCE_EXHAUSTED, with a remedy, when the process has no memory for it
     */
    public static ByteBuf exact(int n) {
        ByteBuf buffer = NettyBuffers.direct(n);
        return buffer.capacity() == n ? buffer : buffer.slice(0, n).setIndex(0, 0);
    }

    /** The number of bytes that {@link #into} copies. */
    public static int copied(ResponseBody content) {
        int n = content.textLength();
        for (int i = 0; i < content.tensorCount(); i++) {
            int bytes = content.tensor(i).byteLength();
            n += bytes < COPIED ? bytes : 0;
        }
        return n;
    }

    /**
     * Appends the content to {@code out}, which has space for {@link #copied} bytes.
     *
     * @return the buffers to write, in order; {@code out} alone when no tensor is large. The caller owns them; the
     *     content's tensors and {@code out} are taken over
     */
    public static ByteBuf[] into(ByteBuf out, ResponseBody content) {
        byte[] text = content.text();
        List<ByteBuf> parts = null;
        int written = 0;
        for (int i = 0; i < content.tensorCount(); i++) {
            int position = content.position(i);
            out.writeBytes(text, written, position - written);
            written = position;
            Tensor tensor = content.tensor(i);
            if (tensor.byteLength() < COPIED) {
                if (tensor.byteLength() > 0) {
                    out.writeBytes(tensor.buffer());
                }
                continue;
            }
            if (parts == null) {
                parts = new ArrayList<>(2 * content.tensorCount() + 1);
            }
            if (out.isReadable()) {
                parts.add(out.readRetainedSlice(out.readableBytes()));
            }
            parts.add(NettyBuffers.buffer(tensor.region(), tensor.offset(), tensor.byteLength()));
        }
        out.writeBytes(text, written, content.textLength() - written);
        content.discard();
        if (parts == null) {
            return new ByteBuf[] {out};
        }
        if (out.isReadable()) {
            parts.add(out.readRetainedSlice(out.readableBytes()));
        }
        out.release();
        return parts.toArray(new ByteBuf[0]);
    }

    /** Releases the buffers. */
    public static void release(ByteBuf[] parts) {
        for (ByteBuf part : parts) {
            part.release();
        }
    }
}
