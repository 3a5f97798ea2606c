// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files made to harm: refused by name, without running anything and without taking the memory. */
class HostileFilesTest {
    private static final long SMALL = 64L << 20;

    @TempDir
    Path directory;

    private static Object read(byte[] bytes) {
        try {
            return new Assembly().build(ModelFile.read(new ByteArrayInputStream(bytes), new MemoryLimit(SMALL)));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static byte[] bytes(Object... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (Object part : parts) {
            if (part instanceof Integer i) {
                out.write(i);
            } else if (part instanceof byte[] b) {
                out.writeBytes(b);
            } else {
                out.writeBytes(((String) part).getBytes(StandardCharsets.ISO_8859_1));
            }
        }
        return out.toByteArray();
    }

    private static byte[] text(String text) {
        return bytes(0x8c, text.length(), text);
    }

    private static void refused(byte[] file, String... words) {
        assertThatThrownBy(() -> read(file)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.remedy()).isNotBlank();
            assertThat(e.getMessage()).isNotBlank();
            for (String word : words) {
                assertThat(e.getMessage()).contains(word);
            }
        });
    }

    @Test
    void callsOfTheSystemAreRefusedByNameAndNotMade() {
        Path trace = directory.resolve("trace");
        String command = "touch " + trace;
        refused(bytes("cos\nsystem\n(V", command, "\ntR."), "os.system", "nothing of it was run");
        refused(bytes("cposix\nsystem\n(V", command, "\ntR."), "posix.system");
        refused(bytes(0x80, 4, text("posix"), text("system"), 0x93, text(command), 0x85, "R."), "posix.system");
        refused(bytes("(V", command, "\nios\nsystem\n."), "os.system");
        refused(bytes("(cos\nsystem\nV", command, "\no."), "os.system");
        refused(bytes("csubprocess\nPopen\n(V", command, "\ntR."), "subprocess.Popen");
        assertThat(trace).doesNotExist();
    }

    @Test
    void thingsBuiltIntoPythonThatRunAreRefused() {
        for (String name : List.of("eval", "exec", "getattr", "compile", "__import__", "open", "apply", "map")) {
            refused(bytes("c__builtin__\n", name, "\n(V1\ntR."), "__builtin__." + name);
            refused(bytes(0x80, 4, text("builtins"), text(name), 0x93, text("1"), 0x85, "R."), "builtins." + name);
        }
        refused(bytes("cnumpy_evil\nload\n."), "numpy_evil.load");
        refused(bytes("csklearnx.tree\nTree\n."), "sklearnx.tree.Tree");
        refused(bytes("cxgboost.sklearn\nXGBClassifier\n."), "xgboost.sklearn.XGBClassifier");
    }

    @Test
    void functionsOfKnownLibrariesAreDataOnly() {
        // numpy.testing can run things; as data it is an estimator that is not known.
        refused(bytes("cnumpy.testing._private.utils\nrunstring\n(V1\n}tR."), "runstring", "not supported");
        refused(bytes("csklearn.svm._classes\nNoSuch\n)", 0x81, "."), "sklearn.svm._classes.NoSuch", "not supported");
    }

    @Test
    void anUnknownEstimatorIsNamedWithTheWayOut() {
        assertThatThrownBy(() -> read(bytes("csklearn.gaussian_process._gpr\nGaussianProcessRegressor\n)", 0x81, ".")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.getMessage()).contains("GaussianProcessRegressor");
                    assertThat(e.remedy()).contains("export it to ONNX with skl2onnx");
                });
    }

    @Test
    void announcedSizesAreNotBelieved() {
        refused(bytes(0x80, 4, 0x8e, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, "."), "too large");
        refused(bytes(0x80, 4, 0x8e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, "."), "too large");
        refused(bytes(0x80, 4, 0x8e, 0, 0, 0, 3, 0, 0, 0, 0, "abc."), "ends too early");
        refused(bytes(0x80, 4, "B", 0xff, 0xff, 0xff, 0x7f, "."), "");
        byte[] array = bytes(
                "cnumpy.core.multiarray\n_reconstruct\n(tR(K",
                1,
                "(I99999999999\nI99999999999\ntcnumpy\n",
                "dtype\n(Vf8\ntR",
                0x89,
                "C",
                0,
                "tb.");
        refused(array, "dimension");
        byte[] big = bytes(
                "cnumpy.core.multiarray\n_reconstruct\n(tR(K",
                1,
                "(I2000000000\nI2000000000\ntcnumpy\n",
                "dtype\n(Vf8\ntR",
                0x89,
                "C",
                0,
                "tb.");
        refused(big, "too large");
        byte[] joblib = bytes(
                "cjoblib.numpy_pickle\nNumpyArrayWrapper\n)",
                0x81,
                "}(Vshape\n(I2000000\ntVdtype\ncnumpy\n",
                "dtype\n(Vf8\ntRVorder\nVC\nub",
                1,
                2,
                3);
        refused(joblib, "");
        byte[] nothing = bytes(
                "cnumpy.core.multiarray\n_reconstruct\n(tR(K",
                1,
                "(I2000000000\ntcnumpy\ndtype\n(VU0\ntR",
                0x89,
                "C",
                0,
                "tb.");
        refused(nothing, "no bytes");
    }

    @Test
    void bombsEndAtTheLimit() throws IOException {
        byte[] lists = new byte[8 << 20];
        Arrays.fill(lists, (byte) ']');
        refused(lists, "MiB of memory");
        byte[] memo = new byte[8 << 20];
        Arrays.fill(memo, (byte) 0x94);
        memo[0] = 'N';
        refused(memo, "MiB of memory");
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
            for (int i = 0; i < 32; i++) {
                gzip.write(lists);
            }
        }
        refused(packed.toByteArray(), "MiB of memory");
    }

    @Test
    void referencesThatMultiplyAreNotFollowed() {
        ByteArrayOutputStream laughs = new ByteArrayOutputStream();
        laughs.writeBytes(bytes(0x80, 4, ")"));
        for (int i = 0; i < 200; i++) {
            laughs.writeBytes(bytes("2", 0x86));
        }
        laughs.write('.');
        refused(laughs.toByteArray(), "expected: a fitted estimator");
        // As the key of a dict it would be hashed.
        byte[] key = laughs.toByteArray();
        refused(bytes("}", Arrays.copyOf(key, key.length - 1), "Ns."), "expected: a fitted estimator");
    }

    @Test
    void estimatorsInsideThemselvesAreRefused() {
        // A Pipeline whose only step is itself.
        byte[] self = bytes("csklearn.pipeline\nPipeline\n)", 0x81, "q", 1, "}Vsteps\n](Vx\nh", 1, "tasb.");
        refused(self, "nested too deeply");
        ByteArrayOutputStream wide = new ByteArrayOutputStream();
        wide.writeBytes(bytes("csklearn.preprocessing._data\nNormalizer\n)", 0x81, "q", 1));
        for (int i = 1; i < 23; i++) {
            wide.writeBytes(bytes(
                    "csklearn.pipeline\nFeatureUnion\n)",
                    0x81,
                    "}Vtransformer_list\n](Va\nh",
                    i,
                    "ta(Vb\nh",
                    i,
                    "tasbq",
                    i + 1));
        }
        wide.write('.');
        refused(wide.toByteArray(), "nested too deeply");
    }

    @Test
    void treesThatWalkInCirclesAreRefused() throws IOException {
        Path file = Fixtures.path(
                "1.1.3", Fixtures.expected("1.1.3").get("tree").get("file").asText());
        byte[] whole = Files.readAllBytes(file);
        byte[] plain = file.toString().endsWith("joblib") && whole[0] != (byte) 0x80 ? unpacked(whole) : whole;
        int at = indexOf(plain, new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0});
        int node = at >= 0 ? at : firstChild(plain);
        byte[] circle = plain.clone();
        circle[node] = 0;
        refused(circle, "leads nowhere");
    }

    private static byte[] unpacked(byte[] file) throws IOException {
        return file[0] == 0x78
                ? new java.util.zip.InflaterInputStream(new ByteArrayInputStream(file)).readAllBytes()
                : new java.util.zip.GZIPInputStream(new ByteArrayInputStream(file)).readAllBytes();
    }

    /** Where the root's left child is said to be node 1. */
    private static int firstChild(byte[] file) {
        for (int i = 0; i + 16 < file.length; i++) {
            if (file[i] == 1 && zero(file, i + 1, 7) && file[i + 8] > 1 && file[i + 8] < 16 && zero(file, i + 9, 7)) {
                return i;
            }
        }
        throw new IllegalStateException("no tree");
    }

    private static boolean zero(byte[] file, int from, int count) {
        for (int i = from; i < from + count; i++) {
            if (file[i] != 0) {
                return false;
            }
        }
        return true;
    }

    private static int indexOf(byte[] file, byte[] part) {
        for (int i = 0; i + part.length <= file.length; i++) {
            if (Arrays.equals(file, i, i + part.length, part, 0, part.length)) {
                return i;
            }
        }
        return -1;
    }

    @Test
    void foreignFilesAreRefusedByName() throws IOException {
        refused(bytes("BZh91AY"), "bzip2");
        refused(bytes(0xfd, "7zXZ", 0), "xz");
        refused(bytes(0x5d, 0, 0, 0x80), "lzma");
        refused(bytes(0x04, 0x22, 0x4d, 0x18, 0), "lz4");
        refused(bytes(0x28, 0xb5, 0x2f, 0xfd), "zstandard");
        refused(bytes("ZF0x12"), "joblib before 0.10");
        refused(bytes("PK", 3, 4), "zip");
        refused(new byte[0], "empty");
        refused(bytes("<?xml version='1.0'?>"), "no instruction of a pickle");
        refused(bytes(0x80, 9, "N."), "protocol is 9");
        refused(bytes(0x1f, 0x8b, 7, 7), "damaged");
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (DeflaterOutputStream zlib = new DeflaterOutputStream(packed)) {
            zlib.write(bytes(0x80, 4, "N."));
        }
        refused(packed.toByteArray(), "None (expected: a fitted estimator)");
    }

    @Test
    void everyTruncationIsRefused() throws IOException {
        for (String name : List.of("pipeline", "forest", "hist", "knn", "frame_model")) {
            byte[] whole = Files.readAllBytes(Fixtures.path(
                    Fixtures.NEW,
                    Fixtures.expected(Fixtures.NEW).get(name).get("file").asText()));
            assertThat(read(whole)).isInstanceOf(Estimator.class);
            for (int cut = 0; cut < whole.length - 9; cut += 1 + whole.length / 400) {
                refused(Arrays.copyOf(whole, cut));
            }
        }
    }

    @Test
    void anythingElseIsRefusedOrReadButNeverAnotherFault() throws IOException {
        Random random = new Random(11);
        for (String name : List.of(
                "pipeline",
                "forest_two",
                "hist_three",
                "onehot_drop",
                "svc_three",
                "mlp",
                "tfidf",
                "stack_three",
                "calibrated_iso",
                "isolation_some",
                "frame_model",
                "boost_reg",
                "knn_distance")) {
            byte[] whole = Files.readAllBytes(Fixtures.path(
                    "1.1.3", Fixtures.expected("1.1.3").get(name).get("file").asText()));
            byte[] plain = whole[0] == (byte) 0x80 ? whole : unpacked(whole);
            for (int round = 0; round < 400; round++) {
                byte[] changed = plain.clone();
                for (int i = 1 + random.nextInt(4); i > 0; i--) {
                    changed[random.nextInt(changed.length)] = (byte) random.nextInt(256);
                }
                try {
                    Models.load(Models.ofBytes(directory, "fuzz", changed)).close();
                } catch (ServingException e) {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                }
            }
        }
    }
}
