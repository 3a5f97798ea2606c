// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorDim;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorGetDimsSignature;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorNumDims;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorType;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteOk;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.tensorflowlite.BuiltinOpResolver;
import org.bytedeco.tensorflowlite.BuiltinOpResolverWithoutDefaultDelegates;
import org.bytedeco.tensorflowlite.Interpreter;
import org.bytedeco.tensorflowlite.SignatureRunner;
import org.bytedeco.tensorflowlite.StringVector;
import org.bytedeco.tensorflowlite.Subgraph;
import org.bytedeco.tensorflowlite.TfLiteIntArray;
import org.bytedeco.tensorflowlite.TfLiteTensor;
import org.jspecify.annotations.Nullable;

/**
 * A TensorFlow Lite interpreter for one signature of a model, or for a model without signatures. Hides that the two
 * have different functions. Confined to one thread at a time.
 */
final class LiteInterpreter implements AutoCloseable {
    private final BuiltinOpResolver operators;
    private final Interpreter interpreter;
    private final @Nullable SignatureRunner signature;
    private final boolean xnnpack;
    private final boolean variables;
    private final List<String> inputs;
    private final List<String> outputs;

    private LiteInterpreter(
            BuiltinOpResolver operators,
            Interpreter interpreter,
            @Nullable SignatureRunner signature,
            boolean xnnpack) {
        this.operators = operators;
        this.interpreter = interpreter;
        this.signature = signature;
        this.xnnpack = xnnpack;
        variables = hasVariables(interpreter);
        inputs = names(true);
        outputs = names(false);
    }

    /**
     * Creates an interpreter.
     *
     * @param key the signature; empty for a model without signatures
     * @param xnnpack whether XNNPACK runs the operators that it has. It copies their weights into a layout of its own
     * @return null when TensorFlow Lite cannot create it; the error reporter has the reason
     */
    static @Nullable LiteInterpreter open(
            LiteRuntime runtime, LiteModelFile file, int threads, String key, boolean xnnpack) {
        BuiltinOpResolver operators =
                xnnpack ? new BuiltinOpResolver() : new BuiltinOpResolverWithoutDefaultDelegates();
        Interpreter interpreter = runtime.interpreter(file, operators, threads);
        SignatureRunner signature = null;
        if (interpreter != null && !key.isEmpty()) {
            try (BytePointer name = new BytePointer(key, StandardCharsets.UTF_8)) {
                signature = interpreter.GetSignatureRunner(name);
            }
            if (signature == null || signature.isNull()) {
                interpreter.deallocate();
                interpreter = null;
            }
        }
        if (interpreter == null) {
            operators.deallocate();
            return null;
        }
        return new LiteInterpreter(operators, interpreter, signature, xnnpack);
    }

    private static boolean hasVariables(Interpreter interpreter) {
        for (int i = 0; i < interpreter.subgraphs_size(); i++) {
            try (IntPointer variables = interpreter.subgraph(i).variables()) {
                if (!empty(variables)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean empty(@Nullable IntPointer list) {
        return list == null || list.isNull() || list.limit() == 0;
    }

    /** Whether it was created with XNNPACK. */
    boolean xnnpack() {
        return xnnpack;
    }

    /** The names of the model's signatures; empty when it does not have any. */
    List<String> keys() {
        List<String> keys = new ArrayList<>();
        try (StringVector all = interpreter.signature_keys()) {
            for (long i = 0; i < all.size(); i++) {
                try (BytePointer key = all.get(i)) {
                    keys.add(key == null ? "" : new String(key.getStringBytes(), StandardCharsets.UTF_8));
                }
            }
        }
        return keys;
    }

    private List<String> names(boolean in) {
        List<String> names = new ArrayList<>();
        SignatureRunner own = signature;
        if (own != null) {
            long count = in ? own.input_size() : own.output_size();
            try (PointerPointer<?> all = in ? own.input_names() : own.output_names()) {
                // A damaged signature names fewer tensors than its graph has.
                long named = all == null || all.isNull() ? 0 : all.limit();
                for (long i = 0; i < count; i++) {
                    add(names, i < named ? new BytePointer(all.get(i)) : null, in);
                }
            }
            return List.copyOf(names);
        }
        for (int i = 0; i < count(in); i++) {
            add(names, in ? interpreter.GetInputName(i) : interpreter.GetOutputName(i), in);
        }
        return List.copyOf(names);
    }

    private static void add(List<String> names, @Nullable BytePointer name, boolean in) {
        String text = name == null || name.isNull() ? "" : name.getString(StandardCharsets.UTF_8);
        // Old converters left names out, or gave several tensors the same name.
        names.add(text.isEmpty() || names.contains(text) ? (in ? "INPUT__" : "OUTPUT__") + names.size() : text);
    }

    /** The number of inputs or outputs of a model without signatures. */
    private long count(boolean in) {
        try (IntPointer all = in ? interpreter.inputs() : interpreter.outputs()) {
            return empty(all) ? 0 : all.limit();
        }
    }

    List<String> inputs() {
        return inputs;
    }

    List<String> outputs() {
        return outputs;
    }

    TfLiteTensor tensor(boolean in, int i) {
        SignatureRunner own = signature;
        if (own == null) {
            return in ? interpreter.input_tensor(i) : interpreter.output_tensor(i);
        }
        try (BytePointer name = new BytePointer((in ? inputs : outputs).get(i), StandardCharsets.UTF_8)) {
            return in ? own.input_tensor(name) : own.output_tensor(name);
        }
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
        TfLiteIntArray known = TfLiteTensorGetDimsSignature(tensor);
        if (known == null || known.isNull() || known.size() != now.rank()) {
            return now;
        }
        long[] dims = new long[known.size()];
        for (int i = 0; i < dims.length; i++) {
            dims[i] = known.data(i) < 0 ? -1 : known.data(i);
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
        int[] dims = new int[shape.rank()];
        for (int d = 0; d < dims.length; d++) {
            if (shape.dim(d) > Integer.MAX_VALUE) {
                return false;
            }
            dims[d] = (int) shape.dim(d);
        }
        SignatureRunner own = signature;
        if (own == null) {
            try (IntPointer all = interpreter.inputs()) {
                return interpreter.ResizeInputTensor(all.get(i), dims) == kTfLiteOk;
            }
        }
        try (BytePointer name = new BytePointer(inputs.get(i), StandardCharsets.UTF_8)) {
            return kTfLiteOk == (any ? own.ResizeInputTensor(name, dims) : own.ResizeInputTensorStrict(name, dims));
        }
    }

    boolean allocate() {
        return kTfLiteOk == (signature == null ? interpreter.AllocateTensors() : signature.AllocateTensors());
    }

    /**
     * The elements of the largest tensor: by the shapes in the file before {@link #allocate}, and by those that the
     * operators compute after it.
     */
    double largestTensor() {
        double largest = 0;
        for (int i = 0; i < interpreter.subgraphs_size(); i++) {
            Subgraph graph = interpreter.subgraph(i);
            for (int k = 0; k < graph.tensors_size(); k++) {
                TfLiteTensor tensor = graph.tensor(k);
                double elements = 1;
                for (int d = 0; d < TfLiteTensorNumDims(tensor); d++) {
                    elements *= TfLiteTensorDim(tensor, d);
                }
                largest = Math.max(largest, elements);
            }
        }
        return largest;
    }

    /** The number of operators, in all graphs, that XNNPACK runs. Call it after {@link #allocate}. */
    int delegated() {
        int count = 0;
        for (int i = 0; i < interpreter.subgraphs_size(); i++) {
            Subgraph graph = interpreter.subgraph(i);
            if (graph.HasDelegates()) {
                try (IntPointer before = graph.pre_delegation_execution_plan();
                        IntPointer plan = graph.execution_plan()) {
                    // A node of the delegate takes the place of its operators, with an index after theirs.
                    int most = -1;
                    for (long k = 0; !empty(before) && k < before.limit(); k++) {
                        most = Math.max(most, before.get(k));
                    }
                    count += empty(before) ? 0 : (int) before.limit();
                    for (long k = 0; !empty(plan) && k < plan.limit(); k++) {
                        count -= plan.get(k) <= most ? 1 : 0;
                    }
                }
            }
        }
        return count;
    }

    /** Runs the model. Variable tensors are reset first, because requests are independent of each other. */
    int invoke() {
        if (variables) {
            interpreter.ResetVariableTensors();
        }
        return signature == null ? interpreter.Invoke() : signature.Invoke();
    }

    static ServingException tooLarge(String what, long size) {
        return ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED, what + " takes " + size + " bytes (expected: < 2 GiB)");
    }

    @Override
    public void close() {
        // It owns the signature's runner.
        interpreter.deallocate();
        operators.deallocate();
    }
}
