// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/** Fakes for the tests of this package. */
public final class Fakes {
    private Fakes() {}

    public static final FakeBackend ONNX =
            new FakeBackend("onnxruntime", List.of("onnxruntime_onnx"), List.of("model.onnx"));
    public static final FakeBackend IDENTITY = new FakeBackend("identity", List.of(), List.of());

    public record FakeBackend(String name, List<String> platforms, List<String> defaultFiles) implements Backend {
        @Override
        public String unavailableReason() {
            return "a fake";
        }

        @Override
        public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            throw ServingException.invalidArgument("a fake loads nothing: " + source.id());
        }
    }

    static final class FakeClock implements Clock {
        final AtomicLong millis = new AtomicLong(System.currentTimeMillis() + 3_600_000);

        @Override
        public long nanos() {
            return millis.get() * 1_000_000;
        }

        @Override
        public long millis() {
            return millis.get();
        }

        void advance(Duration time) {
            millis.addAndGet(time.toMillis());
        }
    }

    record FakeLoader(ServableId id, String fingerprint, ModelConfig config, Path directory) implements Loader {
        @Override
        public String backend() {
            return config.backend();
        }

        @Override
        public long estimateBytes() {
            return 0;
        }

        @Override
        public List<String> dependencies() {
            return config.ensemble() == null
                    ? List.of()
                    : config.ensemble().steps().stream()
                            .map(EnsembleStep::model)
                            .toList();
        }

        @Override
        public Servable load() {
            return new FakeServable();
        }

        @Override
        public void warm() {}

        @Override
        public void unload() {}
    }

    /** Does not answer. */
    static final class FakeServable implements Servable {
        @Override
        public ModelMetadata metadata() {
            throw new AssertionError("not called in these tests");
        }

        @Override
        public ModelConfig config() {
            throw new AssertionError("not called in these tests");
        }

        @Override
        public long memoryBytes() {
            return 0;
        }

        @Override
        public void submit(InferenceJob job) {
            throw new AssertionError("not called in these tests");
        }
    }

    static Loader loader(ModelLocation source, ModelConfig config, Backend backend, String fingerprint) {
        return new FakeLoader(source.id(), fingerprint, config, source.versionDirectory());
    }

    static final Factory FACTORY = new Factory();

    /** Creates loaders that load nothing, also for ensembles, and records their sources. Thread-safe. */
    static final class Factory implements LoaderFactory {
        private final Map<ServableId, Path> directories = new ConcurrentHashMap<>();

        @Override
        public Loader create(ModelLocation source, ModelConfig config, Backend backend, String fingerprint) {
            directories.put(source.id(), source.versionDirectory());
            return loader(source, config, backend, fingerprint);
        }

        @Override
        public Loader ensemble(ModelLocation source, ModelConfig config, String fingerprint) {
            return new FakeLoader(source.id(), fingerprint, config, source.versionDirectory());
        }

        Path directory(ServableId id) {
            return java.util.Objects.requireNonNull(directories.get(id));
        }
    }

    /** Records every emission. */
    static final class Recorder implements Source.Target {
        record Emission(String model, List<AspiredVersion> versions) {
            List<Long> loadable() {
                return versions.stream()
                        .filter(a -> a.loader() != null)
                        .map(a -> a.id().version())
                        .toList();
            }

            String error() {
                ServingException e = versions.get(0).error();
                return e == null ? "" : e.describe();
            }

            FakeLoader loader() {
                return (FakeLoader)
                        java.util.Objects.requireNonNull(versions.get(0).loader());
            }
        }

        final List<Emission> all = new ArrayList<>();

        @Override
        public synchronized void aspire(String model, List<AspiredVersion> versions) {
            all.add(new Emission(model, versions));
        }

        synchronized Emission last(String model) {
            return all.stream()
                    .filter(e -> e.model.equals(model))
                    .reduce((a, b) -> b)
                    .orElseThrow();
        }

        synchronized long count(String model) {
            return all.stream().filter(e -> e.model.equals(model)).count();
        }
    }

    public static Path write(Path file, String text) {
        try {
            Files.createDirectories(java.util.Objects.requireNonNull(file.getParent()));
            return Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Sets the modification time of everything below. */
    public static void touch(Path tree, long millis) {
        try (Stream<Path> walk = Files.walk(tree)) {
            for (Path p : walk.toList()) {
                Files.setLastModifiedTime(p, FileTime.fromMillis(millis));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void delete(Path tree) {
        try (Stream<Path> walk = Files.walk(tree)) {
            for (Path p : walk.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(p);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
