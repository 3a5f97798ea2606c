// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** Draft of the signatures. */
public final class RepositorySource implements Source {
    /** When the repository is read. */
    public enum Mode {
        /** Everything once, at the start. */
        NONE,
        /** Everything at the start, and again every poll interval. */
        POLL,
        /** At the start only the named models; later what {@link #load} asks for. */
        EXPLICIT
    }

    /**
     * Settings. Immutable.
     *
     * @param mode when the repository is read
     * @param pollInterval time between two reads in {@link Mode#POLL}
     * @param settle how long files must have been unchanged to count as completely written; zero takes them as they are
     * @param startModels models to load at the start in {@link Mode#EXPLICIT}; {@code *} alone stands for all
     */
    public record Options(Mode mode, Duration pollInterval, Duration settle, List<String> startModels) {
        /** Everything once, at the start. */
        public static final Options DEFAULT =
                new Options(Mode.NONE, Duration.ofSeconds(15), Duration.ofSeconds(1), List.of());

        /** These settings in another mode. */
        public Options withMode(Mode newMode) {
            return new Options(newMode, pollInterval, settle, startModels);
        }

        /** These settings with another poll interval. */
        public Options withPollInterval(Duration newPollInterval) {
            return new Options(mode, newPollInterval, settle, startModels);
        }

        /** These settings with another settle time. */
        public Options withSettle(Duration newSettle) {
            return new Options(mode, pollInterval, newSettle, startModels);
        }

        /** These settings with other models to start with. */
        public Options withStartModels(List<String> newStartModels) {
            return new Options(mode, pollInterval, settle, newStartModels);
        }
    }

    /** Reads nothing yet. */
    public RepositorySource(
            List<Path> roots, List<Backend> backends, LoaderFactory loaders, Options options, Clock clock) {}

    @Override
    public void start(Target target) {}

    /** Reads the repository now. */
    public void poll() {}

    /** Reads one model now and emits it; returns the versions emitted. */
    public List<ServableId> load(String model) {
        return List.of();
    }

    /** Emits that no version of the model is wanted. */
    public void unload(String model) {}

    /** Names of all models in the repository, sorted. */
    public List<String> names() {
        return List.of();
    }

    /** Problems found by the latest reads. */
    public List<Problem> problems() {
        return List.of();
    }

    @Override
    public void close() {}
}
