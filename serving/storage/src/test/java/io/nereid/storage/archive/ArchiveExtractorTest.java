// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Archives;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.apache.commons.compress.archivers.zip.Zip64Mode;
import org.apache.commons.compress.archivers.zip.ZipArchiveEntry;
import org.apache.commons.compress.archivers.zip.ZipArchiveOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class ArchiveExtractorTest {
    @TempDir
    Path directory;

    private Storage storage;

    @BeforeEach
    void start() {
        storage = new Storage(
                Given.options(directory).withLimits(new StorageOptions.Limits(50, 200 << 20, 100)), Clock.system());
    }

    @AfterEach
    void stop() {
        storage.close();
    }

    private StorageLease unpack(String name, byte[] archive) throws Exception {
        Path file = directory.resolve("in").resolve(name);
        Files.createDirectories(file.getParent());
        Files.write(file, archive);
        return Given.fetch(storage, "file://" + file);
    }

    @Test
    void everyKindOfArchiveIsUnpackedInPlace() throws Exception {
        byte[] tar = new Archives()
                .entry("./model/", '5', "", new byte[0])
                .file("./model/a.txt", "a")
                .file("b.txt", "b")
                .tar();
        Map<String, String> expected = Map.of("model/a.txt", "a", "b.txt", "b");
        String digest = null;
        for (Map.Entry<String, byte[]> archive : Map.of(
                        "m.tar", tar,
                        "m.tgz", Archives.gzip(tar),
                        "m.tar.gz", Archives.gzip(tar),
                        "m.zip", Archives.zip("model/a.txt", "a", "b.txt", "b"))
                .entrySet()) {
            try (StorageLease stored = unpack(archive.getKey(), archive.getValue())) {
                assertThat(Given.files(stored.path())).as(archive.getKey()).isEqualTo(expected);
                assertThat(digest == null || digest.equals(stored.digest())).isTrue();
                digest = stored.digest();
            }
        }
    }

    @Test
    void longNamesAndExtendedHeadersAreRead() throws Exception {
        String name = "d/".repeat(70) + "x.bin";
        String line = " path=" + name + "\n";
        int length = line.length() + 3;
        byte[] tar = new Archives()
                .entry("././@LongLink", 'L', "", (name + "\0").getBytes(StandardCharsets.UTF_8))
                .file("cut", "gnu")
                .entry("pax", 'x', "", (length + line.replace("x.bin", "y.bin")).getBytes(StandardCharsets.UTF_8))
                .file("cut", "pax")
                .tar();
        try (StorageLease stored = unpack("m.tar", tar)) {
            assertThat(Given.files(stored.path()))
                    .isEqualTo(Map.of(name, "gnu", name.replace("x.bin", "y.bin"), "pax"));
        }
    }

    @ParameterizedTest
    @CsvSource({"GNU,STAR", "POSIX,POSIX"})
    void archivesOfOtherWritersAreRead(String longNames, String bigNumbers) throws Exception {
        String name = "ä/".repeat(90) + "y".repeat(200) + ".bin";
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (TarArchiveOutputStream tar = new TarArchiveOutputStream(bytes, "UTF-8")) {
            boolean gnu = longNames.equals("GNU");
            tar.setLongFileMode(gnu ? TarArchiveOutputStream.LONGFILE_GNU : TarArchiveOutputStream.LONGFILE_POSIX);
            tar.setBigNumberMode(
                    bigNumbers.equals("STAR")
                            ? TarArchiveOutputStream.BIGNUMBER_STAR
                            : TarArchiveOutputStream.BIGNUMBER_POSIX);
            tar.setAddPaxHeadersForNonAsciiNames(!gnu);
            write(tar, "ä/", new TarArchiveEntry("ä/"), "");
            TarArchiveEntry file = new TarArchiveEntry(name);
            file.setUserId(1L << 40);
            file.setMode(0100755);
            write(tar, name, file, "long");
            TarArchiveEntry link = new TarArchiveEntry("link", TarConstants.LF_SYMLINK);
            link.setLinkName(name);
            write(tar, "link", link, "");
        }
        try (StorageLease stored = unpack("m.tar", bytes.toByteArray())) {
            assertThat(stored.path().resolve("link")).isSymbolicLink().hasContent("long");
            assertThat(Files.isExecutable(stored.path().resolve(name))).isTrue();
        }
    }

    private static void write(TarArchiveOutputStream tar, String name, TarArchiveEntry entry, String content)
            throws IOException {
        byte[] bytes = content.getBytes(StandardCharsets.UTF_8);
        entry.setName(name);
        entry.setSize(bytes.length);
        tar.putArchiveEntry(entry);
        tar.write(bytes);
        tar.closeArchiveEntry();
    }

    @Test
    void aLongNameCannotBeAbsolute() throws Exception {
        byte[] tar = new Archives()
                .entry("pax", 'x', "", pax("path=/evil\n"))
                .file("cut", "pax")
                .entry("././@LongLink", 'L', "", "//evil2\0".getBytes(StandardCharsets.UTF_8))
                .file("cut", "gnu")
                .tar();
        try (StorageLease stored = unpack("m.tar", tar)) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("evil", "pax", "evil2", "gnu"));
        }
    }

    /** A record of an extended header, which begins with its own length. */
    private static byte[] pax(String... records) {
        StringBuilder all = new StringBuilder();
        for (String record : records) {
            int length = record.length() + 3;
            length += length > 99 ? 1 : 0;
            all.append(length > 9 ? length : length - 1).append(' ').append(record);
        }
        return all.toString().getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void aZipWithLargeNumbersIsRead() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipArchiveOutputStream zip = new ZipArchiveOutputStream(bytes)) {
            zip.setUseZip64(Zip64Mode.AlwaysWithCompatibility);
            zip.putArchiveEntry(new ZipArchiveEntry("d/a.bin"));
            zip.write('a');
            zip.closeArchiveEntry();
        }
        try (StorageLease stored = unpack("m.zip", bytes.toByteArray())) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("d/a.bin", "a"));
        }
    }

    @Test
    void linksInsideStay() throws Exception {
        byte[] tar = new Archives()
                .link("latest", "v1/m.bin")
                .file("v1/m.bin", "x")
                .entry("hard.bin", '1', "v1/m.bin", new byte[0])
                .tar();
        try (StorageLease stored = unpack("m.tar", tar)) {
            assertThat(stored.path().resolve("latest")).isSymbolicLink().hasContent("x");
            assertThat(stored.path().resolve("hard.bin")).hasContent("x");
        }
    }

    static Stream<Arguments> hostile() {
        String many = "x";
        Archives entries = new Archives();
        for (int i = 0; i < 51; i++) {
            entries.file("f" + i, many);
        }
        byte[] zeros = new byte[80 << 20];
        byte[] twice = Archives.zip("ab", "1", "ac", "2");
        // The second name becomes the first in the local header and in the directory.
        for (int i = 0; i + 1 < twice.length; i++) {
            if (twice[i] == 'a' && twice[i + 1] == 'c') {
                twice[i + 1] = 'b';
            }
        }
        byte[] good = new Archives().file("a", "1").file("b", "2").tar();
        byte[] changed = good.clone();
        changed[1024 + 5] = 'x';
        Archives chain = new Archives();
        for (int i = 0; i < 5000; i++) {
            chain.entry("pax", i % 2 == 0 ? 'x' : 'g', "", pax("path=a\n"));
        }
        byte[] sparse = pax("GNU.sparse.major=1\n", "GNU.sparse.minor=0\n", "GNU.sparse.realsize=9\n");
        byte[] map = "4000000\n".concat("0\n".repeat(8_000_000)).getBytes(StandardCharsets.UTF_8);
        return Stream.of(
                Arguments.of("m.tar", Arrays.copyOf(good, 1024 + 100), "a header is cut short"),
                Arguments.of("m.tar", Arrays.copyOf(good, 512), "is damaged or its format"),
                Arguments.of("m.tar", Arrays.copyOf(good, 600), "is damaged or its format"),
                Arguments.of("m.tar", changed, "a header is damaged"),
                Arguments.of("m.tar", new byte[0], "no tar"),
                Arguments.of("m.tar", chain.file("a", "1").tar(), "more than 16 headers"),
                Arguments.of(
                        "m.tgz",
                        Archives.gzip(new Archives()
                                .entry("././@LongLink", 'L', "", zeros)
                                .file("a", "1")
                                .tar()),
                        "headers of more than 4194304 bytes"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .entry("pax", 'x', "", pax("path=../evil\n"))
                                .file("a", "1")
                                .tar(),
                        "leaves the directory"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .entry("pax", 'x', "", "nonsense".getBytes(StandardCharsets.UTF_8))
                                .entry("pax", 'x', "", pax("size=-1\n"))
                                .file("a", "1")
                                .tar(),
                        "is damaged or its format"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .entry("pax", 'x', "", sparse)
                                .file("a", "1\n0\n9\n")
                                .tar(),
                        "sparse"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .entry("pax", 'x', "", pax("GNU.sparse.map=0,1\n", "GNU.sparse.size=9\n"))
                                .file("a", "1")
                                .tar(),
                        "sparse"),
                Arguments.of(
                        "m.tgz",
                        Archives.gzip(new Archives()
                                .entry("pax", 'x', "", sparse)
                                .entry("a", '0', "", map)
                                .tar()),
                        "headers of more than 4194304 bytes"),
                Arguments.of(
                        "m.tar", new Archives().entry("v", 'V', "", new byte[0]).tar(), "not supported ('V')"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .entry("././@LongLink", 'L', "", "n".repeat(256).getBytes(StandardCharsets.UTF_8))
                                .file("a", "1")
                                .tar(),
                        "is longer than 255 bytes"),
                Arguments.of("m.zip", Archives.zip("ä/".repeat(700) + "x", "x"), "is longer than 2048 bytes"),
                Arguments.of("m.tar", new Archives().file("../evil", "x").tar(), "leaves the directory"),
                Arguments.of("m.tar", new Archives().file("a/../../evil", "x").tar(), "leaves the directory"),
                Arguments.of("m.tar", new Archives().file("/evil", "x").tar(), "is absolute"),
                Arguments.of("m.tar", new Archives().file("a\\..\\evil", "x").tar(), "backslash"),
                Arguments.of("m.tar", new Archives().link("l", "/etc/passwd").tar(), "leads out"),
                Arguments.of("m.tar", new Archives().link("a/l", "../../x").tar(), "leads out"),
                Arguments.of("m.tar", new Archives().link("l", "nowhere").tar(), "leads nowhere"),
                Arguments.of("m.tar", new Archives().link("l", "l").tar(), "leads nowhere"),
                Arguments.of(
                        "m.tar", new Archives().link("d", ".").file("d/x", "x").tar(), "goes through the link"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .file("real/sub/y", "y")
                                .link("a", "real/sub")
                                .link("b", "a/../../..")
                                .tar(),
                        "leads out"),
                Arguments.of(
                        "m.tar",
                        new Archives()
                                .entry("h", '1', "/etc/passwd", new byte[0])
                                .tar(),
                        "absolute"),
                Arguments.of(
                        "m.tar",
                        new Archives().entry("h", '1', "later", new byte[0]).tar(),
                        "not a file earlier in the archive"),
                Arguments.of(
                        "m.tar",
                        new Archives().entry("dev", '3', "", new byte[0]).tar(),
                        "is a device"),
                Arguments.of(
                        "m.tar",
                        new Archives().entry("dev", '4', "", new byte[0]).tar(),
                        "is a device"),
                Arguments.of(
                        "m.tar",
                        new Archives().entry("pipe", '6', "", new byte[0]).tar(),
                        "is a pipe"),
                Arguments.of(
                        "m.tar", new Archives().entry("s", 'S', "", new byte[0]).tar(), "sparse"),
                Arguments.of(
                        "m.tar", new Archives().file("a", "1").file("./a", "2").tar(), "is in it twice"),
                Arguments.of(
                        "m.tar", new Archives().file("a", "1").file("a/b", "2").tar(), "is in it twice"),
                Arguments.of("m.tar", entries.tar(), "more than 50 entries"),
                Arguments.of(
                        "m.tar",
                        "no tar at all, but long enough".repeat(100).getBytes(StandardCharsets.UTF_8),
                        "is damaged or its format"),
                Arguments.of("m.tgz", "no gzip".getBytes(StandardCharsets.UTF_8), "is damaged or its format"),
                Arguments.of(
                        "m.tgz",
                        Archives.gzip(new Archives().entry("z", '0', "", zeros).tar()),
                        "100 times its size"),
                Arguments.of("m.zip", Archives.zip("../evil", "x"), "leaves the directory"),
                Arguments.of("m.zip", Archives.zip("/evil", "x"), "is absolute"),
                Arguments.of("m.zip", twice, "is in it twice"),
                Arguments.of("m.zip", "no zip".getBytes(StandardCharsets.UTF_8), "is damaged or its format"),
                Arguments.of(
                        "m.zip",
                        Archives.zip("z", new String(zeros, StandardCharsets.ISO_8859_1)),
                        "100 times its size"));
    }

    @ParameterizedTest
    @MethodSource("hostile")
    void hostileArchivesAreRefusedAndLeaveNothing(String name, byte[] archive, String why) throws Exception {
        assertThatThrownBy(() -> unpack(name, archive))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining(why);
        assertThat(storage.held()).isZero();
        try (var left = Files.list(directory.resolve("cache/temp"))) {
            assertThat(left).isEmpty();
        }
        assertThat(directory.resolve("in").resolve("evil")).doesNotExist();
        assertThat(directory.resolve("cache").resolve("evil")).doesNotExist();
    }

    @Test
    void anArchiveOfDirectoriesOnlyIsEmpty() {
        assertThatThrownBy(() -> unpack(
                        "m.tar",
                        new Archives().entry("d/", '5', "", new byte[0]).tar()))
                .hasMessageContaining("No model found in file://")
                .hasMessageContaining("m.tar");
    }

    @Test
    void patternsChooseInsideOfAnArchive() throws Exception {
        Path file = directory.resolve("m.zip");
        Files.write(file, Archives.zip("a.bin", "1", "docs/x.md", "2", "docs/y.bin", "3"));
        StorageRequest request = new StorageRequest("file://" + file, Map.of(), List.of("*.bin"), List.of("docs/"));
        try (StorageLease stored = Given.get(storage.fetch(request, ProgressListener.none()))) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("a.bin", "1"));
        }
    }
}
