// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.endpoint.Content;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;

/** Turns content into buffers for one gathering write: text and small tensors copied, large tensors as they lie. */
final class Gather {
    /** Tensors below this many bytes are cheaper to copy than to write from where they are. */
    private static final int COPIED = 4096;

    private Gather() {}

    /** A pooled direct buffer whose capacity is {@code n}; the pool rounds up that of very large ones. */
    static ByteBuf exact(int n) {
        ByteBuf buffer = MemoryRegion.allocator().directBuffer(n, n);
        return buffer.capacity() == n ? buffer : buffer.slice(0, n).setIndex(0, 0);
    }

    /** Bytes of the content that {@link #into} copies. */
    static int copied(Content content) {
        int n = content.textLength();
        for (int i = 0; i < content.tensorCount(); i++) {
            int bytes = content.tensor(i).byteLength();
            n += bytes < COPIED ? bytes : 0;
        }
        return n;
    }

    /**
     * Appends the content to {@code out}, which has room for what is copied.
     *
     * @return the buffers to write, in order; {@code out} alone when nothing large is in it. The caller owns them; the
     *     content's tensors and {@code out} are taken over
     */
    static ByteBuf[] into(ByteBuf out, Content content) {
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
            parts.add(tensor.region().toByteBuf(tensor.offset(), tensor.byteLength()));
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

    /** Gives the buffers up. */
    static void release(ByteBuf[] parts) {
        for (ByteBuf part : parts) {
            part.release();
        }
    }
}
