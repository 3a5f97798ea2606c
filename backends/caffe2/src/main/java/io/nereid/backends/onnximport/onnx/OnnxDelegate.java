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
import io.nereid.spi.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Has a converted model run by ONNX Runtime, under its own names of backend and platform. Immutable.
 *
 * @param name the backend that has converted it
 * @param platform its platform
 * @param others backends to hand over to where the context has none
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
                    "cannot write the converted model into " + context.scratch() + ": "
                            + e.getClass().getSimpleName(),
                    "check that the server may write there and that there is room",
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
                        .log(System.Logger.Level.WARNING, "a converted model is left in " + directory, e);
            }
        }
    }

    private Backend runner(ModelConfig config, BackendContext context) {
        for (Backend backend : context.backends().isEmpty() ? others : context.backends()) {
            if (backend.name().equals(RUNNER)) {
                String unavailable = backend.unavailable();
                if (unavailable == null) {
                    return backend;
                }
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "model '" + config.name() + "' runs on ONNX Runtime, which cannot work here: " + unavailable);
            }
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + config.name() + "' runs on the backend '" + RUNNER + "', and this server has none",
                "use the server's full distribution");
    }
}
