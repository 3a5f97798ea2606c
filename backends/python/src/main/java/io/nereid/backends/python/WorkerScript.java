// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;

/** The worker's Python files, extracted from the jar so that an interpreter can run them. Stateless. */
final class WorkerScript {
    static final String MAIN = "nereid_worker.py";
    /** The model that runs a directory of MLflow with {@code mlflow.pyfunc}. */
    static final String MLFLOW_MODEL = "nereid_mlflow_model.py";

    private static final List<String> FILES = List.of(MAIN, "triton_python_backend_utils.py", MLFLOW_MODEL);

    private WorkerScript() {}

    /** Returns the script to run, extracted once to a directory whose name has the checksum of the contents. */
    static Path extracted(Path scratch) {
        try {
            byte[][] contents = new byte[FILES.size()][];
            CRC32 sum = new CRC32();
            for (int i = 0; i < contents.length; i++) {
                try (InputStream in = WorkerScript.class.getResourceAsStream(FILES.get(i))) {
                    if (in == null) {
                        throw new IOException(FILES.get(i) + " is missing in the jar");
                    }
                    contents[i] = in.readAllBytes();
                }
                sum.update(contents[i]);
            }
            Path directory = Files.createDirectories(
                    scratch.toAbsolutePath().resolve("python-" + Long.toHexString(sum.getValue())));
            for (int i = 0; i < contents.length; i++) {
                Path file = directory.resolve(FILES.get(i));
                if (!Files.isRegularFile(file) || !Arrays.equals(Files.readAllBytes(file), contents[i])) {
                    Path part = Files.createTempFile(directory, ".part", "");
                    Files.write(part, contents[i]);
                    Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
                }
            }
            return directory.resolve(MAIN);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the Python worker's files cannot be written to " + scratch + ": " + e.getMessage(),
                    "allow the server to write there, or set XDG_CACHE_HOME to another directory",
                    e);
        }
    }
}
