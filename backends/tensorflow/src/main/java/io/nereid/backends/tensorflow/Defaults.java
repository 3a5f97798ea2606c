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

/** Values for inputs that a request may leave out, in the engine's memory. Immutable until closed. */
final class Defaults implements AutoCloseable {
    private final Map<Port, TF_Tensor> values = new HashMap<>();

    Defaults(String model, List<SignaturePorts> signatures) {
        boolean whole = false;
        try (Status status = new Status()) {
            for (SignaturePorts signature : signatures) {
                for (Port port : signature.inputs()) {
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

    private static TF_Tensor value(String model, Port port, byte[] bytes, Status status) {
        // The call replaces what the tensor holds.
        TF_Tensor tensor = TF_AllocateTensor(1, new long[] {0}, 1, 0);
        try (BytePointer data = new BytePointer(bytes)) {
            TF_Buffer buffer = TF_NewBufferFromString(data, bytes.length);
            TF_TensorFromProto(buffer, tensor, status.handle());
            TF_DeleteBuffer(buffer);
        }
        if (status.failed()) {
            TF_DeleteTensor(tensor);
            throw Graph.refused(
                    model,
                    "the default value of input '" + port.name() + "' cannot be read: " + status.text(),
                    "export the model again");
        }
        return tensor;
    }

    @Nullable TF_Tensor of(Port port) {
        return values.get(port);
    }

    @Override
    public void close() {
        values.values().forEach(org.tensorflow.internal.c_api.global.tensorflow::TF_DeleteTensor);
        values.clear();
    }
}
