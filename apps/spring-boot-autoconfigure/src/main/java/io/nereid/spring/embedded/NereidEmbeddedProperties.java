// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code nereid.embedded}: what is loaded into the process. Immutable. Paths are texts, for Spring would look for
 * relative ones on the class path or in a servlet context first.
 *
 * <pre>{@code
 * nereid:
 *   embedded:
 *     reload: 10s
 *     models:
 *       iris:
 *         path: models/iris.onnx
 *         batching:
 *           max-batch-size: 64
 *           delay: 2ms
 * }</pre>
 *
 * @param enabled Whether models are loaded into the process.
 * @param repositories Folders in the layout of Triton's or TensorFlow Serving's model repositories.
 * @param models Files and folders of single models, by the name under which they are asked.
 * @param reload How often files are looked at again; changed ones are loaded. Never by default.
 * @param failOnModelError Whether the application does not start when a model cannot be loaded.
 */
@ConfigurationProperties("nereid.embedded")
public record NereidEmbeddedProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue List<String> repositories,
        @DefaultValue Map<String, ModelProperties> models,
        @Nullable Duration reload,
        @DefaultValue("true") boolean failOnModelError) {

    /**
     * One model.
     *
     * @param path The file or folder of the model.
     * @param backend The backend or platform, such as onnxruntime. By default what recognises the files.
     * @param instances How many requests may run at a time.
     * @param batching Joins requests that wait at the same time. Without it each request runs alone.
     * @param parameters Parameters of the backend, as in config.pbtxt.
     */
    public record ModelProperties(
            @Nullable String path,
            @DefaultValue("") String backend,
            @DefaultValue("1") int instances,
            @Nullable BatchingProperties batching,
            @DefaultValue Map<String, String> parameters) {}

    /**
     * The batching of a model.
     *
     * @param maxBatchSize The most rows of a batch, 2 or more.
     * @param delay How long a request may wait for others.
     */
    public record BatchingProperties(
            @Nullable Integer maxBatchSize,
            @DefaultValue("0ms") Duration delay) {}
}
