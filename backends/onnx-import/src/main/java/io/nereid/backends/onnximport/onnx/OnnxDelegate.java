// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.onnx;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Delegates a converted model to the ONNX Runtime backend: writes it to a temporary file, loads that, and reports the
 * model under the names of the original backend and platform. Immutable.
 *
 * @param name the name of the backend that has converted the model
 * @param platform the platform of the original model
 * @param others the backends to find ONNX Runtime in when the context does not list any
 */
public record OnnxDelegate(String name, String platform, List<Backend> others) {
    private static final String RUNNER = "onnxruntime";

    public BackendModel run(byte[] onnx, ModelLocation source, ModelConfig config, BackendContext context) {
        Backend runner = runner(config, context);
        Path directory = null;
        try {
            directory = Files.createTempDirectory(Files.createDirectories(context.scratch()), name + "-");
            Files.write(directory.resolve("model.onnx"), onnx);
            ModelLocation converted = new ModelLocation(source.id(), source.modelDirectory(), directory);
            ModelConfig its = config.toBuilder()
                    .backend(RUNNER)
                    .platform("")
                    .modelFile("")
                    .build();
            BackendModel model = runner.load(converted, its, context);
            ModelConfig complete = model.config().toBuilder()
                    .backend(name)
                    .platform(platform)
                    .modelFile(config.modelFile())
                    .build();
            return new ForwardingModel(model, complete);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot write the converted model to " + context.scratch() + ": "
                            + e.getClass().getSimpleName(),
                    "check that the server may write there and that there is enough space",
                    e);
        } finally {
            delete(directory);
        }
    }

    private static void delete(@Nullable Path directory) {
        if (directory != null) {
            try {
                Files.deleteIfExists(directory.resolve("model.onnx"));
                Files.deleteIfExists(directory);
            } catch (IOException e) {
                System.getLogger(OnnxDelegate.class.getName())
                        .log(System.Logger.Level.WARNING, "cannot delete the converted model in " + directory, e);
            }
        }
    }

    private Backend runner(ModelConfig config, BackendContext context) {
        for (Backend backend : context.backends().isEmpty() ? others : context.backends()) {
            if (backend.name().equals(RUNNER)) {
                String unavailable = backend.unavailableReason();
                if (unavailable == null) {
                    return backend;
                }
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "model '" + config.name() + "' runs on ONNX Runtime, which is not available: " + unavailable);
            }
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "' runs on the backend '" + RUNNER + "', which this server does not have",
                "use the server's full distribution");
    }
}
