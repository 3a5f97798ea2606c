// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.inprocess;

import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import java.util.ArrayList;
import java.util.List;

/** Copies bodies before they are sent. Stateless. */
public final class BodyCopies {
    private BodyCopies() {}

    /** Copies the bytes of a body, which stays unchanged. The caller owns the copy. */
    public static MemoryRegion copy(ResponseBody content) {
        MemoryRegion region = MemoryRegion.allocate(Math.toIntExact(content.length()));
        int at = 0;
        int text = 0;
        // Tensors lie between ranges of the text: each one at its position.
        for (int i = 0; i < content.tensorCount(); i++) {
            int position = content.position(i);
            region.setBytes(at, content.text(), text, position - text);
            at += position - text;
            text = position;
            Tensor tensor = content.tensor(i);
            region.setBytes(at, tensor.region(), tensor.offset(), tensor.byteLength());
            at += tensor.byteLength();
        }
        if (content.textLength() > text) {
            region.setBytes(at, content.text(), text, content.textLength() - text);
        }
        return region;
    }

    /** Copies a region, which stays the caller's. */
    public static byte[] bytes(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    /** Turns a whole response into a reply. The response's body stays the caller's. */
    public static HttpReply reply(UpstreamResponse response) {
        String type = "";
        List<String> headers = new ArrayList<>();
        for (UpstreamClient.Header header : response.headers()) {
            if (header.name().equals("content-type")) {
                type = header.value();
            } else if (!header.name().equals("content-length")) {
                headers.add(header.name());
                headers.add(header.value());
            }
        }
        byte[] body = bytes(response.body());
        return new HttpReply(
                response.status(), type, headers.toArray(String[]::new), new ResponseBody(body, body.length));
    }
}
