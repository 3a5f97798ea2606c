// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.app.text.TextTable;
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
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The report that {@code serve} prints once every model is available or has failed. Confined to one thread. */
final class StartupReport {
    private static final int SAMPLE_ELEMENTS = 64;
    private static final int SHOWN = 200;

    private final Engine engine;
    private final PrintWriter out;
    private final boolean all;
    private int seconds;

    /** @param all whether models with a slash in their names are reported, which are those of services otherwise */
    StartupReport(Engine engine, PrintWriter out, boolean all) {
        this.engine = engine;
        this.out = out;
        this.all = all;
    }

    /** Prints the models that are loading. Called once a second. */
    void progress() {
        seconds++;
        String busy = models().stream()
                .flatMap(m -> m.versions().stream())
                .filter(v -> v.phase().ordinal() < Phase.AVAILABLE.ordinal())
                .map(v -> v.id() + " (" + v.phase().name().toLowerCase(java.util.Locale.ROOT) + ")")
                .collect(Collectors.joining(", "));
        out.println("  " + seconds + " s: " + (busy.isEmpty() ? "reading the repository" : busy));
        out.flush();
    }

    void print(String host, List<InetSocketAddress> addresses, boolean encrypted) {
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
