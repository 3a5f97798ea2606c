// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx.engine;

import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * A TensorRT plan: an engine that was compiled by one version of TensorRT for one kind of GPU. Its beginning is checked before
 * TensorRT reads it, so that the error has both versions. Immutable.
 *
 * <p>The format is TensorRT's own. Only its first 28 bytes are public, in the source of NVIDIA's program {@code trtexec}
 * ({@code printPlanVersion} in sampleEngines.cpp): the characters {@code ftrt}, the version of the serialization as a number of 32 bits, and, where
 * that is 0, the version of TensorRT as four bytes at offset 24. Plans of TensorRT before 8.6 begin otherwise.
 *
 * @param path the file
 * @param bytes its size
 * @param version the version of TensorRT that compiled it, such as {@code 10.9.0.34}; empty when the version of the serialization is
 *     not known
 */
public record PlanFile(Path path, long bytes, String version) {
    /** Names of the files by which a plan is recognised. The first one is Triton's. */
    public static final List<String> NAMES = List.of("model.plan", "model.engine", "model.trt");

    /** The TensorRT that ONNX Runtime's execution provider is linked with. */
    private static final int MAJOR = 10;

    private static final int HEAD = 28;
    private static final int VERSION_AT = 24;
    private static final String TAG = "ftrt";

    /**
     * Finds the plan of a model and checks its beginning.
     *
     * @param modelFile its name in the version's directory; empty for the first of {@link #NAMES} that exists
     * @throws ServingException INVALID_ARGUMENT when it is missing or not a plan, FAILED_PRECONDITION for a plan of another
     *     version of TensorRT than 10
     */
    public static PlanFile find(ModelLocation source, String modelFile) {
        Path directory = source.versionDirectory();
        String name = !modelFile.isEmpty()
                ? modelFile
                : NAMES.stream()
                        .filter(each -> Files.isRegularFile(directory.resolve(each)))
                        .findFirst()
                        .orElse(NAMES.get(0));
        Path path = directory.resolve(name).normalize();
        if (!path.startsWith(directory.normalize())) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' lies outside the version's directory",
                    "name a file inside " + directory);
        }
        if (!Files.isRegularFile(path)) {
            throw missing(directory, path);
        }
        try {
            return read(path);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read model file '" + path + "': " + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
    }

    private static PlanFile read(Path path) throws IOException {
        ByteBuffer head = ByteBuffer.allocate(HEAD).order(ByteOrder.LITTLE_ENDIAN);
        long bytes = Files.size(path);
        try (FileChannel channel = FileChannel.open(path)) {
            while (head.hasRemaining() && channel.read(head) > 0) {
                // Read until the header is complete or the file ends.
            }
        }
        String text = new String(head.array(), 0, head.position(), StandardCharsets.ISO_8859_1);
        if (text.isEmpty()) {
            throw rejected(path, "the file is empty (0 bytes)", "put the plan itself there");
        }
        if (text.startsWith("version https://git-lfs")) {
            throw rejected(
                    path,
                    "the file is a Git LFS pointer, not the model itself",
                    "run 'git lfs pull' in its repository");
        }
        if (!text.startsWith(TAG)) {
            throw rejected(
                    path,
                    "it does not begin with '" + TAG + "', as plans of TensorRT 8.6 and newer do",
                    "compile the model with TensorRT " + MAJOR + ", or serve the ONNX model");
        }
        if (head.position() < HEAD) {
            throw rejected(
                    path, "it ends after " + bytes + " bytes, inside the header of a plan", "copy the whole file");
        }
        if (head.getInt(TAG.length()) != 0) {
            return new PlanFile(path, bytes, "");
        }
        List<String> version = new ArrayList<>();
        for (int i = VERSION_AT; i < HEAD; i++) {
            version.add(Integer.toString(head.get(i) & 0xff));
        }
        PlanFile plan = new PlanFile(path, bytes, String.join(".", version));
        if (head.get(VERSION_AT) != MAJOR) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "model file '" + path + "' is a plan of TensorRT " + plan.version
                            + ", and ONNX Runtime runs plans of" + " TensorRT " + MAJOR,
                    "compile the model with the TensorRT " + MAJOR + " that the server has, or serve the ONNX model");
        }
        return plan;
    }

    private static ServingException rejected(Path path, String found, String remedy) {
        return ServingException.invalidArgument("model file '" + path + "' cannot be loaded: " + found, remedy);
    }

    private static ServingException missing(Path directory, Path path) {
        List<String> present = new ArrayList<>();
        try (Stream<Path> files = Files.list(directory)) {
            files.map(f -> f.getFileName().toString()).sorted().limit(20).forEach(present::add);
        } catch (IOException e) {
            return ServingException.invalidArgument(
                    "unable to find '" + path + "': cannot list " + directory, "check that the server may read it");
        }
        return ServingException.invalidArgument(
                "unable to find '" + path + "' ("
                        + (present.isEmpty()
                                ? directory + " is empty"
                                : directory + " has " + String.join(", ", present))
                        + ")",
                NameSuggestions.didYouMean(
                        String.valueOf(path.getFileName()),
                        present,
                        "put the plan there under this name, or name its file in default_model_filename"));
    }
}
