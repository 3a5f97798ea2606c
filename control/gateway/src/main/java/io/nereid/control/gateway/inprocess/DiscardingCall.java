// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.inprocess;

import io.nereid.base.ErrorCode;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A call whose responses are discarded. Thread-safe. */
public final class DiscardingCall extends InProcessCall {
    private final AtomicInteger underWay;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** @param underWay decremented when the call ends */
    public DiscardingCall(String path, List<Header> metadata, long arrived, AtomicInteger underWay) {
        super(path, metadata, arrived);
        this.underWay = underWay;
    }

    @Override
    public void send(ResponseBody message) {
        message.discard();
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        message.discard();
        close(ErrorCode.OK, null);
    }

    @Override
    public void close(ErrorCode code, @Nullable String message) {
        if (ended.compareAndSet(false, true)) {
            underWay.decrementAndGet();
        }
    }
}
