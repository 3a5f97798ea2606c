// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.sklearn.boosting.BoosterFile;
import io.nereid.backends.sklearn.boosting.BoosterLoader;
import io.nereid.backends.sklearn.boosting.LoadedBooster;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Loads the native models inside a model file with the server's other backends, and owns them. They read files, so a
 * native model lies in the scratch directory while it is loaded. Confined to the thread that loads the model; closed
 * once, by any thread.
 */
final class DelegatedBoosters implements BoosterLoader, AutoCloseable {
    private final ServableId id;
    private final BackendContext context;
    private final List<LoadedBooster> loaded = new ArrayList<>();

    DelegatedBoosters(ServableId id, BackendContext context) {
        this.id = id;
        this.context = context;
    }

    @Override
    public LoadedBooster load(BoosterFile file) {
        Backend backend = backend(file);
        Path directory = null;
        try {
            directory = Files.createTempDirectory(Files.createDirectories(context.scratch()), "booster-");
            Files.write(directory.resolve(file.fileName()), file.content());
            LoadedBooster booster = new LoadedBooster(
                    backend.load(
                            new ModelLocation(id, directory, directory),
                            LoadedBooster.configuration(id.model(), file),
                            new BackendContext(context.cores(), context.scratch(), Map.of())),
                    file);
            loaded.add(booster);
            return booster;
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INTERNAL,
                    "cannot write the native model of a " + file.origin() + " into " + context.scratch(),
                    "make that directory writable and check that the disk is not full",
                    e);
        } catch (ServingException e) {
            // The temporary file is of no interest to the reader of the message.
            String why = String.valueOf(e.getMessage())
                    .replace("model file '" + directory + "/" + file.fileName() + "' cannot be loaded: ", "");
            throw ServingException.of(
                    e.code(), "the native model of a " + file.origin() + " is not supported: " + why, e.remedy());
        } finally {
            delete(directory, file.fileName());
        }
    }

    private Backend backend(BoosterFile file) {
        for (Backend backend : context.backends()) {
            if (backend.name().equals(file.backend())) {
                String unavailable = backend.unavailableReason();
                if (unavailable == null) {
                    return backend;
                }
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "it contains a " + file.origin() + ", and the backend '" + file.backend()
                                + "' cannot work here: " + unavailable);
            }
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "it contains a " + file.origin() + ", which needs the backend '" + file.backend()
                        + "', which this server does not have",
                "see 'nereid plugins list'");
    }

    private static void delete(@Nullable Path directory, String file) {
        if (directory != null) {
            try {
                Files.deleteIfExists(directory.resolve(file));
                Files.deleteIfExists(directory);
            } catch (IOException e) {
                // The directory is inside this process's scratch directory, which is deleted when the process ends.
            }
        }
    }

    @Override
    public void close() {
        loaded.forEach(LoadedBooster::close);
        loaded.clear();
    }
}
