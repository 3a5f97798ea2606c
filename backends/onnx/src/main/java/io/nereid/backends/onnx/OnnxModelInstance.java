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
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.WideRuns;
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
 * One instance of an ONNX model: runs a shared session, one run at a time. Confined to one thread at a time, except
 * {@link #cancel}, which may come from another thread; this object's lock guards {@code options}, {@code running},
 * {@code cancelled} and {@code closed}.
 *
 * <p>Memory. Inputs are not copied: ONNX Runtime reads the lent tensors, and the {@code OnnxTensor}s over them are
 * closed before {@link #run} returns. An output takes one of two ways:
 *
 * <ul>
 *   <li>Pinned: where {@link OutputShapes} knows the shape before the run, the output is allocated here and ONNX
 *       Runtime writes into it. No copy, and the memory comes from the server's pool.
 *   <li>Viewed: otherwise ONNX Runtime allocates the result. The returned tensor is a view of that memory; it owns the
 *       {@code OnnxTensor} and a hold on the session, and closes both when its last reference is closed. Where
 *       views are not available ({@link OrtRuntime#canView}), the result is copied.
 * </ul>
 *
 * <p>Strings and sequences of maps are always converted, so their ONNX Runtime values are closed at once.
 */
final class OnnxModelInstance implements ModelInstance {
    private final OnnxModel model;

    /** The session of ordinary runs: that of the processors, or of the instance's GPU. */
    private final OnnxSession ordinary;

    @GuardedBy("this") private RunOptions options;

    @GuardedBy("this") private boolean running;

    @GuardedBy("this") private boolean cancelled;

    @GuardedBy("this") private boolean closed;

    OnnxModelInstance(OnnxModel model, OnnxSession ordinary) throws OrtException {
        this.model = model;
        this.ordinary = ordinary;
        this.options = newOptions(model, ordinary);
    }

    private static RunOptions newOptions(OnnxModel model, OnnxSession session) throws OrtException {
        RunOptions options = new RunOptions();
        String shrinkage = model.settings().shrinkage(session.providers().gpu());
        if (!shrinkage.isEmpty()) {
            options.addRunConfigEntry(OrtSettings.SHRINKAGE, shrinkage);
        }
        return options;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        return run(ordinary, inputs, outputs);
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
        WideRuns<OnnxSession> wide = model.wide();
        return wide == null || ordinary.providers().gpu() >= 0 || !wide.considers(idleThreads)
                ? run(ordinary, inputs, outputs)
                : wide.run(inputs, second -> run(second == null ? ordinary : second, inputs, outputs));
    }

    private List<Tensor> run(OnnxSession session, List<Tensor> inputs, List<String> outputs) {
        RunOptions now = begin();
        try {
            boolean pin = model.pinning();
            try {
                return attempt(session, inputs, outputs, now, pin);
            } catch (OrtException e) {
                if (!pin || !OrtErrors.isShapeMismatch(e)) {
                    throw e;
                }
                // The graph declares shapes that its nodes do not keep (or symbolic names that mean two sizes). Inputs
                // are unchanged by a failed run, so repeat it, and do not pin for this model any more.
                model.stopPinning();
                return attempt(session, inputs, outputs, now, false);
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
            throw new IllegalStateException(closed ? "the instance is closed" : "a run is in progress");
        }
        running = true;
        return options;
    }

    private synchronized void end() {
        running = false;
        if (cancelled) {
            // ONNX Runtime does not reset the terminate flag of the options, so later runs need new ones.
            cancelled = false;
            options.close();
            try {
                options = newOptions(model, ordinary);
            } catch (OrtException e) {
                closed = true;
                throw ServingException.internal("cannot prepare the next run: " + OrtErrors.text(e), e);
            }
        }
    }

    private List<Tensor> attempt(
            OnnxSession session, List<Tensor> inputs, List<String> outputs, RunOptions now, boolean pin)
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
            Set<String> fetched = new HashSet<>();
            for (int i = 0; i < results.length; i++) {
                String name = outputs.get(i);
                Tensor memory = pin ? allocate(model.output(name), shapes) : null;
                if (memory == null) {
                    fetched.add(name);
                } else {
                    results[i] = memory;
                    OnnxTensor target = model.runtime()
                            .wrap(memory.buffer(), memory.dataType(), graphShape(model.output(name), memory));
                    pinned.put(name, target);
                }
            }
            // No try-with-resources: the values of viewed results stay open as long as their tensors. collect() closes
            // the others.
            @SuppressWarnings("resource")
            Result result = session.session().run(fed, fetched, pinned, now);
            collect(session, result, outputs, shapes, results);
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
        TensorBinding port = model.inputs().get(index);
        Shape shape = input.shape();
        if (port.shape().rank() == 0 && shape.rank() == 1 && shape.dim(0) == 1) {
            shape = Shape.SCALAR;
        }
        port.check(input.dataType(), shape);
        OnnxTensor tensor;
        if (port.dataType() == DataType.BYTES) {
            tensor = OnnxTensor.createTensor(model.runtime().environment(), StringTensors.decode(input), shape.dims());
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

    /** Allocates an output whose shape is known before the run, else returns null. */
    private static @Nullable Tensor allocate(OutputShapes plan, Shape[] inputs) {
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

    private static long[] graphShape(OutputShapes plan, Tensor memory) {
        return plan.vector() ? new long[0] : memory.shape().dims();
    }

    /**
     * Converts the outputs that ONNX Runtime allocated. Every value of the result is closed here, except those that a
     * viewed tensor owns; on a failure the remaining values are closed, too.
     */
    private void collect(OnnxSession session, Result result, List<String> outputs, Shape[] shapes, Tensor[] results)
            throws OrtException {
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
                OutputShapes plan = model.output(outputs.get(i));
                if (!(value instanceof OnnxTensor tensor)) {
                    results[i] = scores(plan.port(), (OnnxSequence) value);
                } else if (plan.port().dataType() == DataType.BYTES) {
                    results[i] = StringTensors.encode(plan.port().name(), shown(plan, tensor), strings(tensor));
                } else {
                    results[i] = taken(session, plan, tensor);
                    if (plan.observing()) {
                        plan.observe(shapes, results[i].shape());
                    }
                    // The result owns the value from here on, or has closed it.
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

    /** The shape that clients see: a scalar is a vector of one where the configuration says so. */
    private static Shape shown(OutputShapes plan, OnnxTensor tensor) {
        Shape shape = Shape.of(tensor.getInfo().getShape());
        return plan.vector() && shape.rank() == 0 ? Shape.of(1) : shape;
    }

    private static String[] strings(OnnxTensor tensor) throws OrtException {
        return tensor.getInfo().getNumElements() == 0 ? new String[0] : OrtUtil.flattenString(tensor.getValue());
    }

    /**
     * Makes a tensor over the memory that ONNX Runtime allocated. The new tensor owns the value and a hold on the
     * session.
     */
    private Tensor taken(OnnxSession session, OutputShapes plan, OnnxTensor tensor) {
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
                region.buffer(0, (int) bytes).put(copy);
                tensor.close();
            } else {
                session.hold();
                region = MemoryRegion.wrap(memory, () -> {
                    tensor.close();
                    session.drop();
                });
            }
        }
        return Tensor.over(plan.port().name(), type, shape, region, 0, (int) bytes);
    }

    /**
     * Converts a sequence of maps from class to score (the output of a ZipMap node) to a matrix with one row per map
     * and one column per class. A class that a map does not have gets NaN.
     */
    private static Tensor scores(TensorBinding port, OnnxSequence sequence) throws OrtException {
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

    /** Replaces a value that a tensor owns, so that {@link #collect} does not close it. */
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
