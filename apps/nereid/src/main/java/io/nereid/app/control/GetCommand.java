// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.app.text.ResourceTablePrinter;
import io.nereid.app.text.SortedTree;
import io.nereid.app.text.YamlWriter;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid get}: shows resources. */
@Command(
        name = "get",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Show resources: one by name, or all of a type; several types with commas.",
        footer = {
            "",
            "  nereid get isvc",
            "  nereid get isvc iris -o yaml",
            "  nereid get isvc,ig -A",
            "  nereid get isvc -w"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class GetCommand implements Callable<Integer> {
    @Parameters(arity = "0..*", paramLabel = "TYPE [NAME...] | TYPE/NAME", description = "The resources to show.")
    private List<String> words = new ArrayList<>();

    @Mixin
    private FileOptions from;

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FORM",
            description = "table, json, yaml, wide or name (default: table).")
    private @Nullable String output;

    @Option(
            names = {"-A", "--all-namespaces"},
            description = "The resources of all namespaces.")
    private boolean everywhere;

    @Option(
            names = {"-l", "--selector"},
            paramLabel = "LABELS",
            description = "Only resources with these labels, such as team=a.")
    private @Nullable String selector;

    @Option(
            names = {"-w", "--watch"},
            description = "Watch: print every change.")
    private boolean watch;

    @Mixin
    private ControlOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        if (output != null && !List.of("table", "json", "yaml", "wide", "name").contains(output)) {
            throw ServingException.invalidArgument(
                    "-o " + output + " is not known (expected table, json, yaml, wide or name)");
        }
        ControlClient client = options.client(spec);
        List<Named> named = named();
        if (!named.isEmpty()) {
            if (watch) {
                if (named.size() > 1) {
                    throw ServingException.invalidArgument("-w watches one resource, or all of one type");
                }
                Named one = named.get(0);
                client.get(one.path());
                return watch(client, one.kind(), one.namespace(), one.name());
            }
            return all(client, named);
        }
        if (words.isEmpty()) {
            throw ServingException.invalidArgument(
                    "you must specify the type of resource to get", "for example: nereid get isvc");
        }
        List<ResourceKind> kinds = new ArrayList<>();
        for (String word : words.get(0).split(",", -1)) {
            kinds.add(ControlOptions.kind(word));
        }
        if (watch) {
            if (kinds.size() > 1) {
                throw ServingException.invalidArgument("-w watches one type at a time");
            }
            return watch(client, kinds.get(0), everywhere ? "" : options.namespace(), null);
        }
        return lists(client, kinds);
    }

    private List<Named> named() {
        if (!words.isEmpty() && !words.get(0).contains("/") && words.size() == 1) {
            return options.named(List.of(), from);
        }
        return options.named(words, from);
    }

    private int all(ControlClient client, List<Named> named) {
        if (structured()) {
            List<JsonNode> items = new ArrayList<>();
            named.forEach(one -> items.add(client.get(one.path())));
            show(items, items.size() == 1);
            return 0;
        }
        ResourceTablePrinter table = new ResourceTablePrinter("wide".equals(output), false);
        ResourceKind before = null;
        for (Named one : named) {
            if ("name".equals(output)) {
                client.get(one.path());
                out().println(one.shown());
                out().flush();
                continue;
            }
            if (before != null && before != one.kind()) {
                table = new ResourceTablePrinter("wide".equals(output), false);
                out().println();
            }
            before = one.kind();
            table.print(client.table(one.path()), "", out());
        }
        out().flush();
        return 0;
    }

    private String query() {
        return selector == null ? "" : "?labelSelector=" + ServerClient.segment(selector);
    }

    private int lists(ControlClient client, List<ResourceKind> kinds) {
        List<JsonNode> items = new ArrayList<>();
        boolean any = false;
        for (ResourceKind kind : kinds) {
            String path = ControlClient.path(kind, everywhere ? "" : options.namespace(), null) + query();
            if (structured() || "name".equals(output)) {
                for (JsonNode item : client.get(path).path("items")) {
                    items.add(typed(item, kind));
                }
                continue;
            }
            JsonNode table = client.table(path);
            if (!table.path("rows").isEmpty()) {
                if (any) {
                    out().println();
                }
                any = true;
                new ResourceTablePrinter("wide".equals(output), everywhere && kind.namespaced())
                        .print(table, kinds.size() > 1 ? kind.singular() + "/" : "", out());
            }
        }
        if (structured()) {
            show(items, false);
        } else if ("name".equals(output)) {
            for (JsonNode item : items) {
                out().println(options.named((ObjectNode) withoutNamespace(item)).shown());
            }
        } else if (!any) {
            spec.commandLine()
                    .getErr()
                    .println(
                            everywhere || kinds.stream().noneMatch(ResourceKind::namespaced)
                                    ? "No resources found"
                                    : "No resources found in " + options.namespace() + " namespace.");
        }
        out().flush();
        return 0;
    }

    private static JsonNode withoutNamespace(JsonNode item) {
        ObjectNode copy = item.deepCopy();
        copy.withObject("/metadata").remove("namespace");
        return copy;
    }

    private boolean structured() {
        return "json".equals(output) || "yaml".equals(output);
    }

    private void show(List<JsonNode> items, boolean single) {
        items.forEach(item -> {
            if (item.path("metadata") instanceof ObjectNode metadata) {
                metadata.remove("managedFields");
            }
        });
        JsonNode tree;
        if (single) {
            tree = SortedTree.of(items.get(0));
        } else {
            ObjectNode list = ControlClient.JSON.createObjectNode();
            list.put("apiVersion", "v1").put("kind", "List");
            ArrayNode array = list.putArray("items");
            items.forEach(item -> array.add(SortedTree.of(item)));
            tree = list;
        }
        out().print("yaml".equals(output) ? YamlWriter.of(tree) : tree.toPrettyString() + "\n");
        out().flush();
    }

    /** Shows what there is, and then each change, until the server does not respond any more. */
    private int watch(ControlClient client, ResourceKind kind, String namespace, @Nullable String name) {
        ResourceTablePrinter table = new ResourceTablePrinter("wide".equals(output), everywhere && kind.namespaced());
        boolean tables = !structured() && !"name".equals(output);
        String path = ControlClient.path(kind, namespace, null)
                + (selector == null ? "?" : query() + "&")
                + (name == null ? "" : "fieldSelector=metadata.name%3D" + ServerClient.segment(name) + "&");
        String version = "";
        while (true) {
            if (version.isEmpty()) {
                JsonNode now = tables ? client.table(path) : client.get(path);
                version = now.path("metadata").path("resourceVersion").asText("0");
                if (tables && !now.path("rows").isEmpty()) {
                    table.print(now, "", out());
                }
                now.path("items").forEach(item -> changed(typed(item, kind)));
            }
            String[] last = {version};
            try {
                client.watch(path + "watch=true&resourceVersion=" + version, tables, event -> {
                    JsonNode object = event.path("object");
                    if (event.path("type").asText().equals("ERROR")) {
                        if (object.path("code").asInt() == 410) {
                            last[0] = "";
                            return false;
                        }
                        throw ServingException.invalidArgument(
                                object.path("message").asText());
                    }
                    JsonNode about = tables ? object.at("/rows/0/object") : object;
                    last[0] = about.path("metadata").path("resourceVersion").asText(last[0]);
                    if (tables) {
                        table.print(object, "", out());
                    } else {
                        changed(object);
                    }
                    return true;
                });
            } catch (ServingException e) {
                if (e.code() != ErrorCode.OUT_OF_RANGE) {
                    throw e;
                }
                last[0] = "";
            }
            version = last[0];
        }
    }

    private void changed(JsonNode object) {
        if (structured()) {
            if ("yaml".equals(output)) {
                out().println("---");
            }
            show(List.of(object), true);
        } else {
            out().println(options.named((ObjectNode) withoutNamespace(object)).shown());
            out().flush();
        }
    }

    /** The items of a list have no type of their own. */
    private static JsonNode typed(JsonNode item, ResourceKind kind) {
        if (!item.has("kind")) {
            ((ObjectNode) item).put("apiVersion", kind.apiVersion()).put("kind", kind.kind());
        }
        return item;
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }
}
