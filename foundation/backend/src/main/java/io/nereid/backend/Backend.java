// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.ModelConfig;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One execution technology. Found once through {@link java.util.ServiceLoader} by the roof; a provider needs a public
 * constructor without arguments that loads no native code. Implementations are thread-safe.
 */
public interface Backend {
    /** The name used in {@code backend:} of a configuration, such as {@code onnxruntime}. Unique. */
    String name();

    /** Platform names that mean this backend, such as {@code onnxruntime_onnx}; the first is the one shown in metadata. */
    List<String> platforms();

    /** File or directory names inside a version's directory by which a model without configuration is recognised. */
    List<String> defaultFiles();

    /**
     * Whether a file, which has a default file's name or at least its ending, is a model of this backend, as far as its
     * beginning tells. Needed where endings are common ones, such as {@code .json}. Must not throw.
     */
    default boolean recognises(Path file) {
        return true;
    }

    /** Why this backend cannot work on this machine, or null when it can. Loads natives; may take long once. */
    @Nullable String unavailable();

    /**
     * Loads a model. Checks the configuration against the model and fills in what it leaves open. May take long.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a model or configuration that cannot work,
     *     FAILED_PRECONDITION when the backend cannot work here; nothing is left behind
     */
    BackendModel load(ModelSource source, ModelConfig config, BackendContext context);
}
