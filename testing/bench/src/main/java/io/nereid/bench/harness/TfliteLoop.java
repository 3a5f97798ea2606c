// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorByteSize;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTensorData;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.kTfLiteOk;

import java.io.IOException;
import java.nio.file.Path;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.tensorflowlite.BuiltinOpResolver;
import org.bytedeco.tensorflowlite.FlatBufferModel;
import org.bytedeco.tensorflowlite.Interpreter;
import org.bytedeco.tensorflowlite.InterpreterBuilder;
import org.bytedeco.tensorflowlite.SignatureRunner;
import org.bytedeco.tensorflowlite.global.tensorflowlite;

/**
 * A TensorFlow Lite model in a plain loop: one interpreter, with XNNPACK and one thread, for one shape of its input, a
 * prepared input that is copied in and an output that is copied out. Confined to one thread.
 */
public final class TfliteLoop implements AutoCloseable {
    private final FlatBufferModel model;
    private final BuiltinOpResolver operators = new BuiltinOpResolver();
    private final Interpreter interpreter = new Interpreter((Pointer) null);
    private final SignatureRunner runner;
    private final BytePointer in;
    private final BytePointer out;
    private final FloatPointer from;
    private final float[] result;

    /** Opens the model's signature {@code serving_default}, of one input and one output of floats. */
    public TfliteLoop(Path file, int[] shape, float[] values) throws IOException {
        Loader.load(tensorflowlite.class);
        model = FlatBufferModel.BuildFromFile(file.toString());
        if (model == null || model.isNull()) {
            throw new IOException("cannot read " + file);
        }
        try (InterpreterBuilder builder = new InterpreterBuilder(model, operators)) {
            builder.SetNumThreads(1);
            check(builder.apply(interpreter));
        }
        runner = interpreter.GetSignatureRunner("serving_default");
        try (PointerPointer<?> inputs = runner.input_names();
                PointerPointer<?> outputs = runner.output_names()) {
            in = new BytePointer(inputs.get(0));
            out = new BytePointer(outputs.get(0));
        }
        check(runner.ResizeInputTensor(in, shape));
        check(runner.AllocateTensors());
        from = new FloatPointer(values);
        result = new float[(int) (TfLiteTensorByteSize(runner.output_tensor(out)) / Float.BYTES)];
    }

    /** Runs the model once and returns its output, which the next call overwrites. */
    public float[] run() {
        Pointer.memcpy(TfLiteTensorData(runner.input_tensor(in)), from, from.limit() * Float.BYTES);
        check(runner.Invoke());
        new FloatPointer(TfLiteTensorData(runner.output_tensor(out))).get(result);
        return result;
    }

    private static void check(int status) {
        if (status != kTfLiteOk) {
            throw new IllegalStateException("TensorFlow Lite reports status " + status);
        }
    }

    @Override
    public void close() {
        interpreter.deallocate();
        operators.deallocate();
        model.deallocate();
        from.deallocate();
    }
}
