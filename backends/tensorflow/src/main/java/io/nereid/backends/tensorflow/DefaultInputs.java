// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static org.tensorflow.internal.c_api.global.tensorflow.TF_AllocateTensor;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_DeleteBuffer;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_DeleteTensor;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_NewBufferFromString;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_TensorFromProto;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.bytedeco.javacpp.BytePointer;
import org.jspecify.annotations.Nullable;
import org.tensorflow.internal.c_api.TF_Buffer;
import org.tensorflow.internal.c_api.TF_Tensor;

/**
 * Default values for the inputs that a request may leave out, decoded once per model into TensorFlow's memory. The
 * tensors are owned here and fed to every run that needs them. Immutable until closed, after the last run.
 */
final class DefaultInputs implements AutoCloseable {
    private final Map<TensorBinding, TF_Tensor> values = new HashMap<>();

    DefaultInputs(String model, List<SignatureBinding> signatures) {
        boolean whole = false;
        try (TfStatus status = new TfStatus()) {
            for (SignatureBinding signature : signatures) {
                for (TensorBinding port : signature.inputs()) {
                    byte[] bytes = port.defaultValue();
                    if (bytes != null) {
                        values.put(port, value(model, port, bytes, status));
                    }
                }
            }
            whole = true;
        } finally {
            if (!whole) {
                close();
            }
        }
    }

    private static TF_Tensor value(String model, TensorBinding port, byte[] bytes, TfStatus status) {
        // TF_TensorFromProto replaces the tensor's content, so any valid tensor will do here.
        TF_Tensor tensor = TF_AllocateTensor(1, new long[] {0}, 1, 0);
        try (BytePointer data = new BytePointer(bytes)) {
            TF_Buffer buffer = TF_NewBufferFromString(data, bytes.length);
            TF_TensorFromProto(buffer, tensor, status.handle());
            TF_DeleteBuffer(buffer);
        }
        if (status.failed()) {
            TF_DeleteTensor(tensor);
            throw TfGraph.rejected(
                    model,
                    "the default value of input '" + port.name() + "' cannot be read: " + status.text(),
                    "export the model again");
        }
        return tensor;
    }

    @Nullable TF_Tensor of(TensorBinding port) {
        return values.get(port);
    }

    @Override
    public void close() {
        values.values().forEach(org.tensorflow.internal.c_api.global.tensorflow::TF_DeleteTensor);
        values.clear();
    }
}
