// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.nereid.backends.sklearn.EstimatorFactory;
import io.nereid.backends.sklearn.Models;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Malicious files: rejected with a clear error, without running code and without exhausting the memory. */
class HostileFilesTest {
    private static final long SMALL = 64L << 20;

    @TempDir
    Path directory;

    private static Object read(byte[] bytes) {
        try {
            return new EstimatorFactory(Models.boosters())
                    .build(ModelFile.read(new ByteArrayInputStream(bytes), new MemoryLimit(SMALL)));
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

    private static void rejected(byte[] file, String... words) {
        assertThatThrownBy(() -> read(file)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.remedy()).isNotBlank();
            assertThat(e.getMessage()).isNotBlank();
            for (String word : words) {
                assertThat(e.getMessage()).contains(word);
            }
        });
    }

    /** An object of a type, whose attributes are pairs of {@code text(name)} and opcodes. */
    private static byte[] object(String type, Object... attributes) {
        return bytes("c" + type + "\n", ")", 0x81, "}(", bytes(attributes), "ub.");
    }

    @Test
    void combinationsOfMoreColumnsThanThereAreTakeNoTime() {
        // All subsets of 40 columns would be tried, and none has 50 members.
        byte[] file = object(
                "sklearn.preprocessing._polynomial\nPolynomialFeatures",
                text("n_features_in_"),
                "K",
                40,
                text("_min_degree"),
                "K",
                50,
                text("_max_degree"),
                "K",
                60,
                text("interaction_only"),
                0x88);
        assertTimeoutPreemptively(
                Duration.ofSeconds(20), () -> assertThat(read(file)).isNotNull());
    }

    @Test
    void moreColumnsThanAModelHasAreRefused() {
        rejected(
                object(
                        "sklearn.preprocessing._data\nStandardScaler",
                        text("with_mean"),
                        0x89,
                        text("with_std"),
                        0x89,
                        text("n_features_in_"),
                        "J",
                        0xff,
                        0xff,
                        0xff,
                        0x7f),
                "2147483647",
                "features");
    }

    @Test
    void callsOfTheSystemAreRefusedByNameAndNotMade() {
        Path trace = directory.resolve("trace");
        String command = "touch " + trace;
        rejected(bytes("cos\nsystem\n(V", command, "\ntR."), "os.system", "nothing of it was run");
        rejected(bytes("cposix\nsystem\n(V", command, "\ntR."), "posix.system");
        rejected(bytes(0x80, 4, text("posix"), text("system"), 0x93, text(command), 0x85, "R."), "posix.system");
        rejected(bytes("(V", command, "\nios\nsystem\n."), "os.system");
        rejected(bytes("(cos\nsystem\nV", command, "\no."), "os.system");
        rejected(bytes("csubprocess\nPopen\n(V", command, "\ntR."), "subprocess.Popen");
        assertThat(trace).doesNotExist();
    }

    @Test
    void thingsBuiltIntoPythonThatRunAreRefused() {
        for (String name : List.of("eval", "exec", "getattr", "compile", "__import__", "open", "apply", "map")) {
            rejected(bytes("c__builtin__\n", name, "\n(V1\ntR."), "__builtin__." + name);
            rejected(bytes(0x80, 4, text("builtins"), text(name), 0x93, text("1"), 0x85, "R."), "builtins." + name);
        }
        rejected(bytes("cnumpy_evil\nload\n."), "numpy_evil.load");
        rejected(bytes("csklearnx.tree\nTree\n."), "sklearnx.tree.Tree");
        rejected(bytes("cxgboost.sklearn\nXGBClassifier\n."), "xgboost.sklearn.XGBClassifier");
    }

    @Test
    void functionsOfKnownLibrariesAreDataOnly() {
        // numpy.testing can run programs; as data it is only an unknown estimator.
        rejected(bytes("cnumpy.testing._private.utils\nrunstring\n(V1\n}tR."), "runstring", "not supported");
        rejected(bytes("csklearn.svm._classes\nNoSuch\n)", 0x81, "."), "sklearn.svm._classes.NoSuch", "not supported");
    }

    @Test
    void anUnknownEstimatorIsNamedWithTheWayOut() {
        assertThatThrownBy(() -> read(bytes("csklearn.cluster._dbscan\nDBSCAN\n)", 0x81, ".")))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.getMessage()).contains("DBSCAN");
                    assertThat(e.remedy()).contains("export it to ONNX with skl2onnx");
                });
    }

    @Test
    void announcedSizesAreNotBelieved() {
        rejected(bytes(0x80, 4, 0x8e, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, "."), "too large");
        rejected(bytes(0x80, 4, 0x8e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, "."), "too large");
        rejected(bytes(0x80, 4, 0x8e, 0, 0, 0, 3, 0, 0, 0, 0, "abc."), "truncated");
        rejected(bytes(0x80, 4, "B", 0xff, 0xff, 0xff, 0x7f, "."), "");
        byte[] array = bytes(
                "cnumpy.core.multiarray\n_reconstruct\n(tR(K",
                1,
                "(I99999999999\nI99999999999\ntcnumpy\n",
                "dtype\n(Vf8\ntR",
                0x89,
                "C",
                0,
                "tb.");
        rejected(array, "dimension");
        byte[] big = bytes(
                "cnumpy.core.multiarray\n_reconstruct\n(tR(K",
                1,
                "(I2000000000\nI2000000000\ntcnumpy\n",
                "dtype\n(Vf8\ntR",
                0x89,
                "C",
                0,
                "tb.");
        rejected(big, "too large");
        byte[] joblib = bytes(
                "cjoblib.numpy_pickle\nNumpyArrayWrapper\n)",
                0x81,
                "}(Vshape\n(I2000000\ntVdtype\ncnumpy\n",
                "dtype\n(Vf8\ntRVorder\nVC\nub",
                1,
                2,
                3);
        rejected(joblib, "");
        byte[] nothing = bytes(
                "cnumpy.core.multiarray\n_reconstruct\n(tR(K",
                1,
                "(I2000000000\ntcnumpy\ndtype\n(VU0\ntR",
                0x89,
                "C",
                0,
                "tb.");
        rejected(nothing, "elements of size 0");
    }

    @Test
    void bombsEndAtTheLimit() throws IOException {
        byte[] lists = new byte[8 << 20];
        Arrays.fill(lists, (byte) ']');
        rejected(lists, "MiB of memory");
        byte[] memo = new byte[8 << 20];
        Arrays.fill(memo, (byte) 0x94);
        memo[0] = 'N';
        rejected(memo, "MiB of memory");
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(packed)) {
            for (int i = 0; i < 32; i++) {
                gzip.write(lists);
            }
        }
        rejected(packed.toByteArray(), "MiB of memory");
    }

    @Test
    void referencesThatMultiplyAreNotFollowed() {
        ByteArrayOutputStream laughs = new ByteArrayOutputStream();
        laughs.writeBytes(bytes(0x80, 4, ")"));
        for (int i = 0; i < 200; i++) {
            laughs.writeBytes(bytes("2", 0x86));
        }
        laughs.write('.');
        rejected(laughs.toByteArray(), "expected: a fitted estimator");
        // A dict key is hashed, which must not follow the nesting.
        byte[] key = laughs.toByteArray();
        rejected(bytes("}", Arrays.copyOf(key, key.length - 1), "Ns."), "expected: a fitted estimator");
    }

    @Test
    void estimatorsInsideThemselvesAreRefused() {
        // A Pipeline whose only step is itself.
        byte[] self = bytes("csklearn.pipeline\nPipeline\n)", 0x81, "q", 1, "}Vsteps\n](Vx\nh", 1, "tasb.");
        rejected(self, "nested too deeply");
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
        rejected(wide.toByteArray(), "nested too deeply");
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
        rejected(circle, "has invalid children");
    }

    private static byte[] unpacked(byte[] file) throws IOException {
        return file[0] == 0x78
                ? new java.util.zip.InflaterInputStream(new ByteArrayInputStream(file)).readAllBytes()
                : new java.util.zip.GZIPInputStream(new ByteArrayInputStream(file)).readAllBytes();
    }

    /** The offset of the root's left child, node 1, in the file. */
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
        rejected(bytes("BZh91AY"), "bzip2");
        rejected(bytes(0xfd, "7zXZ", 0), "xz");
        rejected(bytes(0x5d, 0, 0, 0x80), "lzma");
        rejected(bytes(0x04, 0x22, 0x4d, 0x18, 0), "lz4");
        rejected(bytes(0x28, 0xb5, 0x2f, 0xfd), "zstandard");
        rejected(bytes("ZF0x12"), "joblib before 0.10");
        rejected(bytes("PK", 3, 4), "zip");
        rejected(new byte[0], "empty");
        rejected(bytes("<?xml version='1.0'?>"), "is not a pickle opcode");
        rejected(bytes(0x80, 9, "N."), "protocol is 9");
        rejected(bytes(0x1f, 0x8b, 7, 7), "damaged");
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (DeflaterOutputStream zlib = new DeflaterOutputStream(packed)) {
            zlib.write(bytes(0x80, 4, "N."));
        }
        rejected(packed.toByteArray(), "None (expected: a fitted estimator)");
    }

    @Test
    void everyTruncationIsRefused() throws IOException {
        for (String name : List.of("pipeline", "forest", "hist", "knn", "frame_model")) {
            byte[] whole = Files.readAllBytes(Fixtures.path(
                    Fixtures.NEW,
                    Fixtures.expected(Fixtures.NEW).get(name).get("file").asText()));
            assertThat(read(whole)).isInstanceOf(Estimator.class);
            for (int cut = 0; cut < whole.length - 9; cut += 1 + whole.length / 400) {
                rejected(Arrays.copyOf(whole, cut));
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
                "knn_distance",
                "oneclass",
                "lof",
                "radius_label",
                "gp_two",
                "gp_class",
                "birch",
                "bisecting",
                "nmf_kl",
                "kernel_pca_rbf",
                "embedding",
                "sketch",
                "spreading_knn")) {
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
