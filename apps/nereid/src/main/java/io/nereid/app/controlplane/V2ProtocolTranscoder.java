// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import io.nereid.control.gateway.upstream.ProtocolTranscoder;
import io.nereid.protocols.v2.transcoding.GrpcToRestTranscoder;
import io.nereid.protocols.v2.transcoding.RestToGrpcTranscoder;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient.UnaryCalls;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.util.concurrent.Executor;

/** Transcodes between the REST and gRPC forms of the V2 protocol, for the gateway. Immutable and thread-safe. */
public final class V2ProtocolTranscoder implements ProtocolTranscoder {
    private final GrpcToRestTranscoder grpcOverRest;
    private final RestToGrpcTranscoder restOverGrpc;

    /** @param pool converts large messages to JSON and back */
    public V2ProtocolTranscoder(Executor pool) {
        this.grpcOverRest = new GrpcToRestTranscoder(pool);
        this.restOverGrpc = new RestToGrpcTranscoder(pool);
    }

    @Override
    public GrpcListener overRest(GrpcCall call, VirtualHost rest) {
        return grpcOverRest.start(call, rest);
    }

    @Override
    public void overGrpc(HttpExchange exchange, UnaryCalls grpc) {
        restOverGrpc.answer(exchange, grpc);
    }
}
