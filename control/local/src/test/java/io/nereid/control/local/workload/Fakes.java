// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.gateway.activator.PayloadListener;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.repository.ManagedModels;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.Loader;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Source;
import io.nereid.spi.config.ModelConfig;
import io.nereid.transport.api.ProtocolCodec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Fakes for the tests of this package. */
public final class Fakes {
    private Fakes() {}

    /** An event loop with a simulated clock; all tasks run on the test's thread. */
    public static final class FakeLoop implements EventLoop {
        private final Deque<Runnable> tasks = new ArrayDeque<>();
        private final PriorityQueue<Timed> timed =
                new PriorityQueue<>(Comparator.comparingLong(Timed::at).thenComparingLong(Timed::order));
        private long nanos = 1_000_000_000_000L;
        private long order;
        public int ran;

        private record Timed(long at, long order, Runnable task, boolean[] cancelled) {}

        @Override
        public void execute(Runnable task) {
            tasks.add(task);
        }

        @Override
        public void io(Runnable task) {
            tasks.add(task);
        }

        @Override
        public Timer after(Duration time, Runnable task) {
            boolean[] cancelled = new boolean[1];
            timed.add(new Timed(nanos + time.toNanos(), order++, task, cancelled));
            return () -> cancelled[0] = true;
        }

        /** Runs the tasks that are due. */
        public void run() {
            for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
                ran++;
                task.run();
            }
        }

        /** Advances the clock. */
        void pass(Duration time) {
            long until = nanos + time.toNanos();
            run();
            while (!timed.isEmpty() && timed.peek().at <= until) {
                Timed next = timed.remove();
                nanos = Math.max(nanos, next.at);
                if (!next.cancelled[0]) {
                    next.task.run();
                    run();
                }
            }
            nanos = until;
        }

        public void seconds(int count) {
            pass(Duration.ofSeconds(count));
        }

        @Override
        public Clock clock() {
            return new Clock() {
                @Override
                public long nanos() {
                    return nanos;
                }

                @Override
                public long millis() {
                    return 1_800_000_000_000L + nanos / 1_000_000;
                }
            };
        }

        @Override
        public void close() {}
    }

    /** An engine that loads all models of its source except those configured to fail. */
    public static final class FakeEngine implements Source.Target, LoaderFactory {
        /** The source, which the control plane gives the complete list of models. */
        public final ManagedModels models = new ManagedModels(List.of(new FakeBackend()));
        /** The aspired models by name. */
        public final Map<String, FakeLoader> aspired = new LinkedHashMap<>();

        public final Map<String, String> failing = new HashMap<>();
        /** Whether loading models stay in that state, until the test reports another one. */
        public boolean slow;

        public int calls;
        public Consumer<ServableState> listener = s -> {};

        public FakeEngine() {
            models.loaders(this);
            models.start(this);
        }

        @Override
        public Loader create(ModelLocation source, ModelConfig config, Backend backend, String fingerprint) {
            return new FakeLoader(source.id(), fingerprint, config, source.versionDirectory());
        }

        @Override
        public void aspire(String model, List<AspiredVersion> versions) {
            calls++;
            if (versions.isEmpty()) {
                aspired.remove(model);
                report(model, Phase.GONE, null);
                return;
            }
            AspiredVersion version = versions.get(0);
            if (version.loader() == null) {
                report(model, Phase.FAILED, String.valueOf(version.error()));
            } else if (aspired.put(model, (FakeLoader) version.loader()) == null) {
                report(model, Phase.LOADING, null);
                if (failing.containsKey(model)) {
                    report(model, Phase.FAILED, failing.get(model));
                } else if (!slow) {
                    report(model, Phase.AVAILABLE, null);
                }
            }
        }

        public void report(String name, Phase phase, @Nullable String reason) {
            listener.accept(new ServableState(new ServableId(name, 1), phase, reason, "fake", 0, 0));
        }
    }

    /** Has the name of the scikit-learn backend and loads nothing. */
    private static final class FakeBackend implements Backend {
        @Override
        public String name() {
            return "sklearn";
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.pkl");
        }

        @Override
        public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
            throw new AssertionError("the fake engine loads nothing");
        }
    }

    /** The loader of a version, which the fake engine does not call. */
    public record FakeLoader(ServableId id, String fingerprint, ModelConfig config, Path directory) implements Loader {
        /** The number of model instances. */
        public int instances() {
            return config.instanceGroups().get(0).count();
        }

        @Override
        public String backend() {
            return config.backend();
        }

        @Override
        public long estimateBytes() {
            return 0;
        }

        @Override
        public Servable load() {
            throw new AssertionError("the fake engine loads nothing");
        }

        @Override
        public void warm() {}

        @Override
        public void unload() {}
    }

    /** Writes a directory with a file that may be a scikit-learn model. */
    public static Path sklearnModel(Path directory) {
        try {
            Files.createDirectories(directory);
            return Files.writeString(directory.resolve("model.pkl"), "x").getParent();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Artifacts that are available at once, except those configured to fail. */
    public static final class FakeArtifacts implements ArtifactFetcher {
        public final Map<String, ServingException> failing = new HashMap<>();
        public final Map<String, Path> paths = new HashMap<>();
        /** The directory of artifacts that are not in {@link #paths}. */
        public Path others = Path.of("/nowhere");

        /** The variables by object name; unknown names are missing objects. */
        public final Map<String, Map<String, String>> objects = new HashMap<>();

        public int leases;
        public int fetches;

        @Override
        public Map<String, String> variables(Workload.EnvironmentSource source, String namespace) {
            Map<String, String> found = objects.get(source.object());
            if (found == null) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "there is no " + source.object());
            }
            return found;
        }

        @Override
        public CompletionStage<Lease> fetch(Workload.Artifact artifact, String namespace, Consumer<String> log) {
            fetches++;
            ServingException e = failing.get(artifact.uri());
            if (e != null) {
                return CompletableFuture.failedFuture(e);
            }
            leases++;
            Path path = paths.getOrDefault(artifact.uri(), others);
            return CompletableFuture.completedFuture(new Lease() {
                @Override
                public Path path() {
                    return path;
                }

                @Override
                public void close() {
                    leases--;
                }
            });
        }
    }

    /** In-process components without protocols. */
    public static final class FakeComponents implements InProcessComponents {
        public final List<Path> jars = new ArrayList<>();
        public int running;
        public int graphs;

        @Override
        public RunningComponent explainer(Workload workload, Workload.Explainer form, List<Path> files) {
            if (!form.method().equals("shap")) {
                throw ServingException.invalidArgument("no explainer '" + form.method() + "'");
            }
            running++;
            return one(() -> running--);
        }

        @Override
        public RunningComponent transformer(Workload workload, Workload.Transformer form, Path jar) {
            jars.add(jar);
            running++;
            return one(() -> running--);
        }

        @Override
        public RunningComponent graph(Route route) {
            graphs++;
            return one(() -> graphs--);
        }

        private static RunningComponent one(Runnable closed) {
            return new RunningComponent() {
                @Override
                public List<ProtocolCodec> codecs() {
                    return List.of();
                }

                @Override
                public void close() {
                    closed.run();
                }
            };
        }
    }

    /** A gate whose load the test sets. */
    public static final class FakeActivator implements ServiceRouting.Activator {
        public RevisionTarget destination;
        public int capacity = -1;

        public @Nullable String rejection;

        boolean direct = true;
        public boolean closed;
        double concurrency;
        double rps;
        int active;
        public int samples;

        public @Nullable Runnable drained;

        public boolean busy;

        FakeActivator(RevisionTarget destination) {
            this.destination = destination;
        }

        @Override
        public void destination(RevisionTarget d) {
            destination = d;
        }

        @Override
        public void capacity(int replicas) {
            capacity = replicas;
        }

        @Override
        public void direct(boolean now) {
            direct = now;
        }

        @Override
        public void reject(@Nullable String why) {
            rejection = why;
        }

        @Override
        public void listener(@Nullable PayloadListener listener) {}

        @Override
        public RevisionActivator.Load sample(long now) {
            samples++;
            return new RevisionActivator.Load(concurrency, rps, 0, active);
        }

        @Override
        public Traffic traffic(long now) {
            return Traffic.NONE;
        }

        @Override
        public void close(Runnable then) {
            closed = true;
            if (busy) {
                drained = then;
            } else {
                then.run();
            }
        }

        public void load(double now) {
            concurrency = now;
            rps = now;
            active = (int) Math.ceil(now);
        }
    }

    /** A gateway that records routes and gates. */
    public static final class FakeRouting implements ServiceRouting {
        public final Map<String, Route> routes = new java.util.concurrent.ConcurrentHashMap<>();
        public final Map<String, FakeActivator> activators = new java.util.concurrent.ConcurrentHashMap<>();
        int port = 4711;

        @Override
        public void route(String namespace, String service, @Nullable Route route) {
            if (route == null) {
                routes.remove(namespace + "/" + service);
            } else {
                routes.put(namespace + "/" + service, route);
            }
        }

        @Override
        public Activator open(
                String namespace, String revision, RevisionActivator.Settings settings, RevisionTarget destination) {
            FakeActivator activator = new FakeActivator(destination);
            activators.put(namespace + "/" + revision, activator);
            return activator;
        }

        public FakeActivator activator(String revision) {
            return java.util.Objects.requireNonNull(activators.get("default/" + revision), revision);
        }

        @Override
        public String address(String namespace, String service, Component component) {
            return "127.0.0.1:" + port;
        }

        @Override
        public void closeLocalPorts(String namespace, String service) {}
    }

    // ---- sample objects ----

    public static final Scaling ONE = new Scaling(1, 1, "concurrency", null, "kpa", Map.of());
    public static final Scaling ZERO = new Scaling(0, 3, "concurrency", 1.0, "kpa", Map.of());

    public static Workload.Artifact artifact(String uri) {
        return new Workload.Artifact(uri, "/mnt/models", null, Map.of(), null, null);
    }

    public static Workload model(String revision, Scaling scaling) {
        return workload(
                revision,
                Component.PREDICTOR,
                new Workload.Model(
                        List.of(artifact("s3://models/iris")),
                        "sklearn",
                        null,
                        "v1",
                        "kserve-sklearnserver",
                        List.of("--model_name=iris", "--model_dir=/mnt/models", "--http_port=8080"),
                        Map.of(),
                        JsonNodeFactory.instance.objectNode()),
                scaling);
    }

    public static Workload workload(String revision, Component component, Workload.Form form, Scaling scaling) {
        return new Workload(
                "default",
                "iris",
                component,
                revision,
                "iris",
                form,
                scaling,
                0,
                Duration.ofSeconds(60),
                null,
                null,
                Map.of(),
                Map.of());
    }

    public static Route route(String... revisions) {
        List<Route.Target> targets = new ArrayList<>();
        for (String revision : revisions) {
            targets.add(new Route.Target(revision, 100 / revisions.length, null));
        }
        return new Route(
                "default",
                "iris",
                "InferenceService",
                List.of(),
                Map.of(Component.PREDICTOR, new Route.Backend(targets, List.of(), null)),
                "");
    }

    public static Plan plan(@Nullable Route route, Workload... workloads) {
        return new Plan(List.of(workloads), route, List.of(), JsonNodeFactory.instance.objectNode(), List.of(), null);
    }

    /** Reads JSON. */
    public static JsonNode tree(String json) {
        try {
            return new ObjectMapper().readTree(json);
        } catch (JsonProcessingException e) {
            throw new AssertionError(e);
        }
    }

    public static LocalSettings settings(Path directory) {
        return LocalSettings.of(directory, System.getenv());
    }
}
