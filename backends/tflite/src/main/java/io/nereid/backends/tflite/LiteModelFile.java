// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteInterpreterDelete;
import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteModelDelete;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.ErrorReporter;
import org.bytedeco.tensorflowlite.InterpreterBuilder;
import org.bytedeco.tensorflowlite.InterpreterOptions;
import org.bytedeco.tensorflowlite.MemoryAllocation;
import org.bytedeco.tensorflowlite.OpResolver;
import org.bytedeco.tensorflowlite.TfLiteInterpreter;
import org.bytedeco.tensorflowlite.TfLiteModel;
import org.jspecify.annotations.Nullable;

/**
 * A model's bytes in native memory, and TensorFlow Lite's view of them. Interpreters read the weights from these bytes
 * without a copy; XNNPACK alone makes one. They are a copy of the file instead of a mapping, so that a later change of
 * the file cannot change or crash a loaded model. Thread-safe; freed when the one that opened it and all that hold it have
 * closed it, each after its last interpreter.
 */
final class LiteModelFile implements AutoCloseable {
    /**
     * The place in a {@code TfLiteInterpreter}, in words of 64 bits, of the address of its C++ error reporter, after the
     * two of a {@code std::shared_ptr}.
     */
    private static final int REPORTER = 2;

    private final Pointer bytes;
    private final long size;
    private final int root;
    private final TfLiteModel model;
    private final TfLiteInterpreter plain;
    private final ErrorReporter reporter;
    private final MemoryAllocation allocation;
    private final AtomicInteger holds = new AtomicInteger(1);

    private LiteModelFile(Pointer bytes, byte[] content, TfLiteModel model, TfLiteInterpreter plain) {
        this.bytes = bytes;
        size = content.length;
        // A FlatBuffer begins with the distance to its root table.
        root = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN).getInt(0);
        this.model = model;
        this.plain = plain;
        // Only the C API makes an error reporter from a function, and keeps it as long as its interpreter.
        reporter = new ErrorReporter(new NativePointer(new LongPointer(plain).get(REPORTER)));
        allocation = new MemoryAllocation(bytes, size, reporter);
    }

    /**
     * Copies the bytes and opens the model.
     *
     * @throws ServingException INVALID_ARGUMENT when TensorFlow Lite cannot open it
     */
    static LiteModelFile open(LiteRuntime runtime, String name, Path file, byte[] content) {
        Pointer bytes = Pointer.malloc(content.length);
        TfLiteModel model = null;
        LiteModelFile opened = null;
        runtime.reports().startCollecting();
        try {
            new NativePointer(bytes.address()).bytes().put(content);
            model = runtime.model(bytes, content.length);
            if (model == null) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + name + "' from '" + file + "': it is damaged",
                        "copy the file again, or convert the model again");
            }
            TfLiteInterpreter plain = runtime.plain(model);
            if (plain == null) {
                throw unusable(name, file, runtime.reports().takeMessages());
            }
            opened = new LiteModelFile(bytes, content, model, plain);
            return opened;
        } finally {
            runtime.reports().takeMessages();
            if (opened == null) {
                free(bytes, model);
            }
        }
    }

    /** The error for a model that TensorFlow Lite cannot prepare. */
    static ServingException unusable(String model, Path file, String messages) {
        return ServingException.invalidArgument(
                "unable to load model '" + model + "' from '" + file + "': "
                        + (messages.isEmpty() ? "TensorFlow Lite reports no reason" : messages),
                messages.contains("version") || messages.contains("op for")
                        ? "convert the model with TensorFlow 2.20 or older"
                        : "convert the model again");
    }

    private static void free(Pointer bytes, @Nullable TfLiteModel model) {
        if (model != null) {
            TfLiteModelDelete(model);
        }
        Pointer.free(bytes);
    }

    /** A builder of interpreters for this model, owned by the caller. */
    InterpreterBuilder builder(OpResolver operators) {
        return new InterpreterBuilder(
                new NativePointer(bytes.address() + root),
                operators,
                reporter,
                new InterpreterOptions((Pointer) null),
                allocation);
    }

    long size() {
        return size;
    }

    /** Keeps it open until a further {@link #close()}; false when it has been freed. */
    boolean hold() {
        return holds.updateAndGet(n -> n == 0 ? 0 : n + 1) > 0;
    }

    @Override
    public void close() {
        if (holds.decrementAndGet() > 0) {
            return;
        }
        allocation.deallocate();
        TfLiteInterpreterDelete(plain);
        free(bytes, model);
    }
}
