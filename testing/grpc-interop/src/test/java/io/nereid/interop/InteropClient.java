// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.interop;

import io.grpc.ManagedChannelBuilder;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.testing.integration.AbstractInteropTest;

/** gRPC's interoperability client, connected to a server of the transport. Confined to one thread. */
final class InteropClient extends AbstractInteropTest {
    private final int port;

    InteropClient(int port) {
        this.port = port;
    }

    @Override
    protected ManagedChannelBuilder<?> createChannelBuilder() {
        return NettyChannelBuilder.forAddress("127.0.0.1", port)
                .usePlaintext()
                .flowControlWindow(TEST_FLOW_CONTROL_WINDOW)
                .maxInboundMessageSize(MAX_MESSAGE_SIZE);
    }

    /** The server does not run in this class, so it records nothing for it. */
    @Override
    protected boolean metricsExpected() {
        return false;
    }
}
