// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The head of a gRPC call for a listener. Valid during a call of the listener. */
record GrpcRequestHead(GrpcCall call) implements PayloadListener.Head {
    @Override
    public String transport() {
        return "grpc";
    }

    @Override
    public String method() {
        return "POST";
    }

    @Override
    public String path() {
        return call.path();
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return call.metadata(lowerCaseName);
    }

    @Override
    public List<Header> headers() {
        List<Header> all = new ArrayList<>();
        call.metadata((name, value) -> all.add(new Header(name, value)));
        return all;
    }
}
