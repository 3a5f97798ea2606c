// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.observe.RequestTrace;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Records everything. Thread-safe. */
public class RecordingTrace implements RequestTrace {
    private final boolean includesTensors;
    public final List<String> recorded = Collections.synchronizedList(new ArrayList<>());
    public final List<Long> times = Collections.synchronizedList(new ArrayList<>());

    public RecordingTrace(boolean includesTensors) {
        this.includesTensors = includesTensors;
    }

    @Override
    public void event(Event event, long nanos) {
        recorded.add(event.name());
        times.add(nanos);
    }

    @Override
    public void attribute(String name, String value) {
        recorded.add(name + "=" + value);
    }

    @Override
    public boolean includesTensors() {
        return includesTensors;
    }

    @Override
    public void tensors(String activity, List<Tensor> some) {
        recorded.add(activity + " " + some);
    }

    @Override
    public void model(String name, long version, String requestId) {
        recorded.add("model " + name + " " + version + " " + requestId);
    }

    @Override
    public RequestTrace child(String model) {
        throw new AssertionError("no request of its own");
    }

    @Override
    public String traceId() {
        return "t1";
    }

    @Override
    public @Nullable String traceparent() {
        return null;
    }

    @Override
    public void end() {
        throw new AssertionError("only the caller that started the trace ends it");
    }
}
