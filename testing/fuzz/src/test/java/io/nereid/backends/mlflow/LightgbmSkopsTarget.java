// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.fuzz.InputParts;
import io.nereid.fuzz.StoredZip;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A skops archive with a LightGBM model in it: its schema, and the array of its classes. Confined to one thread. */
public final class LightgbmSkopsTarget implements FuzzTarget {
    private static final String SCHEMA =
            "{\"__class__\":\"LGBMClassifier\",\"content\":{\"__loader__\":\"DictNode\",\"content\":{"
                    + "\"_Booster\":{\"content\":{\"content\":{\"_handle\":{\"content\":\"\\\"tree\\\\nversion=v4\\\"\"},"
                    + "\"best_iteration\":{\"content\":\"7\"}}}},\"_classes\":{\"type\":\"numpy\",\"file\":\"1.npy\"}}}}";
    private static final String CLASSES =
            "\u0093NUMPY\1\0\76\0{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }     \n"
                    + "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0";

    private final InputFile file = new InputFile("model.skops");

    @Override
    public void read(byte[] input) throws IOException {
        InputParts parts = InputParts.of(input);
        file.with(new StoredZip()
                .with("schema.json", parts.first())
                .with("1.npy", parts.second())
                .bytes());
        LightgbmSkopsReader.read(file.folder().resolve("model.skops"), (input.length & 1) != 0);
    }

    @Override
    public List<byte[]> seeds() {
        byte[] schema = SCHEMA.getBytes(StandardCharsets.UTF_8);
        byte[] longer = (SCHEMA + " ").getBytes(StandardCharsets.UTF_8);
        byte[] classes = CLASSES.getBytes(StandardCharsets.ISO_8859_1);
        return List.of(new InputParts(schema, classes).joined(), new InputParts(longer, classes).joined());
    }
}
