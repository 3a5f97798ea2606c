// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * An input that stands for two files: two bytes with the length of the first, the first, the second.
 *
 * @param first the first file
 * @param second the second file
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record InputParts(byte[] first, byte[] second) {
    /** Divides an input; a length beyond its end is cut. */
    public static InputParts of(byte[] input) {
        if (input.length < 2) {
            return new InputParts(new byte[0], new byte[0]);
        }
        int length = Math.min((input[0] & 0xff) << 8 | input[1] & 0xff, input.length - 2);
        return new InputParts(
                Arrays.copyOfRange(input, 2, 2 + length), Arrays.copyOfRange(input, 2 + length, input.length));
    }

    /** The input that has these parts; the first has less than 64 KiB. */
    public byte[] joined() {
        byte[] input = Arrays.copyOf(
                new byte[] {(byte) (first.length >> 8), (byte) first.length}, 2 + first.length + second.length);
        System.arraycopy(first, 0, input, 2, first.length);
        System.arraycopy(second, 0, input, 2 + first.length, second.length);
        return input;
    }

    /**
     * Seeds of all folders below a folder of the repository that have a file of the first name.
     *
     * @param second the name of the second file, which may be absent
     */
    public static List<byte[]> seeds(String folder, String first, String second) {
        List<byte[]> seeds = new ArrayList<>();
        try (Stream<Path> all = Files.list(FuzzTargets.ROOT.resolve(folder))) {
            for (Path one : all.sorted().toList()) {
                Path file = one.resolve(first);
                if (Files.exists(file) && Files.size(file) < 16_000) {
                    Path other = one.resolve(second);
                    byte[] content =
                            Files.exists(other) && Files.size(other) < 16_000 ? Files.readAllBytes(other) : new byte[0];
                    seeds.add(new InputParts(Files.readAllBytes(file), content).joined());
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return seeds;
    }
}
