// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.app.text.TextTable;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.layout.ModelServerConfig;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid models}: list, load and unload the models of a running server. */
@Command(
        name = "models",
        mixinStandardHelpOptions = true,
        description = "List, load or unload the models of a running server, or replace its list of models.")
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ModelsCommand implements Runnable {
    @Mixin
    private ClientOptions server;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        list();
    }

    @Command(
            description = "Show every model, its versions and their states (the default).",
            mixinStandardHelpOptions = true)
    void list() {
        String path = "/v2/repository/index";
        if (output.format().isDocument()) {
            output.format().print(server.client(spec).post(path, null), out());
            return;
        }
        TextTable table = new TextTable("MODEL", "VERSION", "STATE", "REASON");
        for (Map<?, ?> model : server.answers(spec).send("POST", path)) {
            table.row(
                    ServerAnswers.text(model, "name", ""),
                    ServerAnswers.text(model, "version", "-"),
                    ServerAnswers.text(model, "state", "not loaded"),
                    ServerAnswers.text(model, "reason", ""));
        }
        PrintWriter out = out();
        table.print(out);
        out.flush();
    }

    @Command(
            description =
                    "Show a model: its versions with their states, inputs, outputs, configuration and statistics.",
            mixinStandardHelpOptions = true)
    void describe(
            @Parameters(paramLabel = "MODEL") String model,
            @Option(names = "--version-of-model", paramLabel = "N", description = "One version; all by default.")
                    @Nullable String version) {
        ModelDescription description = ModelDescription.read(server.client(spec), model, version);
        if (output.format().isDocument()) {
            output.format().print(description.document(), out());
        } else {
            description.print(out());
            out().flush();
        }
    }

    @Command(description = "Load or reload a model from the repository.", mixinStandardHelpOptions = true)
    void load(@Parameters(paramLabel = "MODEL") String model) {
        change(model, "load");
        done(model, "loaded");
    }

    @Command(description = "Unload every version of a model.", mixinStandardHelpOptions = true)
    void unload(@Parameters(paramLabel = "MODEL") String model) {
        change(model, "unload");
        done(model, "unloaded");
    }

    private void done(String model, String state) {
        if (output.format().isDocument()) {
            output.format()
                    .print(
                            ServerClient.JSON
                                    .createObjectNode()
                                    .put("model", model)
                                    .put("state", state),
                            out());
            return;
        }
        out().println(model + " is " + state);
        out().flush();
    }

    @Command(
            description = "Replace the list of models of a server started with --model_config_file.",
            mixinStandardHelpOptions = true)
    int reload(
            @Parameters(paramLabel = "FILE", description = "The new list, in TensorFlow Serving's format.") Path file,
            @Option(names = "--dry-run", description = "Only show what would be loaded and unloaded.") boolean dryRun) {
        ModelServerConfig.read(file);
        String text;
        try {
            text = Files.readString(file);
        } catch (IOException e) {
            throw ServingException.wrap(ErrorCode.NOT_FOUND, "cannot read '" + file + "': " + e.getMessage(), e);
        }
        JsonNode changes = ProgressPrinter.during(
                        "reloading",
                        spec.commandLine().getErr(),
                        () -> server.client(spec).postText(ServerClient.MODEL_CONFIG_PATH + "?dry_run=" + dryRun, text))
                .path("changes");
        if (output.format().isDocument()) {
            output.format().print(changes, out());
            for (JsonNode change : changes) {
                if (change.has("error")) {
                    return 1;
                }
            }
            return 0;
        }
        TextTable table = new TextTable("MODEL", dryRun ? "WOULD BE" : "IS", "LOAD", "UNLOAD", "");
        boolean failed = false;
        for (JsonNode change : changes) {
            failed |= change.has("error");
            table.row(
                    change.path("model").asText(),
                    change.path("action").asText(),
                    versions(change.path("load")),
                    versions(change.path("unload")),
                    change.path("error").asText(""));
        }
        table.print(out());
        out().flush();
        return failed ? 1 : 0;
    }

    private static String versions(JsonNode list) {
        StringBuilder text = new StringBuilder();
        list.forEach(v -> text.append(text.isEmpty() ? "" : ", ").append(v.asLong()));
        return text.isEmpty() ? "-" : text.toString();
    }

    private void change(String model, String verb) {
        ProgressPrinter.during(
                verb + "ing " + model,
                spec.commandLine().getErr(),
                () -> server.answers(spec)
                        .send("POST", "/v2/repository/models/" + ServerAnswers.segment(model) + "/" + verb));
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }
}
