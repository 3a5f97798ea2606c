// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient.UnaryCalls;
import io.nereid.transport.api.VirtualHosts.Site;

/**
 * Says in the other protocol what a client asks of something that does not speak the client's. Implementations are thread-safe
 * and never block.
 */
public interface Bridge {
    /**
     * Begins to answer a call of gRPC; on any thread.
     *
     * @param rest asked over REST
     * @throws io.nereid.base.ServingException UNIMPLEMENTED for a method that REST has nothing for
     */
    GrpcListener overRest(GrpcCall call, Site rest);

    /**
     * Answers a request of REST; on any thread.
     *
     * @param grpc asked over gRPC
     */
    void overGrpc(HttpExchange exchange, UnaryCalls grpc);
}
