// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.repository.Fakes.FakeClock;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.repository.FileSystemStoragePathSource.Options;
import io.nereid.repository.FileSystemStoragePathSource.PollStatistics;
import io.nereid.spi.management.ModelListEntry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The cost of polling, in file system calls. */
class ServedModelCostTest {
    private static final int MODELS = 512;
    private static final long LONG_AGO = 1_700_000_000_000L;
    private static final Options SLOW = Options.DEFAULT.withPollInterval(Duration.ofHours(1));

    @TempDir
    Path root;

    private final FakeClock clock = new FakeClock();
    private final Recorder target = new Recorder();
    private FileSystemStoragePathSource source = source(SLOW, clock, List.of());

    private static FileSystemStoragePathSource source(Options options, Clock clock, List<ModelListEntry> models) {
        return new FileSystemStoragePathSource(models, List.of(Fakes.ONNX), Fakes.FACTORY, options, clock);
    }

    private List<ModelListEntry> models(int count) {
        List<ModelListEntry> models = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Fakes.write(root.resolve("m" + i + "/1/model.onnx"), "x");
            models.add(
                    new ModelListEntry("m" + i, root.resolve("m" + i).toString(), "tensorflow", null, Map.of(), null));
        }
        Fakes.touch(root, LONG_AGO);
        return models;
    }

    private void start() {
        source = source(SLOW, clock, models(MODELS));
        source.start(target);
    }

    @AfterEach
    void close() {
        source.close();
    }

    private PollStatistics poll() {
        PollStatistics before = source.polling();
        source.poll();
        PollStatistics after = source.polling();
        return new PollStatistics(
                after.polls() - before.polls(),
                after.scans() - before.scans(),
                after.reads() - before.reads(),
                after.interval());
    }

    @Test
    void aPollOfUnchangedModelsReadsNone() {
        start();
        for (int i = 0; i < 5; i++) {
            assertThat(poll().reads()).isZero();
        }
        assertThat(target.all).hasSize(MODELS);
    }

    @Test
    void onlyTheModelThatChangedIsRead() {
        start();
        Fakes.write(root.resolve("m300/2/model.onnx"), "x");
        Fakes.touch(root.resolve("m300"), LONG_AGO + 60_000);
        assertThat(poll().reads()).isEqualTo(1);
        clock.advance(Duration.ofSeconds(1));
        assertThat(poll().reads()).isEqualTo(1);
        assertThat(target.last("m300").loadable()).containsExactly(2L);
        assertThat(poll().reads()).isZero();
    }

    @Test
    void aTimeOfChangeInTheFutureIsNotTrusted() {
        start();
        Fakes.touch(root.resolve("m300/1/model.onnx"), System.currentTimeMillis() + 3_600_000);
        source.poll();
        clock.advance(Duration.ofSeconds(1));
        source.poll();
        assertThat(target.count("m300")).isEqualTo(2);
        assertThat(poll().reads()).isEqualTo(1);
        Fakes.touch(root.resolve("m300/1/model.onnx"), LONG_AGO);
        source.poll();
        clock.advance(Duration.ofSeconds(1));
        source.poll();
        assertThat(poll().reads()).isZero();
    }

    @Test
    void aFileThatChangesInPlaceIsSeenByTheNextPoll() {
        start();
        Fakes.write(root.resolve("m300/1/model.onnx"), "another");
        source.poll();
        clock.advance(Duration.ofSeconds(1));
        source.poll();
        assertThat(target.count("m300")).isEqualTo(2);
    }

    @Test
    void aLookThatCostsMoreThanItsShareIsPutOff() {
        AtomicLong step = new AtomicLong(5_000_000);
        Clock slow = new Clock() {
            private final AtomicLong nanos = new AtomicLong();

            @Override
            public long nanos() {
                return nanos.addAndGet(step.get());
            }

            @Override
            public long millis() {
                return clock.millis();
            }
        };
        source = source(Options.DEFAULT.withPollInterval(Duration.ofMillis(100)), slow, models(3));
        source.start(target);
        source.poll();
        assertThat(source.polling().interval()).isGreaterThanOrEqualTo(Duration.ofMillis(500));
        step.set(60_000_000_000L);
        source.poll();
        assertThat(source.polling().interval()).isEqualTo(Duration.ofMinutes(1));
        step.set(1);
        source.poll();
        assertThat(source.polling().interval()).isEqualTo(Duration.ofMillis(100));
    }
}
