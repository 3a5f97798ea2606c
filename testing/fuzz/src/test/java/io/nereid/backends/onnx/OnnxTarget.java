// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import java.io.IOException;

/** The protobuf of an ONNX model, which is scanned before ONNX Runtime reads it. Confined to one thread. */
public final class OnnxTarget implements FuzzTarget {
    private final InputFile file = new InputFile("model.onnx");

    @Override
    public void read(byte[] input) throws IOException {
        OnnxModelInfo.read(file.with(input), input.length);
    }
}
