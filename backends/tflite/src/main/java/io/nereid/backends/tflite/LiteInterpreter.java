// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.*;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.tensorflowlite.TfLiteIntArray;
import org.bytedeco.tensorflowlite.TfLiteInterpreter;
import org.bytedeco.tensorflowlite.TfLiteSignatureRunner;
import org.bytedeco.tensorflowlite.TfLiteTensor;
import org.jspecify.annotations.Nullable;

/**
 * A TensorFlow Lite interpreter for one signature of a model, or for a model without signatures. Hides that the C API
 * has different functions for the two. Confined to one thread at a time, except {@link #cancel}.
 */
final class LiteInterpreter implements AutoCloseable {
    private final TfLiteInterpreter interpreter;
    private final @Nullable TfLiteSignatureRunner signature;
    private final List<String> inputs;
    private final List<String> outputs;

    private LiteInterpreter(TfLiteInterpreter interpreter, @Nullable TfLiteSignatureRunner signature) {
        this.interpreter = interpreter;
        this.signature = signature;
        inputs = names(true);
        outputs = names(false);
    }

    /**
     * Creates an interpreter.
     *
     * @param key the signature; empty for a model without signatures
     * @return null when TensorFlow Lite cannot create it; the error reporter has the reason
     */
    static @Nullable LiteInterpreter open(LiteRuntime runtime, LiteModelFile file, int threads, String key) {
        TfLiteInterpreter interpreter = runtime.interpreter(file.handle(), threads);
        if (interpreter == null) {
            return null;
        }
        TfLiteSignatureRunner signature = null;
        if (!key.isEmpty()) {
            try (BytePointer name = new BytePointer(key, java.nio.charset.StandardCharsets.UTF_8)) {
                signature = TfLiteInterpreterGetSignatureRunner(interpreter, name);
            }
            if (signature == null || signature.isNull()) {
                TfLiteInterpreterDelete(interpreter);
                return null;
            }
        }
        return new LiteInterpreter(interpreter, signature);
    }

    /** The names of the model's signatures; empty when it does not have any. */
    List<String> keys() {
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < TfLiteInterpreterGetSignatureCount(interpreter); i++) {
            keys.add(TfLiteInterpreterGetSignatureKey(interpreter, i).getString());
        }
        return keys;
    }

    private List<String> names(boolean in) {
        List<String> names = new ArrayList<>();
        TfLiteSignatureRunner own = signature;
        long count = own == null
                ? in
                        ? TfLiteInterpreterGetInputTensorCount(interpreter)
                        : TfLiteInterpreterGetOutputTensorCount(interpreter)
                : in ? TfLiteSignatureRunnerGetInputCount(own) : TfLiteSignatureRunnerGetOutputCount(own);
        for (int i = 0; i < count; i++) {
            BytePointer name = own != null
                    ? in ? TfLiteSignatureRunnerGetInputName(own, i) : TfLiteSignatureRunnerGetOutputName(own, i)
                    : TfLiteTensorName(
                            in
                                    ? TfLiteInterpreterGetInputTensor(interpreter, i)
                                    : TfLiteInterpreterGetOutputTensor(interpreter, i));
            String text = name == null ? "" : name.getString();
            // Old converters left names out, or gave several tensors the same name.
            names.add(text.isEmpty() || names.contains(text) ? (in ? "INPUT__" : "OUTPUT__") + i : text);
        }
        return List.copyOf(names);
    }

    List<String> inputs() {
        return inputs;
    }

    List<String> outputs() {
        return outputs;
    }

    private TfLiteTensor input(int i) {
        return signature == null
                ? TfLiteInterpreterGetInputTensor(interpreter, i)
                : TfLiteSignatureRunnerGetInputTensor(signature, inputs.get(i));
    }

    private TfLiteTensor output(int i) {
        return signature == null
                ? TfLiteInterpreterGetOutputTensor(interpreter, i)
                : TfLiteSignatureRunnerGetOutputTensor(signature, outputs.get(i));
    }

    TfLiteTensor tensor(boolean in, int i) {
        return in ? input(i) : output(i);
    }

    /** The inputs or outputs that the file declares. */
    List<TensorBinding> ports(String model, boolean in) {
        List<TensorBinding> ports = new ArrayList<>();
        List<String> names = in ? inputs : outputs;
        for (int i = 0; i < names.size(); i++) {
            TfLiteTensor tensor = tensor(in, i);
            if (tensor == null || tensor.isNull()) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + model + "': a signature has " + (in ? "input '" : "output '")
                                + names.get(i) + "', which the file does not have",
                        "copy the file again, or convert the model again");
            }
            DataType type = LiteElementTypes.numbered(TfLiteTensorType(tensor));
            if (type == null) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + model + "': " + (in ? "input '" : "output '") + names.get(i)
                                + "' is of type " + LiteElementTypes.name(TfLiteTensorType(tensor))
                                + ", which clients cannot send",
                        "convert the model with other types");
            }
            ports.add(new TensorBinding(names.get(i), type, declared(tensor)));
        }
        return List.copyOf(ports);
    }

    /**
     * The declared shape: TensorFlow Lite allocates 1 for a dimension of any size and keeps -1 in the dims signature.
     */
    private static Shape declared(TfLiteTensor tensor) {
        Shape now = shape(tensor);
        TfLiteIntArray signature = TfLiteTensorGetDimsSignature(tensor);
        if (signature == null || signature.isNull() || signature.size() != now.rank()) {
            return now;
        }
        long[] dims = new long[signature.size()];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = signature.data(i) < 0 ? -1 : signature.data(i);
        }
        return Shape.of(dims);
    }

    static Shape shape(TfLiteTensor tensor) {
        long[] dims = new long[Math.max(0, TfLiteTensorNumDims(tensor))];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = TfLiteTensorDim(tensor, i);
        }
        return Shape.of(dims);
    }

    /**
     * Sets an input's shape; {@link #allocate} must follow. Returns false when the input cannot have it.
     *
     * @param any whether dimensions that the file fixes may change as well, which a signature's own call does not allow
     */
    boolean resize(int i, Shape shape, boolean any) {
        int[] dims = new int[Math.max(1, shape.rank())];
        for (int d = 0; d < shape.rank(); d++) {
            if (shape.dim(d) > Integer.MAX_VALUE) {
                return false;
            }
            dims[d] = (int) shape.dim(d);
        }
        int place = signature == null ? i : any ? place(i) : -1;
        return kTfLiteOk
                == (place >= 0
                        ? TfLiteInterpreterResizeInputTensor(interpreter, place, dims, shape.rank())
                        : TfLiteSignatureRunnerResizeInputTensor(signature, inputs.get(i), dims, shape.rank()));
    }

    /** The index among the inputs of the interpreter of a signature's input; -1 if it is one of another graph. */
    private int place(int i) {
        long address = input(i).address();
        for (int k = 0; k < TfLiteInterpreterGetInputTensorCount(interpreter); k++) {
            if (TfLiteInterpreterGetInputTensor(interpreter, k).address() == address) {
                return k;
            }
        }
        return -1;
    }

    boolean allocate() {
        return kTfLiteOk
                == (signature == null
                        ? TfLiteInterpreterAllocateTensors(interpreter)
                        : TfLiteSignatureRunnerAllocateTensors(signature));
    }

    /** Runs the model. Variable tensors are reset first, because requests are independent of each other. */
    int invoke() {
        if (TfLiteInterpreterGetVariableTensorCount(interpreter) > 0) {
            TfLiteInterpreterResetVariableTensors(interpreter);
        }
        return signature == null ? TfLiteInterpreterInvoke(interpreter) : TfLiteSignatureRunnerInvoke(signature);
    }

    /** Stops a run that is in progress on another thread. */
    void cancel() {
        if (signature == null) {
            TfLiteInterpreterCancel(interpreter);
        } else {
            TfLiteSignatureRunnerCancel(signature);
        }
    }

    static ServingException tooLarge(String what, long size) {
        return ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED, what + " takes " + size + " bytes (expected: < 2 GiB)");
    }

    @Override
    public void close() {
        if (signature != null) {
            TfLiteSignatureRunnerDelete(signature);
        }
        TfLiteInterpreterDelete(interpreter);
    }
}
