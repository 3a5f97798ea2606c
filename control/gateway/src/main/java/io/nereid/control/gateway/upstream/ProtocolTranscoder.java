// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.upstream;

import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient.UnaryCalls;
import io.nereid.transport.api.VirtualHosts.VirtualHost;

/**
 * Translates between gRPC and REST when a client and the target of its request speak different protocols.
 * Implementations are thread-safe and never block.
 */
public interface ProtocolTranscoder {
    /**
     * Answers a gRPC call with a REST request. Any thread.
     *
     * @param rest the target's REST routes
     * @throws io.nereid.base.ServingException UNIMPLEMENTED for a method without a counterpart in REST
     */
    GrpcListener overRest(GrpcCall call, VirtualHost rest);

    /**
     * Answers a REST request with a gRPC call. Any thread.
     *
     * @param grpc the target's gRPC methods
     */
    void overGrpc(HttpExchange exchange, UnaryCalls grpc);
}
