// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.text.OutputFormat;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid infer}: sends one request to a running server. */
@Command(
        name = "infer",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid infer MODEL [--input NAME=VALUE]... [OPTIONS]",
        description = {
            "Send one request to a running server and show the response.",
            "Inputs come from --input, from .npy files, or as a whole request from --json."
        },
        footer = {
            "",
            "  nereid infer simple --input INPUT0=1..16 --input INPUT1=1..16",
            "  nereid infer iris --input input=[[5.1,3.5,1.4,0.2]]",
            "  nereid infer iris --input input=@flowers.npy --output probabilities"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class InferCommand implements Callable<Integer> {
    private static final int SHOWN = 64;

    @Parameters(index = "0", paramLabel = "MODEL", description = "The model's name.")
    private String model;

    @Option(names = "--version-of-model", paramLabel = "N", description = "The version; the latest by default.")
    private @Nullable String version;

    @Option(
            names = "--input",
            paramLabel = "NAME=VALUE",
            description =
                    "A value: JSON, a comma-separated list, a range 1..16, text, or @FILE.npy. The shape is that of the"
                            + " value, or the model's when the number of elements determines it.")
    private Map<String, String> inputs = new LinkedHashMap<>();

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "A whole Open Inference request; - for standard input.")
    private @Nullable String json;

    @Option(names = "--output", paramLabel = "NAME", description = "A requested output; all by default.")
    private List<String> outputs = new ArrayList<>();

    @Option(
            names = {"-o", "--format"},
            paramLabel = "FORMAT",
            defaultValue = "table",
            description =
                    "How the response is printed: table, json or yaml (default: ${DEFAULT-VALUE}). --output is taken by"
                            + " outputs here.")
    private OutputFormat format;

    @Option(names = "--raw", description = "Show the response as the server sent it.")
    private boolean raw;

    @Mixin
    private ClientOptions server;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ServerClient client = server.client(spec);
        String path = "/v2/models/" + ServerClient.segment(model)
                + (version == null ? "" : "/versions/" + ServerClient.segment(version));
        JsonNode request = json != null ? readJson(json) : build(client.get(path));
        JsonNode answer = ProgressPrinter.during(
                "waiting for " + model, spec.commandLine().getErr(), () -> client.post(path + "/infer", request));
        PrintWriter out = spec.commandLine().getOut();
        if (raw) {
            out.println(answer);
        } else if (format.isDocument()) {
            format.print(answer, out);
        } else {
            show(answer, out);
        }
        out.flush();
        return 0;
    }

    private JsonNode readJson(String file) {
        if (!inputs.isEmpty()) {
            throw ServingException.invalidArgument("both --json and --input are given (expected one of them)");
        }
        try {
            return ServerClient.JSON.readTree(
                    file.equals("-") ? System.in.readAllBytes() : Files.readAllBytes(Path.of(file)));
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("'" + file + "' is not JSON: " + e.getOriginalMessage());
        } catch (IOException e) {
            throw ServingException.invalidArgument("'" + file + "' cannot be read: " + e.getMessage());
        }
    }

    private ObjectNode build(JsonNode metadata) {
        ObjectNode request = ServerClient.JSON.createObjectNode();
        ArrayNode list = request.putArray("inputs");
        List<String> known = new ArrayList<>();
        metadata.path("inputs").forEach(i -> known.add(i.path("name").asText()));
        for (String name : inputs.keySet()) {
            if (!known.contains(name)) {
                throw ServingException.invalidArgument(
                        "model '" + model + "' has no input '" + name + "'",
                        NameSuggestions.didYouMean(name, known, "it has " + known));
            }
        }
        for (JsonNode input : metadata.path("inputs")) {
            String value = inputs.get(input.path("name").asText());
            if (value != null) {
                list.add(new InputArgument(input).parse(value));
            }
        }
        if (list.isEmpty() && !known.isEmpty()) {
            throw ServingException.invalidArgument(
                    "no inputs given for model '" + model + "', which expects " + signature(metadata),
                    "give each as --input NAME=VALUE");
        }
        if (!outputs.isEmpty()) {
            ArrayNode requested = request.putArray("outputs");
            outputs.forEach(name -> requested.addObject().put("name", name));
        }
        return request;
    }

    private static String signature(JsonNode metadata) {
        List<String> all = new ArrayList<>();
        metadata.path("inputs")
                .forEach(i -> all.add(
                        i.path("name").asText() + " " + i.path("datatype").asText() + i.path("shape")));
        return String.join(", ", all);
    }

    private static void show(JsonNode answer, PrintWriter out) {
        out.println(answer.path("model_name").asText() + " version "
                + answer.path("model_version").asText("-"));
        for (JsonNode output : answer.path("outputs")) {
            out.println("  " + output.path("name").asText() + "  "
                    + output.path("datatype").asText() + output.path("shape"));
            StringBuilder line = new StringBuilder("    ");
            int n = 0;
            for (JsonNode element : output.path("data")) {
                if (n == SHOWN) {
                    line.append(" … ")
                            .append(output.path("data").size() - SHOWN)
                            .append(" more (--raw shows all)");
                    break;
                }
                line.append(n == 0 ? "" : " ").append(element.isTextual() ? element.toString() : element.asText());
                n++;
            }
            out.println(line);
        }
    }
}
