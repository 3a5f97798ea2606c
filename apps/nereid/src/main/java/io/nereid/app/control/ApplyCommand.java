// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code nereid apply}: server-side apply of the resources in files. */
@Command(
        name = "apply",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Create resources from files, or update existing ones (server-side apply).",
            "A field that an earlier apply has set and that the file no longer has is removed.",
            "The field manager is nereid."
        },
        footer = {
            "",
            "  nereid apply -f iris.yaml",
            "  nereid apply -f services/ -R",
            "  cat iris.yaml | nereid apply -f -",
            "  nereid apply -f iris.yaml --context prod --dry-run=server"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ApplyCommand implements Callable<Integer> {
    @Option(
            names = {"-f", "--filename"},
            required = true,
            paramLabel = "FILE",
            description = "A file or a directory with YAML or JSON; - for standard input. May be repeated.")
    private List<String> files;

    @Option(
            names = {"-R", "--recursive"},
            description = "Include subdirectories.")
    private boolean recursive;

    @Option(
            names = "--dry-run",
            arity = "0..1",
            paramLabel = "WHERE",
            defaultValue = "none",
            fallbackValue = "server",
            description = "server: let the server validate the resources without storing them; none: store them"
                    + " (default: none; server without a value).")
    private String dryRun;

    @Option(
            names = "--force-conflicts",
            description = "Take over fields that other field managers have set to other values, instead of failing.")
    private boolean force;

    @Mixin
    private ControlOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        if (!List.of("server", "none").contains(dryRun)) {
            throw ServingException.invalidArgument(
                    "--dry-run=" + dryRun + " is not known (expected server or none)",
                    dryRun.equals("client") ? "the server has the rules: --dry-run=server" : null);
        }
        List<ObjectNode> resources = ControlOptions.resources(files, recursive);
        if (resources.isEmpty()) {
            throw ServingException.invalidArgument("no objects passed to apply", "the files contain no documents");
        }
        ControlClient client = options.client(spec);
        List<String> failures = new ArrayList<>();
        PrintWriter out = spec.commandLine().getOut();
        for (ObjectNode resource : ordered(resources)) {
            try {
                out.println(apply(client, resource));
            } catch (ServingException e) {
                if (e.code() == ErrorCode.UNAVAILABLE) {
                    throw e;
                }
                String name = resource.path("metadata").path("name").asText();
                boolean said = name.isEmpty() || e.describe().contains("\"" + name + "\"");
                failures.add((said ? "" : options.named(resource).shown() + ": ") + e.describe());
            }
            out.flush();
        }
        for (String failure : failures) {
            spec.commandLine().getErr().println("nereid: " + failure);
        }
        return failures.isEmpty() ? 0 : 1;
    }

    /** Namespaces come first, so that a folder may have them in any file. */
    private static List<ObjectNode> ordered(List<ObjectNode> resources) {
        List<ObjectNode> all = new ArrayList<>(resources);
        all.sort(Comparator.comparing(one -> !one.path("kind").asText().equals("Namespace")));
        return all;
    }

    private String apply(ControlClient client, ObjectNode resource) {
        Named named = options.named(resource);
        resource.remove("status");
        ObjectNode metadata = resource.withObject("/metadata");
        metadata.remove(List.of("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"));
        JsonNode before = client.find(named.path());
        String query = "?fieldManager=nereid&fieldValidation=Strict&force=" + force
                + (dryRun.equals("server") ? "&dryRun=All" : "");
        ControlClient.Reply reply =
                client.send("PATCH", named.path() + query, "application/apply-patch+yaml", resource);
        String what = reply.status() == 201
                ? "created"
                : before != null && same(before, reply.body()) ? "unchanged" : "configured";
        return named.shown() + " " + what + (dryRun.equals("server") ? " (server dry run)" : "");
    }

    private static boolean same(@Nullable JsonNode before, JsonNode after) {
        return before != null && withoutVersion(before).equals(withoutVersion(after));
    }

    private static JsonNode withoutVersion(JsonNode resource) {
        ObjectNode copy = resource.deepCopy();
        copy.remove("status");
        copy.withObject("/metadata").remove(List.of("resourceVersion", "managedFields"));
        return copy;
    }
}
