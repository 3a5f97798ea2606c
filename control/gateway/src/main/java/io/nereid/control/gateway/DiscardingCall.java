// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A call whose answers nobody reads. Thread-safe. */
final class DiscardingCall extends InnerCall {
    private final AtomicInteger underWay;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** A call that takes one off {@code underWay} when it ends. */
    DiscardingCall(String path, List<Header> metadata, long arrived, AtomicInteger underWay) {
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
