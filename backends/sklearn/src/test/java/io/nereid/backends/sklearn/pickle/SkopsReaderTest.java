// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Malformed skops archives; valid ones are read in the tests of MLflow's models. */
class SkopsReaderTest {
    @TempDir
    Path directory;

    private Path archive(Map<String, byte[]> files) throws IOException {
        Path file = directory.resolve("model.skops");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            for (Map.Entry<String, byte[]> entry : files.entrySet()) {
                zip.putNextEntry(new ZipEntry(entry.getKey()));
                zip.write(entry.getValue());
            }
        }
        return file;
    }

    private Object read(String schema) throws IOException {
        return ModelFile.read(
                archive(Map.of("schema.json", schema.getBytes(StandardCharsets.UTF_8))), new MemoryLimit(8 << 20));
    }

    private void rejected(String schema, String... words) {
        assertThatThrownBy(() -> read(schema)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).contains(words);
        });
    }

    private static String node(String loader, String module, String name, String rest) {
        return "{\"__loader__\":\"" + loader + "\",\"__module__\":\"" + module + "\",\"__class__\":\"" + name + "\""
                + rest + "}";
    }

    @Test
    void plainValuesAreRead() throws IOException {
        String one = node("JsonNode", "builtins", "str", ",\"content\":\"1.5\",\"__id__\":7");
        String two = node("CachedNode", "builtins", "str", ",\"__id__\":7");
        Object read = read(node("TupleNode", "builtins", "tuple", ",\"content\":[" + one + "," + two + "]"));
        assertThat(((PyTuple) read).items()).containsExactly(1.5, 1.5);
    }

    @Test
    void typesThatAreNotOnTheListAreRefusedByName() {
        rejected(node("FunctionNode", "os", "system", ""), "os.system", "nothing of it was run");
        rejected(node("ObjectNode", "mine.steps", "Step", ""), "mine.steps.Step");
        rejected(node("TypeNode", "builtins", "eval", ""), "builtins.eval");
    }

    @Test
    void kindsOfObjectsThatAreNotReadAreNamed() {
        rejected(
                node("SparseMatrixNode", "scipy.sparse._csr", "csr_matrix", ""),
                "scipy.sparse._csr.csr_matrix",
                "SparseMatrixNode");
    }

    @Test
    void aSchemaThatDoesNotFitItselfIsRefused() {
        rejected("[]", "no object");
        rejected("{", "its schema is damaged");
        rejected("{\"__loader__\":\"ListNode\"}", "a list without elements");
        rejected(node("CachedNode", "builtins", "str", ",\"__id__\":7"), "does not describe");
        rejected(node("NdArrayNode", "numpy", "ndarray", ",\"type\":\"numpy\",\"file\":\"1.npy\""), "lacks '1.npy'");
    }

    @Test
    void objectsWithinObjectsWithoutEndAreRefused() {
        String open = "{\"__loader__\":\"ListNode\",\"__module__\":\"builtins\",\"__class__\":\"list\",\"content\":[";
        rejected(open.repeat(5_000), "its schema is damaged", "depth");
    }

    @Test
    void anArrayThatIsNotWhatItSaysIsRefused() throws IOException {
        String schema = node("NdArrayNode", "numpy", "ndarray", ",\"type\":\"numpy\",\"file\":\"1.npy\"");
        byte[] npy =
                "\u0093NUMPY\u0001\u0000\u0046\u0000{'descr': '<f8', 'fortran_order': False, 'shape': (9999999,), }        \n12345678"
                        .getBytes(StandardCharsets.ISO_8859_1);
        Path file = archive(Map.of("schema.json", schema.getBytes(StandardCharsets.UTF_8), "1.npy", npy));
        assertThatThrownBy(() -> ModelFile.read(file, new MemoryLimit(8 << 20))).isInstanceOf(ServingException.class);
    }

    @Test
    void anArchiveThatUnpacksToTooMuchIsRefused() throws IOException {
        String schema = node("BytesNode", "builtins", "bytes", ",\"file\":\"zeros\"");
        Path file =
                archive(Map.of("schema.json", schema.getBytes(StandardCharsets.UTF_8), "zeros", new byte[64 << 20]));
        assertThat(Files.size(file)).isLessThan(1 << 20);
        assertThatThrownBy(() -> ModelFile.read(file, new MemoryLimit(8 << 20)))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("more than 8 MiB");
    }

    @Test
    void anotherArchiveIsRefused() throws IOException {
        Path file = archive(Map.of("archive/data.pkl", new byte[4]));
        assertThatThrownBy(() -> ModelFile.read(file, new MemoryLimit(8 << 20)))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("without a schema.json");
    }
}
