// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.endpoint.Content;
import io.nereid.endpoint.GrpcCall;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A call that tells of its metadata only what goes on to the steps, under names that no metadata can have, so that the
 * protocol hands it over among the request's parameters and nobody takes the one for the other. As thread-safe as the call.
 */
final class MarkedCall implements GrpcCall {
    /** Before the names. A space, for names of metadata have none. */
    static final String MARK = "step header ";

    private final GrpcCall call;
    private final PassedHeaders passed;

    MarkedCall(GrpcCall call, PassedHeaders passed) {
        this.call = call;
        this.passed = passed;
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {
        Map<String, String> joined = new LinkedHashMap<>();
        call.metadata((name, value) -> {
            // the type of the call's messages says nothing of the JSON that the steps get
            if (!name.equals("content-type") && passed.passes(name)) {
                joined.merge(name, value, (before, next) -> before + ", " + next);
            }
        });
        joined.forEach((name, value) -> each.accept(MARK + name, value));
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        return call.metadata(lowerCaseName);
    }

    @Override
    public String path() {
        return call.path();
    }

    @Override
    public long deadlineNanos() {
        return call.deadlineNanos();
    }

    @Override
    public long arrivedNanos() {
        return call.arrivedNanos();
    }

    @Override
    public boolean inEventLoop() {
        return call.inEventLoop();
    }

    @Override
    public boolean isReady() {
        return call.isReady();
    }

    @Override
    public void setReading(boolean reading) {
        call.setReading(reading);
    }

    @Override
    public void send(Content message) {
        call.send(message);
    }

    @Override
    public void sendAndClose(Content message) {
        call.sendAndClose(message);
    }

    @Override
    public void close(Code code, @Nullable String message) {
        call.close(code, message);
    }

    @Override
    public void fail(ServingException e) {
        call.fail(e);
    }

    @Override
    public GrpcCall origin() {
        return call.origin();
    }
}
