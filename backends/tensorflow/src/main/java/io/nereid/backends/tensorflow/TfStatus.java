// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static org.tensorflow.internal.c_api.global.tensorflow.TF_DeleteStatus;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_GetCode;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_Message;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_NewStatus;

import io.nereid.base.ErrorCode;
import java.nio.charset.StandardCharsets;
import org.bytedeco.javacpp.BytePointer;
import org.tensorflow.internal.c_api.TF_Status;

/** The result of a call to TensorFlow's C API: a code and a message. Confined to one thread at a time. */
final class TfStatus implements AutoCloseable {
    private final TF_Status status = TF_NewStatus();

    TF_Status handle() {
        return status;
    }

    boolean failed() {
        return TF_GetCode(status) != 0;
    }

    /** The code. TensorFlow's numbers are gRPC's, which {@link ErrorCode} has in the same order. */
    ErrorCode code() {
        int number = TF_GetCode(status);
        ErrorCode[] codes = ErrorCode.values();
        return number >= 0 && number < codes.length ? codes[number] : ErrorCode.UNKNOWN;
    }

    /** TensorFlow's message in one line, shortened to 600 characters. */
    String text() {
        BytePointer message = TF_Message(status);
        String text = message == null ? "" : new String(message.getStringBytes(), StandardCharsets.UTF_8);
        text = text.strip().replaceAll("\\s*\\R\\s*", " ");
        return text.isEmpty() ? "no reason given" : text.length() > 600 ? text.substring(0, 600) + "…" : text;
    }

    @Override
    public void close() {
        TF_DeleteStatus(status);
    }
}
