// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import java.io.IOException;

/** The protobuf of a SavedModel, which is read before TensorFlow's library reads it. Confined to one thread. */
public final class SavedModelTarget implements FuzzTarget {
    private final InputFile file = new InputFile("saved_model.pb");

    @Override
    public void read(byte[] input) throws IOException {
        SavedModelFile.read(file.with(input));
    }
}
