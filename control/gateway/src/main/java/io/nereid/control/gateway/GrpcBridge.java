// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.endpoint.GrpcCall;
import io.nereid.endpoint.GrpcMethod.GrpcListener;
import io.nereid.endpoint.VirtualHosts.Site;

/** Answers gRPC calls in the place of what speaks REST alone. Implementations are thread-safe. */
@FunctionalInterface
public interface GrpcBridge {
    /**
     * Begins to answer a call; on any thread, must not block.
     *
     * @param rest asked over REST
     * @throws io.nereid.base.ServingException UNIMPLEMENTED for a method that REST has nothing for
     */
    GrpcListener start(GrpcCall call, Site rest);
}
