// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.fuzz.FuzzTarget;
import java.nio.file.Path;

/** The check of a FlatBuffers file of TensorFlow Lite, which comes before its library reads it. Confined to one thread. */
public final class TfliteTarget implements FuzzTarget {
    @Override
    public void read(byte[] input) {
        FlatBufferModelReader.check("m", Path.of("model.tflite"), input);
    }
}
