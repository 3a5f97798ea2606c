// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.storage.request.ProgressListener.Phase;
import io.nereid.storage.request.ProgressListener.Step;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The log of a download has a line at the start, one every five seconds, and one at the end. */
class DownloadProgressTest {
    private static final long SECOND = 1_000_000_000L;

    private final List<String> lines = new ArrayList<>();
    private long now;
    private final DownloadProgress progress = new DownloadProgress("hf://me/bert", lines::add, new Clock() {
        @Override
        public long nanos() {
            return now;
        }

        @Override
        public long millis() {
            return 0;
        }
    });

    private void at(double seconds, Phase phase, long bytes, int files) {
        now = (long) (seconds * SECOND);
        progress.on(new Step(phase, bytes, 100_000_000, files, 3));
    }

    @Test
    void aDownloadIsReportedEveryFiveSeconds() {
        progress.on(new Step(Phase.LISTING, 0, -1, 0, -1));
        // 20 MB are there from an earlier attempt: the rate is that of this one.
        for (int i = 0; i <= 60; i++) {
            at(2 + i / 5.0, Phase.DOWNLOADING, 20_000_000 + i * 1_000_000L, i / 30);
        }
        at(14, Phase.STORING, 100_000_000, 3);
        at(14.5, Phase.DONE, 100_000_000, 3);
        assertThat(lines)
                .containsExactly(
                        "downloading hf://me/bert: 3 files, 100.0 MB",
                        "hf://me/bert: 45.0 of 100.0 MB, 0 of 3 files, 5.0 MB/s",
                        "hf://me/bert: 70.0 of 100.0 MB, 1 of 3 files, 5.0 MB/s",
                        "downloaded hf://me/bert: 3 files, 100.0 MB in 12.5 s");
    }

    @Test
    void filesOfTheCacheAndOfThisMachineAreNotADownload() {
        at(1, Phase.DONE, 100_000_000, 3);
        progress.on(new Step(Phase.DONE, 5, 5, 0, 0));
        assertThat(lines).containsExactly("hf://me/bert is in the cache: 3 files, 100.0 MB");
    }

    @Test
    void anUnknownSizeIsSaid() {
        progress.on(new Step(Phase.DOWNLOADING, 1_000_000, -1, 0, -1));
        now = 6 * SECOND;
        progress.on(new Step(Phase.DOWNLOADING, 7_000_000, -1, 0, -1));
        progress.on(new Step(Phase.UNPACKING, 7_000_000, -1, 0, -1));
        progress.on(new Step(Phase.UNPACKING, 7_000_000, -1, 0, -1));
        assertThat(lines)
                .containsExactly(
                        "downloading hf://me/bert: unknown size",
                        "hf://me/bert: 7.0 MB, 1.0 MB/s",
                        "unpacking hf://me/bert");
    }
}
