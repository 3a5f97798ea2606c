// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.nereid.base.ServingException;
import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import io.nereid.embedded.micrometer.NereidMetrics;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.TracerProvider;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.support.SpringFactoriesLoader;

class NereidEmbeddedAutoConfigurationTest {
    private static final String FILE = "../../examples/models/iris/1/model.onnx";
    private static final String IRIS = "nereid.embedded.models.iris.path=" + FILE;
    private static final float[][] SETOSA = {{5.1f, 3.5f, 1.4f, 0.2f}};

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(NereidEmbeddedAutoConfiguration.class, NereidMetricsAutoConfiguration.class));

    @Test
    void loadsTheModelsOfTheProperties() {
        runner.withPropertyValues(
                        IRIS,
                        "nereid.embedded.models.iris.backend=onnxruntime",
                        "nereid.embedded.models.iris.instances=2",
                        "nereid.embedded.models.iris.batching.max-batch-size=16",
                        "nereid.embedded.models.iris.batching.delay=1ms",
                        "nereid.embedded.models.iris.parameters.intra_op_thread_count=1",
                        "nereid.embedded.reload=1h")
                .run(context -> {
                    assertThat(context).hasSingleBean(Nereid.class).hasSingleBean(Model.class);
                    Model iris = context.getBean("iris", Model.class);
                    assertThat(iris.predict(SETOSA).longs("label")).containsExactly(0);
                });
    }

    @Test
    void pathsMayBeLocations() {
        String location = Path.of(FILE).toAbsolutePath().normalize().toUri().toString();
        runner.withPropertyValues("nereid.embedded.models.iris.path=" + location)
                .run(context -> assertThat(context).hasSingleBean(Model.class));
        fails(
                List.of("nereid.embedded.models.iris.path=classpath:absent.onnx"),
                "nereid.embedded.models.iris.path",
                "absent.onnx");
    }

    @Test
    void closesTheEngineWithTheApplication() {
        AtomicReference<Model> kept = new AtomicReference<>();
        runner.withPropertyValues(IRIS).run(context -> kept.set(context.getBean(Model.class)));
        assertThatThrownBy(() -> kept.get().predict(SETOSA)).isInstanceOf(ServingException.class);
    }

    @Test
    void loadsRepositories(@TempDir Path folder) throws IOException {
        Files.createDirectories(folder.resolve("flowers/1"));
        Files.copy(Path.of(FILE), folder.resolve("flowers/1/model.onnx"));
        runner.withPropertyValues("nereid.embedded.repositories=" + folder).run(context -> {
            assertThat(context).hasSingleBean(Nereid.class).doesNotHaveBean(Model.class);
            assertThat(context.getBean(Nereid.class)
                            .model("flowers")
                            .predict(SETOSA)
                            .longs("label"))
                    .containsExactly(0);
        });
    }

    @Test
    void doesNothingWithoutModelsWhenSwitchedOffOrWithoutTheEngine() {
        runner.run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(Nereid.class));
        runner.withPropertyValues(IRIS, "nereid.embedded.enabled=false")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(Nereid.class)
                        .doesNotHaveBean(Model.class));
        runner.withPropertyValues(IRIS)
                .withClassLoader(new FilteredClassLoader("io.nereid.embedded"))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean("nereid"));
    }

    @Test
    void beansOfTheApplicationWin() {
        runner.withPropertyValues(IRIS)
                .withBean(
                        "own",
                        Nereid.class,
                        () -> Nereid.builder().model("other", Path.of(FILE)).build())
                .run(context -> {
                    assertThat(context)
                            .hasSingleBean(Nereid.class)
                            .hasBean("own")
                            .doesNotHaveBean(Model.class);
                });
        runner.withPropertyValues(IRIS)
                .withBean("iris", String.class, () -> "a flower")
                .run(context -> {
                    assertThat(context).hasSingleBean(Nereid.class).doesNotHaveBean(Model.class);
                    assertThat(context.getBean("iris")).isEqualTo("a flower");
                });
    }

    @Test
    void customizersComeAfterTheProperties() {
        runner.withPropertyValues(IRIS)
                .withBean(NereidBuilderCustomizer.class, () -> builder -> builder.model("second", Path.of(FILE)))
                .run(context -> assertThat(context.getBean(Nereid.class)
                                .model("second")
                                .predict(SETOSA)
                                .longs("label"))
                        .containsExactly(0));
    }

    /** The code of docs/SPRING-BOOT.md, which a test of the documents compares with it. */
    @Configuration(proxyBeanMethods = false)
    static class SecondModel {
        private final Path file = Path.of(FILE);

        @Bean
        NereidBuilderCustomizer secondModel() {
            return builder -> builder.model("second", file);
        }
    }

    @Test
    void theCustomizerOfTheGuideAddsItsModel() {
        runner.withPropertyValues(IRIS)
                .withUserConfiguration(SecondModel.class)
                .run(context -> assertThat(context.getBean(Nereid.class)
                                .model("second")
                                .predict(SETOSA)
                                .longs("label"))
                        .containsExactly(0));
    }

    @Test
    void wrongValuesNameTheProperty() {
        fails(
                List.of("nereid.embedded.models.iris.backend=onnxruntime"),
                "nereid.embedded.models.iris.path",
                "no file");
        fails(List.of("nereid.embedded.models.iris.path=/not/there"), "nereid.embedded.models.iris.path", "not exist");
        fails(List.of("nereid.embedded.repositories=/not/there"), "nereid.embedded.repositories[0]", "not a directory");
        fails(List.of(IRIS, "nereid.embedded.reload=0s"), "nereid.embedded.reload", "above zero");
        fails(
                List.of(IRIS, "nereid.embedded.models.iris.instances=0"),
                "nereid.embedded.models.iris.instances",
                "1 or");
        fails(
                List.of(IRIS, "nereid.embedded.models.iris.batching.delay=1ms"),
                "nereid.embedded.models.iris.batching.max-batch-size",
                "2 rows");
        fails(
                List.of(
                        IRIS,
                        "nereid.embedded.models.iris.batching.max-batch-size=4",
                        "nereid.embedded.models.iris.batching.delay=-1ms"),
                "nereid.embedded.models.iris.batching.delay",
                "zero or more");
    }

    private void fails(List<String> properties, String name, String reason) {
        runner.withPropertyValues(properties.toArray(String[]::new)).run(context -> {
            assertThat(context).hasFailed();
            assertThat(context.getStartupFailure())
                    .rootCause()
                    .isInstanceOfSatisfying(InvalidConfigurationPropertyValueException.class, e -> {
                        assertThat(e.getName()).isEqualTo(name);
                        assertThat(e.getReason()).contains(reason);
                    });
        });
    }

    @Test
    void aModelThatCannotBeLoadedEndsTheStartWithItsReason(@TempDir Path folder) throws IOException {
        Path broken = Files.writeString(folder.resolve("broken.onnx"), "not a model");
        ApplicationContextRunner both = runner.withPropertyValues(IRIS, "nereid.embedded.models.broken.path=" + broken);
        both.run(context -> {
            assertThat(context).hasFailed();
            List<FailureAnalyzer> analyzers = SpringFactoriesLoader.forDefaultResourceLocation()
                    .load(FailureAnalyzer.class, (type, name, failure) -> {});
            FailureAnalysis analysis = analyzers.stream()
                    .filter(ModelFailureAnalyzer.class::isInstance)
                    .findFirst()
                    .orElseThrow()
                    .analyze(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("model 'broken'");
            assertThat(analysis.getAction()).contains("correct the models");
        });
        both.withPropertyValues("nereid.embedded.fail-on-model-error=false").run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean("iris", Model.class).predict(SETOSA).longs("label"))
                    .containsExactly(0);
            ModelHealth health = ModelHealth.of(context.getBean(Nereid.class));
            assertThat(health.up()).isFalse();
            assertThat(health.models().get("iris")).containsValue("AVAILABLE");
            assertThat(health.models().get("broken").toString()).contains("FAILED: ");
        });
    }

    @Test
    void metersAreInTheRegistry() {
        runner.withPropertyValues(IRIS)
                .withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .run(context -> {
                    assertThat(context).hasSingleBean(NereidMetrics.class);
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    // Spring Boot's actuator binds it; here the test does.
                    context.getBean(NereidMetrics.class).bindTo(registry);
                    Object unused = context.getBean(Model.class).predict(SETOSA);
                    assertThat(registry.get("nereid.inferences")
                                    .tag("model", "iris")
                                    .functionCounter())
                            .isNotNull();
                });
        runner.withPropertyValues(IRIS).run(context -> assertThat(context).doesNotHaveBean(NereidMetrics.class));
    }

    @Test
    void predictionsAreSpansOfTheApplicationsOpenTelemetry() {
        List<String> spans = new CopyOnWriteArrayList<>();
        SpanProcessor recorder = new SpanProcessor() {
            @Override
            public void onStart(Context parent, io.opentelemetry.sdk.trace.ReadWriteSpan span) {}

            @Override
            public boolean isStartRequired() {
                return false;
            }

            @Override
            public void onEnd(ReadableSpan span) {
                spans.add(span.getName() + " " + span.getKind());
            }

            @Override
            public boolean isEndRequired() {
                return true;
            }
        };
        try (SdkTracerProvider provider =
                SdkTracerProvider.builder().addSpanProcessor(recorder).build()) {
            OpenTelemetry telemetry = new OpenTelemetry() {
                @Override
                public TracerProvider getTracerProvider() {
                    return provider;
                }

                @Override
                public Tracer getTracer(String name) {
                    return provider.get(name);
                }

                @Override
                public ContextPropagators getPropagators() {
                    return ContextPropagators.noop();
                }
            };
            runner.withPropertyValues(IRIS)
                    .withBean(OpenTelemetry.class, () -> telemetry)
                    .run(context -> {
                        Object unused = context.getBean(Model.class).predict(SETOSA);
                    });
            assertThat(spans).hasSize(1).first().asString().contains("iris").contains(SpanKind.INTERNAL.name());
        }
    }
}
