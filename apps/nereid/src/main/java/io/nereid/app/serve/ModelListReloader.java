// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Replaces the list of served models while the server runs: from the file that it was started with, or from text that
 * was posted to the REST API. Thread-safe: one thread polls the file.
 */
public final class ModelListReloader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelListReloader.class);

    private final ModelControl control;
    private volatile @Nullable ScheduledExecutorService timer;
    private @Nullable Object latest;

    ModelListReloader(ModelControl control) {
        this.control = control;
    }

    /** Replaces the list, or returns the changes that this would make. */
    CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        return control.configure(models, dryRun);
    }

    /** Polls a file at an interval; a changed list is applied. */
    void follow(Path file, Duration interval) {
        ScheduledExecutorService made = Threads.timer("model-config");
        timer = made;
        look(file, false);
        var unused = made.scheduleWithFixedDelay(
                () -> look(file, true), interval.toMillis(), interval.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void look(Path file, boolean apply) {
        Object found;
        List<ModelListEntry> models = null;
        try {
            Optional<List<ModelListEntry>> list = ModelServerConfig.readIfAny(file);
            found = list;
            models = list.orElse(null);
        } catch (ServingException e) {
            found = String.valueOf(e.getMessage());
            if (!found.equals(latest)) {
                LOG.warn("the list of models is unchanged: {}", found);
            }
        } catch (RuntimeException e) {
            LOG.error("reading '{}' failed; the list of models is unchanged", file, e);
            return;
        }
        boolean changed = !found.equals(latest);
        latest = found;
        if (apply && changed && models != null) {
            apply(file, models);
        }
    }

    private void apply(Path file, List<ModelListEntry> models) {
        control.configure(models, false).whenComplete((changes, e) -> {
            if (e != null) {
                LOG.warn(
                        "'{}' has changed but cannot be applied, the list of models is unchanged: {}",
                        file,
                        ServingException.from(cause(e)).getMessage());
                return;
            }
            LOG.info("'{}' has changed; the list has {} models now", file, models.size());
            for (ModelListChange change : changes) {
                ServingException error = change.error();
                if (error != null) {
                    LOG.warn("model '{}': {}", change.model(), error.getMessage());
                }
            }
        });
    }

    /** Unwraps the exception of a failed stage. */
    static Throwable cause(Throwable e) {
        return e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
    }

    /** Formats changes as JSON: {@code {"changes":[{"model":…,"action":…,"load":[…],"unload":[…],"error":…}]}}. */
    static String json(List<ModelListChange> changes) {
        ObjectNode body = ServerClient.JSON.createObjectNode();
        ArrayNode list = body.putArray("changes");
        for (ModelListChange change : changes) {
            ObjectNode node = list.addObject()
                    .put("model", change.model())
                    .put("action", change.action().name().toLowerCase(Locale.ROOT));
            change.load().forEach(node.putArray("load")::add);
            change.unload().forEach(node.putArray("unload")::add);
            ServingException error = change.error();
            if (error != null) {
                node.put("error", error.getMessage());
            }
        }
        return body.toString();
    }

    @Override
    public void close() {
        ScheduledExecutorService running = timer;
        if (running != null) {
            running.shutdownNow();
        }
    }
}
