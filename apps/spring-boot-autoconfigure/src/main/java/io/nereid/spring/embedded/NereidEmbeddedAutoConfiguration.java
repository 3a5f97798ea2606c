// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import io.nereid.embedded.ModelSettings;
import io.nereid.embedded.Nereid;
import io.nereid.embedded.PredictionTraces;
import io.nereid.embedded.opentelemetry.OpenTelemetryTraces;
import io.nereid.spring.embedded.NereidEmbeddedProperties.BatchingProperties;
import io.nereid.spring.embedded.NereidEmbeddedProperties.ModelProperties;
import io.opentelemetry.api.OpenTelemetry;
import java.io.FileNotFoundException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.util.ResourceUtils;

/**
 * Loads the models of the properties into the process, as a bean {@code nereid} that is closed with the application, and a bean
 * of type {@link io.nereid.embedded.Model} for each model of {@code nereid.embedded.models}, under the model's name.
 *
 * <p>It does nothing without models and repositories, or when the application has a {@link Nereid} of its own.
 */
@AutoConfiguration(
        // Of Spring Boot 3 and of Spring Boot 4.
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.opentelemetry.OpenTelemetryAutoConfiguration",
            "org.springframework.boot.opentelemetry.autoconfigure.OpenTelemetrySdkAutoConfiguration"
        })
@ConditionalOnClass(Nereid.class)
@ConditionalOnProperty(prefix = "nereid.embedded", name = "enabled", matchIfMissing = true)
@Conditional(OnEmbeddedModels.class)
@ConditionalOnMissingBean(Nereid.class)
@EnableConfigurationProperties(NereidEmbeddedProperties.class)
@Import(ModelBeans.class)
public class NereidEmbeddedAutoConfiguration {
    private static final String PREFIX = "nereid.embedded.";

    /** Loads the models, and waits until they are available. */
    @Bean
    @ConditionalOnMissingBean
    public Nereid nereid(
            NereidEmbeddedProperties properties,
            ObjectProvider<PredictionTraces> traces,
            ObjectProvider<NereidBuilderCustomizer> customizers) {
        Nereid.Builder builder = Nereid.builder().failOnModelError(properties.failOnModelError());
        for (int i = 0; i < properties.repositories().size(); i++) {
            String key = "repositories[" + i + "]";
            String text = properties.repositories().get(i);
            Path repository = file(key, text);
            if (!Files.isDirectory(repository)) {
                throw wrong(key, text, "It is not a directory that can be read" + here(repository));
            }
            builder.repository(repository);
        }
        properties.models().forEach((name, model) -> add(builder, name, model));
        Duration reload = properties.reload();
        if (reload != null) {
            if (reload.isNegative() || reload.isZero()) {
                throw wrong("reload", reload, "It has to be above zero; leave it out to load files only once");
            }
            builder.reload(reload);
        }
        traces.ifUnique(builder::traces);
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return builder.build();
    }

    private static void add(Nereid.Builder builder, String name, ModelProperties model) {
        String key = "models." + name + ".";
        String text = model.path();
        if (text == null || text.isEmpty()) {
            throw wrong(key + "path", text, "Model '" + name + "' has no file or folder");
        }
        Path path = file(key + "path", text);
        if (!Files.exists(path)) {
            throw wrong(key + "path", text, "It does not exist or cannot be read" + here(path));
        }
        if (model.instances() < 1) {
            throw wrong(key + "instances", model.instances(), "It has to be 1 or more");
        }
        ModelSettings settings = ModelSettings.DEFAULT.backend(model.backend()).instances(model.instances());
        for (Map.Entry<String, String> parameter : model.parameters().entrySet()) {
            settings = settings.parameter(parameter.getKey(), parameter.getValue());
        }
        BatchingProperties batching = model.batching();
        if (batching != null) {
            Integer rows = batching.maxBatchSize();
            if (rows == null || rows < 2) {
                throw wrong(key + "batching.max-batch-size", rows, "Batches need 2 rows or more");
            }
            if (batching.delay().isNegative()) {
                throw wrong(key + "batching.delay", batching.delay(), "It has to be zero or more");
            }
            settings = settings.batching(rows, batching.delay());
        }
        builder.model(name, path, settings);
    }

    /** A path of the file system, or what is in it of a {@code file:} or {@code classpath:} location. */
    private static Path file(String key, String text) {
        try {
            return ResourceUtils.isUrl(text) ? ResourceUtils.getFile(text).toPath() : Path.of(text);
        } catch (FileNotFoundException | InvalidPathException e) {
            throw wrong(key, text, "It is not a path of the file system: " + e.getMessage());
        }
    }

    private static String here(Path path) {
        return path.isAbsolute()
                ? ""
                : "; relative paths begin at " + Path.of("").toAbsolutePath();
    }

    private static InvalidConfigurationPropertyValueException wrong(
            String name, @Nullable Object value, String reason) {
        return new InvalidConfigurationPropertyValueException(PREFIX + name, value, reason);
    }

    /** Spans, where the application has OpenTelemetry. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(OpenTelemetry.class)
    @ConditionalOnBean(OpenTelemetry.class)
    static class Traces {
        @Bean
        @ConditionalOnMissingBean(PredictionTraces.class)
        OpenTelemetryTraces nereidTraces(OpenTelemetry openTelemetry) {
            return new OpenTelemetryTraces(openTelemetry);
        }
    }
}
