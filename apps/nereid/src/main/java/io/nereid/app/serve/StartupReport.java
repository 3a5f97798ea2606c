// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.console.ConsoleCodec;
import io.nereid.app.text.TextTable;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.engine.Engine;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.DataType;
import io.nereid.transport.api.HttpReply;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** The report that {@code serve} prints once every model is available or has failed. Confined to one thread. */
final class StartupReport {
    private static final int SAMPLE_ELEMENTS = 64;
    private static final int SHOWN = 200;
    private static final int NAMED = 10;
    /** The reason of a listed model whose directory has no version yet. */
    private static final String NO_VERSIONS = "No versions of servable ";

    private final Engine engine;
    private final PrintWriter out;
    private final boolean all;
    private boolean shown;

    /** @param all whether models with a slash in their names are reported, which are those of services otherwise */
    StartupReport(Engine engine, PrintWriter out, boolean all) {
        this.engine = engine;
        this.out = out;
        this.all = all;
    }

    /** Waits until every model is available or has failed, and prints what is loading if that takes a second. */
    void await(CompletableFuture<Void> loading) throws ExecutionException, InterruptedException {
        while (true) {
            try {
                loading.get(1, TimeUnit.SECONDS);
                return;
            } catch (TimeoutException e) {
                progress();
            }
        }
    }

    private void progress() {
        if (shown) {
            return;
        }
        shown = true;
        List<String> busy = models().stream()
                .flatMap(m -> m.versions().stream())
                .filter(v -> v.phase().ordinal() < Phase.AVAILABLE.ordinal())
                .map(v -> v.id() + " (" + v.phase().name().toLowerCase(java.util.Locale.ROOT) + ")")
                .toList();
        String first = String.join(", ", busy.subList(0, Math.min(busy.size(), NAMED)));
        out.println("  loading: " + (busy.isEmpty() ? "reading the repository" : first)
                + (busy.size() > NAMED ? " and " + (busy.size() - NAMED) + " more" : ""));
        out.flush();
    }

    /**
     * Waits until every model serves a version, as TensorFlow Serving does before it opens its ports. Blocks.
     *
     * @param polled whether the versions of models without one are looked for again
     * @throws ServingException UNAVAILABLE with the failed versions and their reasons, in TensorFlow Serving's words
     */
    void awaitAll(boolean polled) throws InterruptedException {
        CountDownLatch never = new CountDownLatch(1);
        boolean announced = false;
        while (true) {
            List<String> failed = new ArrayList<>();
            List<String> without = new ArrayList<>();
            for (ModelStatus model : models()) {
                boolean serves = false;
                for (ServableState v : model.versions()) {
                    serves |= v.phase() == Phase.AVAILABLE;
                    String reason = v.reason() == null ? "unknown" : v.reason();
                    if (v.phase() == Phase.FAILED && !(polled && reason.contains(NO_VERSIONS))) {
                        failed.add("{{name: " + v.id().model() + " version: " + v.id().version() + "} due to error: "
                                + reason + "}");
                    }
                }
                if (!serves) {
                    without.add(model.model());
                }
            }
            if (!failed.isEmpty()) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "Failed to start server. Error: " + failed.size() + " servable(s) did not become available: "
                                + String.join(", ", failed),
                        "correct or remove what does not load; --ports-after-models=false serves the other models");
            }
            if (without.isEmpty()) {
                return;
            }
            if (!announced) {
                announced = true;
                out.println("  waiting for a first version of " + String.join(", ", without));
                out.flush();
            }
            boolean unused = never.await(100, TimeUnit.MILLISECONDS);
        }
    }

    /**
     * Refuses to serve nothing where only files were given: a file that no backend reads is a mistake in the command, while a
     * directory may get its models later.
     *
     * @throws ServingException FAILED_PRECONDITION when all of the roots are files, and no version of a model serves
     */
    void checkFiles(List<Path> roots) {
        List<ModelStatus> models = models();
        boolean serves =
                models.stream().anyMatch(m -> m.versions().stream().anyMatch(v -> v.phase() == Phase.AVAILABLE));
        if (serves || roots.isEmpty() || !roots.stream().allMatch(Files::isRegularFile)) {
            return;
        }
        List<String> reasons = new ArrayList<>();
        for (ModelStatus model : models) {
            for (ServableState v : model.versions()) {
                reasons.add(v.reason() == null ? model.model() + " is not loaded" : v.reason());
            }
        }
        String files = String.join("', '", roots.stream().map(Path::toString).toList());
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                reasons.isEmpty()
                        ? "no backend of this server reads '" + files + "'"
                        : "'" + files + "' cannot be served: " + String.join("; ", reasons),
                "nereid convert " + roots.get(0) + " says what the file is, and how it can be served");
    }

    void print(String host, List<InetSocketAddress> addresses, boolean encrypted, boolean console) {
        out.println();
        List<ModelStatus> models = models();
        if (models.isEmpty()) {
            out.println("  no models (a model is a directory with numbered version directories, or an .onnx file)");
        } else {
            table(models.subList(0, Math.min(models.size(), SHOWN))).print(out);
            if (models.size() > SHOWN) {
                out.println("  and " + (models.size() - SHOWN) + " more (nereid models lists all)");
            }
        }
        out.println();
        String base = (encrypted ? "https://" : "http://") + show(host, addresses.get(0));
        out.println("  listening on " + base + "  (REST, HTTP/2 and gRPC; metrics at /metrics)");
        for (InetSocketAddress other : addresses.subList(1, addresses.size())) {
            out.println("               " + show(host, other));
        }
        if (console) {
            out.println("  console at   " + base + ConsoleCodec.PATH);
        }
        String curl = curl(models, base);
        if (curl != null) {
            out.println();
            out.println("  try:");
            out.println("  " + curl);
        }
        out.println();
        out.flush();
    }

    /** Prints who may change something, in one line, and the option that opens what is closed. */
    void printAccess(boolean open, boolean credentials, boolean local) {
        String text;
        if (open && !local) {
            text = "open to everyone who reaches the port (--open-management)";
        } else if (credentials) {
            text = "for API keys and tokens with the permission";
        } else if (local) {
            text = "open to clients on this machine";
        } else {
            text = "closed, as other machines can reach the port; --api-keys FILE opens it to those with a key,"
                    + " --open-management to everyone";
        }
        out.println("  loading models and changing settings: " + text);
        out.println();
        out.flush();
    }

    /**
     * Returns the models outside of services. Models of services are reported in the service's status; only their names
     * have a slash.
     */
    private List<ModelStatus> models() {
        return engine.index().stream()
                .filter(m -> all || m.model().indexOf('/') < 0)
                .toList();
    }

    /** Returns the number of models with a version that failed to load. */
    long failures() {
        return models().stream()
                .filter(m -> m.versions().stream().anyMatch(v -> v.phase() == Phase.FAILED))
                .count();
    }

    static TextTable table(List<ModelStatus> models) {
        TextTable table = new TextTable("MODEL", "VERSION", "STATE", "BACKEND", "LOAD", "MEMORY", "");
        for (ModelStatus model : models) {
            if (model.versions().isEmpty()) {
                table.row(model.model(), "-", "not loaded", "-", "-", "-", "");
            }
            for (ServableState v : model.versions()) {
                table.row(
                        model.model(),
                        Long.toString(v.id().version()),
                        v.phase().toString(),
                        v.backend().isEmpty() ? "-" : v.backend(),
                        v.loadNanos() == 0 ? "-" : Units.formatNanos(v.loadNanos()),
                        v.memoryBytes() <= 0 ? "-" : Units.formatBytes(v.memoryBytes()),
                        v.reason() == null ? "" : v.reason().lines().findFirst().orElse(""));
            }
        }
        return table;
    }

    private static String show(String host, InetSocketAddress address) {
        return (host.equals("0.0.0.0") || host.equals("::") ? "localhost" : host) + ":" + address.getPort();
    }

    /** Returns a sample request for the first suitable model: all elements and variable dimensions are 1. */
    private @Nullable String curl(List<ModelStatus> models, String base) {
        List<String> names = new ArrayList<>(models.stream()
                .filter(m -> m.versions().stream().anyMatch(v -> v.phase() == Phase.AVAILABLE))
                .map(ModelStatus::model)
                .toList());
        // Prefer the model of the documentation's examples.
        names.sort(java.util.Comparator.comparing((String n) -> !n.equals("simple")));
        for (String name : names) {
            ModelConfig config = engine.config(ModelRef.latest(name));
            if (config.decoupled() || config.sequence() != null) {
                // This model does not accept a plain request.
                continue;
            }
            ModelMetadata metadata = engine.metadata(ModelRef.latest(name));
            String body = body(metadata);
            if (body != null) {
                return "curl -s " + base + "/v2/models/" + name + "/infer -d '" + body + "'";
            }
        }
        return null;
    }

    private static @Nullable String body(ModelMetadata metadata) {
        StringBuilder body = new StringBuilder("{\"inputs\":[");
        for (TensorSpec input : metadata.inputs()) {
            if (input.optional()) {
                continue;
            }
            long n = 1;
            StringBuilder shape = new StringBuilder();
            for (int i = 0; i < input.shape().rank(); i++) {
                long d = Math.max(1, input.shape().dim(i));
                n *= d;
                shape.append(i == 0 ? "" : ",").append(d);
            }
            if (n > SAMPLE_ELEMENTS) {
                return null;
            }
            String one =
                    input.dataType() == DataType.BYTES ? "\"text\"" : input.dataType() == DataType.BOOL ? "true" : "1";
            body.append(body.charAt(body.length() - 1) == '[' ? "" : ",")
                    .append("{\"name\":")
                    .append(HttpReply.quote(input.name()))
                    .append(",\"shape\":[")
                    .append(shape)
                    .append("],\"datatype\":\"")
                    .append(input.dataType())
                    .append("\",\"data\":[")
                    .append((one + ",").repeat((int) n - 1))
                    .append(one)
                    .append("]}");
        }
        return body.append("]}").toString();
    }
}
