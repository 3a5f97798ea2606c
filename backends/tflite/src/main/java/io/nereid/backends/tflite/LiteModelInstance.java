// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorByteSize;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorData;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorType;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteCancelled;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteError;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteOk;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.WideRuns;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.TfLiteTensor;
import org.jspecify.annotations.Nullable;

/**
 * One instance of a TensorFlow Lite model: an interpreter with tensor memory of its own, and runs of one signature, one
 * at a time. Confined to one thread at a time, except {@link #cancel} and {@link #close}, which synchronise on this
 * object; so does every replacement of the interpreter.
 *
 * <p>TensorFlow Lite allocates its tensors for the input shapes, so inputs and outputs are copied, and the allocation
 * is kept as long as the shapes stay the same. One interpreter serves all shapes: XNNPACK keeps its copy of the weights
 * when a batch has another size, so that a change costs a fraction of a millisecond, whereas another interpreter would
 * need another copy. A wide run ({@link WideRuns}) uses the interpreter of another instance.
 */
final class LiteModelInstance implements ModelInstance {
    private final LiteModel model;
    private final SignatureBinding signature;
    private final ErrorReporter reports;
    private final CancellationCheck cancellations;
    private final int threads;
    private final Runnable whenClosed;
    private final AtomicBoolean cancelled = new AtomicBoolean();
    /** Cancels the run on this interpreter: that of the instance that was asked for it. */
    private AtomicBoolean runCancelled = cancelled;

    /** The input shapes that the tensors are allocated for; valid only if {@code allocated}. */
    private final @Nullable Shape[] allocatedShapes;

    private LiteInterpreter runner;
    private boolean allocated;
    /** Whether the next run needs a new interpreter: this one has failed, or replaces one with XNNPACK for a run. */
    private boolean stale;

    @GuardedBy("this") private boolean running;

    @GuardedBy("this") private boolean closed;

    /**
     * Constructor.
     *
     * @param threads threads of a run
     * @param whenClosed called once, by {@link #close}
     */
    LiteModelInstance(
            LiteModel model, SignatureBinding signature, LiteRuntime runtime, int threads, Runnable whenClosed) {
        this.model = model;
        this.signature = signature;
        this.threads = threads;
        this.whenClosed = whenClosed;
        this.runner = model.runner(signature, threads);
        this.reports = runtime.reports();
        this.cancellations = runtime.cancellations();
        allocatedShapes = new Shape[signature.inputs().size()];
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        return run(this, inputs, outputs);
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
        WideRuns<WideInterpreter> wide = model.wide(signature);
        return wide == null || !wide.considers(idleThreads)
                ? run(this, inputs, outputs)
                : wide.run(inputs, second -> run(second == null ? this : second.instance(), inputs, outputs));
    }

    /** Runs on the interpreter of an instance that has no other run meanwhile: this one, or that of wide runs. */
    private List<Tensor> run(LiteModelInstance on, List<Tensor> inputs, List<String> outputs) {
        synchronized (this) {
            if (closed) {
                throw new IllegalStateException("the instance is closed");
            }
            cancelled.set(false);
            running = true;
        }
        try {
            return on.computed(inputs, outputs, cancelled);
        } finally {
            synchronized (this) {
                running = false;
            }
        }
    }

    private List<Tensor> computed(List<Tensor> inputs, List<String> outputs, AtomicBoolean flag) {
        runCancelled = flag;
        reports.startCollecting();
        cancellations.watch(flag);
        try {
            if (stale) {
                replace(model.runner(signature, threads));
                stale = false;
            }
            Tensor[] ordered = ordered(inputs);
            long rows =
                    model.single() && ordered.length > 0 ? ordered[0].shape().dim(0) : 1;
            return rows > 1 ? rowByRow(ordered, (int) rows, outputs) : once(ordered, outputs);
        } finally {
            cancellations.unwatch();
            reports.takeMessages();
        }
    }

    private List<Tensor> once(Tensor[] inputs, List<String> outputs) {
        int status = computed(inputs);
        if (status != kTfLiteOk && runner.xnnpack() && !runCancelled.get()) {
            // XNNPACK may refuse shapes that the built-in kernels accept. When they refuse them, too, their messages
            // say what is wrong with the input.
            String messages = reports.takeMessages();
            reports.startCollecting();
            replace(model.builtInRunner(signature, threads));
            stale = true;
            status = computed(inputs);
            if (status == kTfLiteOk) {
                model.logFallback(messages);
            }
        }
        if (status != kTfLiteOk) {
            throw failed(status);
        }
        try (TensorScope results = new TensorScope()) {
            for (String output : outputs) {
                results.add(result(output));
            }
            return results.release();
        }
    }

    /** Copies the inputs into the interpreter and runs it. Returns TensorFlow Lite's status. */
    private int computed(Tensor[] inputs) {
        if (!allocated(inputs)) {
            return kTfLiteError;
        }
        for (int i = 0; i < inputs.length; i++) {
            feed(i, inputs[i]);
        }
        return runner.invoke();
    }

    /** Replaces the interpreter, whose tensors must be allocated again. */
    private void replace(LiteInterpreter next) {
        allocated = false;
        synchronized (this) {
            runner.close();
            runner = next;
        }
    }

    /** Runs a model that has a fixed batch size of 1 once per row, and concatenates the results. */
    private List<Tensor> rowByRow(Tensor[] inputs, int rows, List<String> outputs) {
        List<Tensor> whole = new ArrayList<>(outputs.size());
        List<Tensor> row = new ArrayList<>(inputs.length);
        List<Tensor> results = List.of();
        boolean done = false;
        try {
            for (int r = 0; r < rows; r++) {
                if (runCancelled.get()) {
                    throw stopped();
                }
                for (Tensor input : inputs) {
                    int length = input.byteLength() / rows;
                    row.add(input.retainSlice(input.shape().withFirst(1), r * length, length));
                }
                results = once(row.toArray(Tensor[]::new), outputs);
                for (int i = 0; i < results.size(); i++) {
                    Tensor result = results.get(i);
                    if (r == 0) {
                        whole.add(Tensor.allocate(
                                result.name(), result.dataType(), result.shape().withFirst(rows)));
                    }
                    whole.get(i).buffer().position(r * result.byteLength()).put(result.buffer());
                }
                Tensor.closeAll(results);
                results = List.of();
                Tensor.closeAll(row);
                row.clear();
            }
            done = true;
            return whole;
        } finally {
            Tensor.closeAll(results);
            Tensor.closeAll(row);
            if (!done) {
                Tensor.closeAll(whole);
            }
        }
    }

    private ServingException failed(int status) {
        // The allocation may be incomplete, so the next run begins with a new interpreter.
        stale = true;
        String messages = reports.takeMessages();
        if (status == kTfLiteCancelled || runCancelled.get()) {
            return stopped();
        }
        return ServingException.invalidArgument("model '" + model.config().name() + "' rejected the input: "
                + (messages.isEmpty() ? "TensorFlow Lite reports no reason" : messages));
    }

    private ServingException stopped() {
        return ServingException.of(
                ErrorCode.CANCELLED, "the run of model '" + model.config().name() + "' was cancelled");
    }

    private Tensor[] ordered(List<Tensor> inputs) {
        List<TensorBinding> ports = signature.inputs();
        Tensor[] ordered = new Tensor[ports.size()];
        for (Tensor input : inputs) {
            int at = TensorBinding.names(ports).indexOf(input.name());
            if (at < 0) {
                throw ServingException.invalidArgument("unexpected input '" + input.name() + "' for model '"
                        + model.config().name() + "' (expected: " + String.join(", ", TensorBinding.names(ports))
                        + ")");
            }
            ordered[at] = input;
        }
        for (int i = 0; i < ordered.length; i++) {
            if (ordered[i] == null) {
                throw ServingException.invalidArgument("input '" + ports.get(i).name() + "' of model '"
                        + model.config().name() + "' is missing");
            }
            if (ordered[i].dataType() != ports.get(i).dataType()) {
                throw ServingException.invalidArgument("input '" + ports.get(i).name() + "' is of type "
                        + ordered[i].dataType() + " (expected: " + ports.get(i).dataType() + ")");
            }
        }
        return ordered;
    }

    /**
     * Allocates the interpreter's tensors for the shapes of the inputs, unless they are those of the last run. Returns
     * whether it could.
     */
    private boolean allocated(Tensor[] inputs) {
        boolean same = allocated;
        for (int i = 0; same && i < inputs.length; i++) {
            same = Objects.equals(inputs[i].shape(), allocatedShapes[i]);
        }
        if (same) {
            return true;
        }
        boolean fresh = !allocated;
        if (!resized(inputs)) {
            if (fresh) {
                return false;
            }
            // After an allocation, some operators keep the sizes that they have prepared for. Try a new interpreter.
            replace(runner.xnnpack() ? model.runner(signature, threads) : model.builtInRunner(signature, threads));
            reports.startCollecting();
            if (!resized(inputs)) {
                return false;
            }
        }
        for (int i = 0; i < inputs.length; i++) {
            allocatedShapes[i] = inputs[i].shape();
        }
        allocated = true;
        return true;
    }

    private boolean resized(Tensor[] inputs) {
        for (int i = 0; i < inputs.length; i++) {
            Shape shape = inputs[i].shape();
            // Resizing to the same shape would fail for tensors that cannot be resized.
            if (!shape.equals(LiteInterpreter.shape(runner.tensor(true, i)))
                    && !runner.resize(i, shape, !signature.inputs().get(i).checked())) {
                return false;
            }
        }
        return runner.allocate();
    }

    private void feed(int i, Tensor input) {
        TfLiteTensor tensor = runner.tensor(true, i);
        if (input.dataType() == DataType.BYTES) {
            StringTensors.encode(input, tensor);
            return;
        }
        long size = TfLiteTensorByteSize(tensor);
        if (size != input.byteLength()) {
            throw ServingException.invalidArgument("input '" + input.name() + "' of shape " + input.shape() + " has "
                    + input.byteLength() + " bytes (expected: " + size + ")");
        }
        if (size > 0) {
            requireData("input", input.name(), tensor);
            Pointer.memcpy(TfLiteTensorData(tensor), new NativePointer(input.address()), size);
        }
    }

    /** Damaged models have tensors that nothing computes. */
    private void requireData(String side, String name, TfLiteTensor tensor) {
        Pointer data = TfLiteTensorData(tensor);
        if (data == null || data.isNull()) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    side + " '" + name + "' of model '" + model.config().name() + "' has no memory",
                    "convert the model again");
        }
    }

    private Tensor result(String output) {
        int at = TensorBinding.names(signature.outputs()).indexOf(output);
        if (at < 0) {
            throw ServingException.invalidArgument("unexpected output '" + output + "' for model '"
                    + model.config().name() + "' (expected: "
                    + String.join(", ", TensorBinding.names(signature.outputs())) + ")");
        }
        TfLiteTensor tensor = runner.tensor(false, at);
        DataType type = signature.outputs().get(at).dataType();
        if (LiteElementTypes.numbered(TfLiteTensorType(tensor)) != type) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "output '" + output + "' is of type " + LiteElementTypes.name(TfLiteTensorType(tensor))
                            + " instead of " + type);
        }
        Shape shape = LiteInterpreter.shape(tensor);
        if (type == DataType.BYTES) {
            return StringTensors.decode(output, shape, tensor);
        }
        long size = TfLiteTensorByteSize(tensor);
        if (size > Integer.MAX_VALUE - 64) {
            throw LiteInterpreter.tooLarge("output '" + output + "'", size);
        }
        if (size > 0) {
            requireData("output", output, tensor);
        }
        MemoryRegion region = MemoryRegion.allocate((int) size);
        if (size > 0) {
            Pointer.memcpy(new NativePointer(region.address()), TfLiteTensorData(tensor), size);
        }
        return Tensor.over(output, type, shape, region, 0, (int) size);
    }

    @Override
    public synchronized void cancel() {
        if (running && !closed) {
            cancelled.set(true);
        }
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            runner.close();
            whenClosed.run();
        }
    }
}
