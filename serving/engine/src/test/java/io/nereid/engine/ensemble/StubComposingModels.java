// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.request.ResponseTimeListener;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Composing models that respond when the test completes them. Thread-safe if {@link #onStart} is. */
public final class StubComposingModels implements ComposingModels {
    /** Regions that are not free yet. */
    public static final class Ledger {
        public final AtomicInteger open = new AtomicInteger();

        public Tensor tensor(String name, DataType type, Shape shape, byte... bytes) {
            open.incrementAndGet();
            ByteBuffer memory = ByteBuffer.allocateDirect(bytes.length);
            memory.put(bytes).flip();
            return Tensor.over(name, type, shape, MemoryRegion.wrap(memory, open::decrementAndGet), 0, bytes.length);
        }

        public Tensor int32(String name, Shape shape, int... values) {
            ByteBuffer b = ByteBuffer.allocate(4 * values.length).order(java.nio.ByteOrder.LITTLE_ENDIAN);
            for (int v : values) {
                b.putInt(v);
            }
            return tensor(name, DataType.INT32, shape, b.array());
        }
    }

    /** A step in progress. */
    public static final class Started implements InferenceCall {
        public final InferenceRequest request;
        public final ResponseSink sink;
        public volatile boolean cancelled;

        Started(InferenceRequest request, ResponseSink sink) {
            this.request = request;
            this.sink = sink;
        }

        public String model() {
            return request.model().model();
        }

        public @Nullable Tensor input(String name) {
            for (Tensor t : request.inputs()) {
                if (t.name().equals(name)) {
                    return t;
                }
            }
            return null;
        }

        public boolean wants(String output) {
            return request.outputs().isEmpty()
                    || request.outputs().stream().map(RequestedOutput::name).anyMatch(output::equals);
        }

        public void respond(Map<String, Object> parameters, Tensor... outputs) {
            sink.next(response(parameters, outputs), false);
        }

        public void complete(Tensor... outputs) {
            complete(Map.of(), outputs);
        }

        public void complete(Map<String, Object> parameters, Tensor... outputs) {
            InferenceResponse response = response(parameters, outputs);
            request.release();
            if (sink instanceof ResponseTimeListener times) {
                times.onResponseTimes(1, 10, 100);
            }
            sink.next(response, true);
        }

        public void fail(ErrorCode code, String text) {
            request.release();
            sink.fail(ServingException.of(code, text));
        }

        private InferenceResponse response(Map<String, Object> parameters, Tensor... outputs) {
            return new InferenceResponse(
                    new ServableId(model(), 1), request.id(), new ArrayList<>(List.of(outputs)), parameters);
        }

        @Override
        public void cancel() {
            cancelled = true;
        }
    }

    /** What happens to a step that starts; by default it is kept in {@link #started}. */
    public interface OnStart {
        void started(Started step);
    }

    public final Map<String, ModelConfig> configs = new HashMap<>();
    public final Map<String, List<ServableState>> states = new HashMap<>();
    public final List<Started> started = new ArrayList<>();
    public OnStart onStart = started::add;

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        Started step = new Started(request, sink);
        onStart.started(step);
        return step;
    }

    /** The models that refuse requests. */
    public final Set<String> overloaded = ConcurrentHashMap.newKeySet();

    @Override
    public boolean refuse() {
        return !overloaded.isEmpty();
    }

    @Override
    public @Nullable ServingException refusal(ModelRef member, InferenceJob job) {
        return overloaded.contains(member.model())
                ? ServingException.of(ErrorCode.UNAVAILABLE, member.model() + " is overloaded")
                : null;
    }

    @Override
    public ModelConfig config(ModelRef member) {
        ModelConfig config = configs.get(member.model());
        if (config == null || member.version() > 1) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "no " + member);
        }
        return config;
    }

    @Override
    public List<ServableState> states(String member) {
        return states.getOrDefault(member, List.of());
    }

    /** Removes and returns the only started step of this model. */
    public Started take(String model) {
        for (int i = 0; i < started.size(); i++) {
            if (started.get(i).model().equals(model)) {
                return started.remove(i);
            }
        }
        throw new AssertionError(model + " has not been started, only "
                + started.stream().map(Started::model).toList());
    }
}
