// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteModelDelete;

import io.nereid.base.ServingException;
import java.nio.file.Path;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.TfLiteModel;

/**
 * A model's bytes in native memory, and the {@code TfLiteModel} over them. Interpreters read the weights from these
 * bytes without a copy. They are a copy of the file instead of a mapping, so that a later change of the file cannot
 * change or crash a loaded model. Immutable; closed after the last interpreter.
 */
final class LiteModelFile implements AutoCloseable {
    private final Pointer bytes;
    private final long size;
    private final TfLiteModel model;

    private LiteModelFile(Pointer bytes, long size, TfLiteModel model) {
        this.bytes = bytes;
        this.size = size;
        this.model = model;
    }

    /**
     * Copies the bytes and opens the model.
     *
     * @throws ServingException INVALID_ARGUMENT when TensorFlow Lite cannot open it
     */
    static LiteModelFile open(LiteRuntime runtime, String name, Path file, byte[] content) {
        Pointer bytes = Pointer.malloc(content.length);
        TfLiteModel model = null;
        try {
            new NativePointer(bytes.address()).bytes().put(content);
            model = runtime.model(bytes, content.length);
            if (model == null) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + name + "' from '" + file + "': it is damaged",
                        "copy the file again, or convert the model again");
            }
            return new LiteModelFile(bytes, content.length, model);
        } finally {
            if (model == null) {
                Pointer.free(bytes);
            }
        }
    }

    TfLiteModel handle() {
        return model;
    }

    long size() {
        return size;
    }

    @Override
    public void close() {
        TfLiteModelDelete(model);
        Pointer.free(bytes);
    }
}
