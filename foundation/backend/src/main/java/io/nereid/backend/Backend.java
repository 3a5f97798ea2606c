// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A backend: the adapter between the server and one inference library, as in Triton. The server finds implementations
 * once, at the start, through {@link java.util.ServiceLoader}: name the class in
 * {@code META-INF/services/io.nereid.backend.Backend} and give it a public constructor without parameters that does
 * not load native code. Implementations are thread-safe: models load concurrently.
 *
 * <p>A minimal backend, whose {@code MyModel} implements {@link BackendModel}:
 *
 * <pre>{@code
 * public final class MyBackend implements Backend {
 *     public String name() {
 *         return "my";
 *     }
 *
 *     public List<String> defaultFiles() {
 *         return List.of("model.my");
 *     }
 *
 *     public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
 *         return new MyModel(location.versionDirectory().resolve("model.my"), config);
 *     }
 * }
 * }</pre>
 */
public interface Backend {
    /** The unique name that {@code backend:} of a configuration refers to, such as {@code onnxruntime}. */
    String name();

    /**
     * Values of {@code platform:} that select this backend, such as {@code onnxruntime_onnx}. Metadata shows the first
     * one. By default the backend's name.
     */
    default List<String> platforms() {
        return List.of(name());
    }

    /**
     * Names of the files or directories in a version's directory by which the server recognises a model of this
     * backend when the model has no configuration.
     */
    List<String> defaultFiles();

    /**
     * Whether the content of a file is a model of this backend. The server calls this for a file that has a default
     * file's name, or at least its extension; a backend overrides it when other formats share the extension, as with
     * {@code .json}. Implementations read only the beginning of the file and must not throw.
     */
    default boolean recognises(Path file) {
        return true;
    }

    /**
     * The names of the settings that this backend has for all its models, {@code --backend-config NAME,KEY=VALUE}. The server refuses
     * others when it starts. Empty, the default, for a backend that checks them itself, and then only receives those that are given with its
     * name, or that another backend has as well.
     */
    default Optional<Set<String>> settingNames() {
        return Optional.empty();
    }

    /**
     * The reason why this backend cannot work on this machine; null, the default, when it can. Loads the native
     * library, so the first call may take long.
     */
    default @Nullable String unavailableReason() {
        return null;
    }

    /**
     * The reason why this backend's models cannot run on a GPU; null when they can. The default is that of a backend that
     * computes on processors. The server calls it for a model whose instance groups have the kind {@code KIND_GPU},
     * {@code KIND_AUTO} or none, also on a machine without a GPU: the reason is one of the backend and the libraries that
     * it was built with, not of the machine. A model of such a backend, on a server with GPUs, has groups of
     * {@code KIND_GPU} in the configuration that {@link #load} gets, each with the ordinals of its GPUs, and its instances
     * come from {@link BackendModel#newInstance(InstancePlacement)}.
     */
    default @Nullable String gpuUnavailableReason() {
        return "its library computes on processors only";
    }

    /**
     * Whether models of this backend run on GPUs alone. A model of such a backend whose instances would be on processors fails
     * with the reason, before {@link #load} is called. False by default.
     */
    default boolean needsGpu() {
        return false;
    }

    /**
     * Checks what a configuration alone shows. The server calls it where it validates configurations without loading models;
     * {@link #load} must check the same. Loads no library and reads no file. The default accepts everything.
     *
     * @param config the configuration, with groups that are placed as those that {@link #load} gets
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a wrong value, UNIMPLEMENTED for what this backend does not
     *     have
     */
    default void check(ModelConfig config) {}

    /**
     * Loads a model version. Checks the configuration against the model and fills in the settings that it leaves open.
     * May take long; called on a load thread.
     *
     * @param location the directories of the version
     * @param config the configuration as far as it is given. Where {@code maxBatchSize > 0}, the shapes of its inputs
     *     and outputs exclude the batch dimension
     * @param context the server's settings for backends
     * @return the loaded model, owned by the caller, which closes it
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an invalid model or configuration,
     *     FAILED_PRECONDITION when the backend cannot work on this machine. The backend must have freed everything
     *     before it throws
     */
    BackendModel load(ModelLocation location, ModelConfig config, BackendContext context);
}
