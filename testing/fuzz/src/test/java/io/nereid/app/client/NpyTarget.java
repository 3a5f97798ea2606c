// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A .npy file as an input of the command line. Confined to one thread. */
public final class NpyTarget implements FuzzTarget {
    private final InputFile file = new InputFile("x.npy");

    @Override
    public void read(byte[] input) throws IOException {
        NpyFile.read(file.with(input));
    }

    @Override
    public List<byte[]> seeds() {
        String head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
        return List.of(("\u0093NUMPY\u0001\0" + (char) head.length() + "\0" + head + "\0\0\0@\0\0\0@")
                .getBytes(StandardCharsets.ISO_8859_1));
    }
}
