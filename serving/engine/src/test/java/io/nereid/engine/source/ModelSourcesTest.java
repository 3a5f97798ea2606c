// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.source;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.EngineFixture;
import io.nereid.repository.ManagedModel;
import io.nereid.repository.ManagedModels;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ModelSourcesTest {
    @TempDir
    Path root;

    private EngineFixture fixture;

    @BeforeEach
    void fixture() throws Exception {
        fixture = new EngineFixture(root);
    }

    @AfterEach
    void close() {
        fixture.close();
    }

    @Test
    void aSourceOfTheEmbedderIsServedBesideTheOthers() throws Exception {
        Memory memory = new Memory();
        fixture.stored("m", 1, "");
        fixture.options.sources(List.of(memory));
        fixture.start();
        assertThat(fixture.states()).isEqualTo("m 1 AVAILABLE; own 3 AVAILABLE");
        assertThat(fixture.ask(ModelRef.latest("own"))).isEqualTo(100);
        assertThat(fixture.ask(ModelRef.latest("m"))).isEqualTo(1);
        fixture.close();
        assertThat(memory.closed).isTrue();
    }

    @Test
    void aModelOfTheEmbedderIsTakenOutOnlyByHim() throws Exception {
        Memory memory = new Memory();
        fixture.options.sources(List.of(memory));
        fixture.start();
        EngineFixture.get(fixture.engine().load("own"));
        ServingException e = EngineFixture.failure(fixture.engine().unload("own"));
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.getMessage()).isEqualTo("model 'own' comes from source 1, which would load it again at once");
        assertThat(fixture.ask(ModelRef.latest("own"))).isEqualTo(100);
        memory.target().aspire("own", List.of());
        fixture.until(() -> fixture.states().equals("own"));
        assertThat(memory.unloads).hasValue(1);
    }

    @Test
    void itsRequestsAreCheckedAndCountedLikeAnyOther() throws Exception {
        fixture.options.sources(List.of(new Memory()));
        fixture.start();
        assertThat(EngineFixture.failure(fixture.infer(
                                ModelRef.latest("own"), "", EngineFixture.floats("WRONG", Shape.of(1, 1), 1)))
                        .code())
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(fixture.ask(ModelRef.latest("own"))).isEqualTo(100);
        assertThat(fixture.engine().statistics("own", 3).get(0).success().count())
                .isEqualTo(1);
        assertThat(fixture.engine().metrics())
                .contains("nv_inference_request_success{model=\"own\",version=\"3\"} 1\n");
    }

    @Test
    void aFailedLoadIsTriedAsOftenAsAskedFor() throws Exception {
        Memory memory = new Memory();
        memory.broken = true;
        fixture.options.sources(List.of(memory)).loadRetries(2).loadRetryInterval(Duration.ofMillis(1));
        fixture.start();
        assertThat(memory.loads).hasValue(3);
    }

    @Test
    void aPlacedModelIsServedGrowsWithoutBeingLoadedAnewAndGoes() throws Exception {
        ManagedModels placed = new ManagedModels(List.of(fixture.backend));
        List<String> transitions = new CopyOnWriteArrayList<>();
        fixture.options.sources(List.of(placed));
        fixture.engine().onState(s -> transitions.add(s.id().model() + " " + s.phase()));
        fixture.start();
        ManagedModel one =
                ManagedModel.of("own-1", fixture.version("own", 1, "").getParent());
        assertThat(placed.place(List.of(one))).containsEntry("own-1", List.of("own-1"));
        fixture.until(() -> fixture.states().equals("own-1 1 AVAILABLE"));
        assertThat(fixture.ask(ModelRef.latest("own-1"))).isEqualTo(1);
        Map<String, List<String>> unused = placed.place(List.of(one.withInstances(3)));
        fixture.until(() -> fixture.engine()
                        .config(ModelRef.latest("own-1"))
                        .instanceGroups()
                        .get(0)
                        .count()
                == 3);
        assertThat(transitions.stream().filter(h -> h.endsWith("LOADING"))).hasSize(1);
        unused = placed.place(List.of());
        fixture.until(() -> transitions.contains("own-1 GONE"));
        unused = placed.place(List.of(ManagedModel.of("default/lost", root.resolve("nowhere"))));
        fixture.until(() -> transitions.contains("default/lost FAILED"));
        int failures = transitions.size();
        unused = placed.place(List.of());
        fixture.until(() -> transitions.contains("default/lost GONE"));
        unused = placed.place(List.of(ManagedModel.of("default/lost", root.resolve("nowhere"))));
        fixture.until(() -> transitions.lastIndexOf("default/lost FAILED") >= failures);
    }

    /** A source of one model without files. */
    private static final class Memory implements Source {
        final AtomicInteger loads = new AtomicInteger();
        final AtomicInteger unloads = new AtomicInteger();
        volatile boolean broken;
        volatile boolean closed;
        private volatile @Nullable Target target;

        Target target() {
            Target t = target;
            if (t == null) {
                throw new AssertionError("not started");
            }
            return t;
        }

        @Override
        public void start(Target to) {
            target = to;
            to.aspire("own", List.of(AspiredVersion.of(new Loader() {
                @Override
                public ServableId id() {
                    return new ServableId("own", 3);
                }

                @Override
                public String fingerprint() {
                    return "f";
                }

                @Override
                public String backend() {
                    return "memory";
                }

                @Override
                public long estimateBytes() {
                    return 0;
                }

                @Override
                public Servable load() {
                    loads.incrementAndGet();
                    if (broken) {
                        throw ServingException.of(ErrorCode.UNAVAILABLE, "not now");
                    }
                    return new Constant();
                }

                @Override
                public void warm() {}

                @Override
                public void unload() {
                    unloads.incrementAndGet();
                }
            })));
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    /** Returns 100. */
    private static final class Constant implements Servable {
        private final ModelConfig config = ModelConfig.unspecified("own")
                .completed(
                        "memory",
                        "memory",
                        0,
                        List.of(new TensorSpec("IN0", DataType.FP32, Shape.of(-1, -1))),
                        List.of(new TensorSpec("OUT0", DataType.FP32, Shape.of(1))),
                        null,
                        1);

        @Override
        public ModelMetadata metadata() {
            return new ModelMetadata(
                    new ServableId("own", 3), "memory", config.inputs(), config.outputs(), 0, Map.of());
        }

        @Override
        public ModelConfig config() {
            return config;
        }

        @Override
        public long memoryBytes() {
            return 0;
        }

        @Override
        public void submit(InferenceJob job) {
            job.complete(List.of(EngineFixture.floats("OUT0", Shape.of(1), 100)), Map.of());
        }
    }
}
