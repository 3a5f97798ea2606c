// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OnnxMap;
import ai.onnxruntime.OnnxSequence;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession.Result;
import ai.onnxruntime.OrtSession.RunOptions;
import ai.onnxruntime.OrtUtil;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Runs of a shared session, one at a time. Confined to one thread at a time, but for {@link #cancel}, whose hand-over is
 * guarded by this object's lock.
 */
final class OnnxInvocation implements ModelInstance {
    private final OnnxModel model;
    private RunOptions options;
    private boolean running;
    private boolean cancelled;
    private boolean closed;

    OnnxInvocation(OnnxModel model) throws OrtException {
        this.model = model;
        this.options = newOptions(model);
    }

    private static RunOptions newOptions(OnnxModel model) throws OrtException {
        RunOptions options = new RunOptions();
        if (!model.settings().shrinkage().isEmpty()) {
            options.addRunConfigEntry(OrtSettings.SHRINKAGE, model.settings().shrinkage());
        }
        return options;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        RunOptions now = begin();
        try {
            boolean pin = model.pinning();
            try {
                return attempt(inputs, outputs, now, pin);
            } catch (OrtException e) {
                if (!pin || !OrtErrors.isShapeMismatch(e)) {
                    throw e;
                }
                model.stopPinning();
                return attempt(inputs, outputs, now, false);
            }
        } catch (OrtException e) {
            synchronized (this) {
                if (cancelled) {
                    throw ServingException.of(
                            ErrorCode.CANCELLED,
                            "the run of model '" + model.config().name() + "' was cancelled");
                }
            }
            throw OrtErrors.running(model.config().name(), e);
        } finally {
            end();
        }
    }

    private synchronized RunOptions begin() {
        if (closed || running) {
            throw new IllegalStateException(closed ? "the invocation is closed" : "a run is under way");
        }
        running = true;
        return options;
    }

    private synchronized void end() {
        running = false;
        if (cancelled) {
            // The mark to stop stays on the old options.
            cancelled = false;
            options.close();
            try {
                options = newOptions(model);
            } catch (OrtException e) {
                closed = true;
                throw ServingException.internal("cannot prepare the next run: " + OrtErrors.text(e), e);
            }
        }
    }

    private List<Tensor> attempt(List<Tensor> inputs, List<String> outputs, RunOptions now, boolean pin)
            throws OrtException {
        int count = model.inputs().size();
        Shape[] shapes = new Shape[count];
        Map<String, OnnxTensor> fed = new HashMap<>(2 * count);
        Map<String, OnnxTensor> pinned = new HashMap<>();
        Tensor[] results = new Tensor[outputs.size()];
        boolean done = false;
        try {
            for (Tensor input : inputs) {
                feed(input, shapes, fed);
            }
            for (int i = 0; i < count; i++) {
                if (shapes[i] == null) {
                    throw ServingException.invalidArgument(
                            "input '" + model.inputs().get(i).name() + "' of model '"
                                    + model.config().name() + "' is missing");
                }
            }
            Set<String> wanted = new HashSet<>();
            for (int i = 0; i < results.length; i++) {
                String name = outputs.get(i);
                Tensor room = pin ? room(model.output(name), shapes) : null;
                if (room == null) {
                    wanted.add(name);
                } else {
                    results[i] = room;
                    pinned.put(
                            name,
                            model.runtime().wrap(room.buffer(), room.dataType(), graphShape(model.output(name), room)));
                }
            }
            // No try-with-resources: results that are looked at in place outlive this run.
            @SuppressWarnings("resource")
            Result result = model.session().run(fed, wanted, pinned, now);
            collect(result, outputs, shapes, results);
            done = true;
            return List.of(results);
        } finally {
            fed.values().forEach(OnnxTensor::close);
            pinned.values().forEach(OnnxTensor::close);
            if (!done) {
                for (Tensor result : results) {
                    if (result != null) {
                        result.close();
                    }
                }
            }
        }
    }

    private void feed(Tensor input, Shape[] shapes, Map<String, OnnxTensor> fed) throws OrtException {
        int index = model.input(input.name());
        Port port = model.inputs().get(index);
        Shape shape = input.shape();
        if (port.shape().rank() == 0 && shape.rank() == 1 && shape.dim(0) == 1) {
            shape = Shape.SCALAR;
        }
        port.check(input.dataType(), shape);
        OnnxTensor tensor;
        if (port.dataType() == DataType.BYTES) {
            tensor = OnnxTensor.createTensor(model.runtime().environment(), StringElements.decode(input), shape.dims());
        } else {
            if (shape.byteSize(port.dataType()) != input.byteLength()) {
                throw ServingException.invalidArgument("input '" + port.name() + "' of shape " + shape + " and type "
                        + port.dataType() + " has " + input.byteLength() + " bytes (expected: "
                        + shape.byteSize(port.dataType()) + ")");
            }
            tensor = model.runtime().wrap(input.buffer(), port.dataType(), shape.dims());
        }
        shapes[index] = shape;
        OnnxTensor twice = fed.put(port.name(), tensor);
        if (twice != null) {
            twice.close();
            throw ServingException.invalidArgument("input '" + port.name() + "' is given twice");
        }
    }

    /** Memory of ours for an output whose shape is certain, else null. */
    private static @Nullable Tensor room(OutputPlan plan, Shape[] inputs) {
        Shape shape = plan.foresee(inputs);
        if (shape == null) {
            return null;
        }
        long bytes = shape.byteSize(plan.port().dataType());
        if (bytes == 0 || bytes > Integer.MAX_VALUE - 64) {
            return null;
        }
        return Tensor.allocate(plan.port().name(), plan.port().dataType(), plan.vector() ? Shape.of(1) : shape);
    }

    private static long[] graphShape(OutputPlan plan, Tensor room) {
        return plan.vector() ? new long[0] : room.shape().dims();
    }

    private void collect(Result result, List<String> outputs, Shape[] shapes, Tensor[] results) throws OrtException {
        List<OnnxValue> open = new ArrayList<>();
        try {
            for (int i = 0; i < results.length; i++) {
                if (results[i] == null) {
                    open.add(result.get(outputs.get(i)).orElseThrow());
                }
            }
            int next = 0;
            for (int i = 0; i < results.length; i++) {
                if (results[i] != null) {
                    continue;
                }
                OnnxValue value = open.get(next);
                OutputPlan plan = model.output(outputs.get(i));
                if (!(value instanceof OnnxTensor tensor)) {
                    results[i] = scores(plan.port(), (OnnxSequence) value);
                } else if (plan.port().dataType() == DataType.BYTES) {
                    results[i] = StringElements.encode(plan.port().name(), shown(plan, tensor), strings(tensor));
                } else {
                    results[i] = taken(plan, tensor);
                    if (plan.observing()) {
                        plan.observe(shapes, results[i].shape());
                    }
                    // Freed by its tensor, or already.
                    open.set(next, NOTHING);
                }
                next++;
            }
        } finally {
            for (OnnxValue value : open) {
                value.close();
            }
        }
    }

    private static Shape shown(OutputPlan plan, OnnxTensor tensor) {
        Shape shape = Shape.of(tensor.getInfo().getShape());
        return plan.vector() && shape.rank() == 0 ? Shape.of(1) : shape;
    }

    private static String[] strings(OnnxTensor tensor) throws OrtException {
        return tensor.getInfo().getNumElements() == 0 ? new String[0] : OrtUtil.flattenString(tensor.getValue());
    }

    /** The result where the engine put it. It takes the engine's value over. */
    private Tensor taken(OutputPlan plan, OnnxTensor tensor) {
        Shape shape = shown(plan, tensor);
        DataType type = plan.port().dataType();
        long bytes = shape.byteSize(type);
        MemoryRegion region;
        if (bytes == 0) {
            tensor.close();
            region = MemoryRegion.empty();
        } else if (bytes > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "output '" + plan.port().name() + "' takes " + bytes + " bytes (expected: < 2 GiB)");
        } else {
            ByteBuffer memory = model.runtime().view(tensor);
            if (memory == null) {
                ByteBuffer copy = tensor.getByteBuffer();
                region = MemoryRegion.allocate((int) bytes);
                region.nio(0, (int) bytes).put(copy);
                tensor.close();
            } else {
                model.hold();
                region = MemoryRegion.ofForeign(memory, () -> {
                    tensor.close();
                    model.drop();
                });
            }
        }
        return Tensor.over(plan.port().name(), type, shape, region, 0, (int) bytes);
    }

    /** A sequence of maps from class to score, as one row of scores for each map. */
    private static Tensor scores(Port port, OnnxSequence sequence) throws OrtException {
        List<String> keys = port.mapKeys();
        List<? extends OnnxValue> rows = sequence.getValue();
        try {
            if (keys == null) {
                throw new IllegalStateException("output '" + port.name() + "' is not a sequence of maps");
            }
            Tensor tensor = Tensor.allocate(port.name(), DataType.FP32, Shape.of(rows.size(), keys.size()));
            ByteBuffer scores = tensor.buffer();
            for (OnnxValue row : rows) {
                Map<String, Float> byKey = new HashMap<>();
                ((OnnxMap) row).getValue().forEach((key, score) -> byKey.put(key.toString(), (Float) score));
                for (String key : keys) {
                    scores.putFloat(byKey.getOrDefault(key, Float.NaN));
                }
            }
            return tensor;
        } finally {
            rows.forEach(OnnxValue::close);
        }
    }

    @Override
    public synchronized void cancel() {
        if (!running || cancelled) {
            return;
        }
        cancelled = true;
        try {
            options.setTerminate(true);
        } catch (OrtException e) {
            throw ServingException.internal("cannot cancel the run: " + OrtErrors.text(e), e);
        }
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            options.close();
        }
    }

    /** Stands for a value that is somebody else's to close. */
    private static final OnnxValue NOTHING = new OnnxValue() {
        @Override
        public OnnxValueType getType() {
            return OnnxValueType.ONNX_TYPE_UNKNOWN;
        }

        @Override
        public Object getValue() {
            return List.of();
        }

        @Override
        public ai.onnxruntime.ValueInfo getInfo() {
            throw new IllegalStateException();
        }

        @Override
        public boolean isClosed() {
            return true;
        }

        @Override
        public void close() {}
    };
}
