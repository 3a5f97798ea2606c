// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient;
import java.util.ArrayList;
import java.util.List;

/** Copies of what is about to be sent. Holds nothing. */
final class Bodies {
    private Bodies() {}

    /** The bytes of a content, which stays as it is; they belong to the caller. */
    static MemoryRegion copy(ResponseBody content) {
        MemoryRegion region = MemoryRegion.allocate(Math.toIntExact(content.length()));
        int at = 0;
        int text = 0;
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

    /** A copy of a region, which stays the caller's. */
    static byte[] bytes(MemoryRegion region) {
        byte[] bytes = new byte[region.size()];
        region.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    /** A whole answer as a reply; the answer's body stays the caller's. */
    static HttpReply reply(UpstreamClient.Answer answer) {
        String type = "";
        List<String> headers = new ArrayList<>();
        for (UpstreamClient.Header header : answer.headers()) {
            if (header.name().equals("content-type")) {
                type = header.value();
            } else if (!header.name().equals("content-length")) {
                headers.add(header.name());
                headers.add(header.value());
            }
        }
        byte[] body = bytes(answer.body());
        return new HttpReply(
                answer.status(), type, headers.toArray(String[]::new), new ResponseBody(body, body.length));
    }
}
