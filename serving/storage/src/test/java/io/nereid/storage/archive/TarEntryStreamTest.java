// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.storage.Archives;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.io.UncheckedIOException;
import java.util.Arrays;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.junit.jupiter.api.Test;

class TarEntryStreamTest {
    private static final byte[] TAR =
            new Archives().file("a", "1").file("b", "2").tar();

    /** A disk that cannot be read. */
    private static final class BadDisk extends InputStream {
        @Override
        public int read() throws IOException {
            throw new IOException("bad sector");
        }
    }

    @Test
    void anEntryThatIsNotReadIsSkipped() throws IOException {
        try (TarEntryStream tar = new TarEntryStream(new ByteArrayInputStream(TAR), "m.tar")) {
            assertThat(tar.next()).extracting(TarArchiveEntry::getName).isEqualTo("a");
            assertThat(tar.next()).extracting(TarArchiveEntry::getName).isEqualTo("b");
            assertThat(tar.readAllBytes()).containsExactly('2');
            assertThat(tar.next()).isNull();
        }
    }

    @Test
    void anErrorOfTheDiskIsNotAFaultOfTheArchive() throws IOException {
        for (int length : new int[] {0, 100, 512, 600, 1024 + 512}) {
            InputStream broken =
                    new SequenceInputStream(new ByteArrayInputStream(Arrays.copyOf(TAR, length)), new BadDisk());
            try (TarEntryStream tar = new TarEntryStream(broken, "m.tar")) {
                assertThatThrownBy(() -> {
                            while (tar.next() != null) {
                                assertThat(tar.readAllBytes()).hasSize(1);
                            }
                        })
                        .isInstanceOf(UncheckedIOException.class)
                        .hasRootCauseMessage("bad sector");
            }
        }
    }
}
