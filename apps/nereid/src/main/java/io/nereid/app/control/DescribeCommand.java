// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.SortedTree;
import io.nereid.app.text.TextTable;
import io.nereid.app.text.YamlWriter;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid describe}: shows a resource in detail, with its events. */
@Command(
        name = "describe",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Show a resource in detail: specification, status and events.",
        footer = {"", "  nereid describe isvc iris"})
@SuppressWarnings("NullAway.Init") // set by picocli
public final class DescribeCommand implements Callable<Integer> {
    private static final String LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

    @Parameters(arity = "0..*", paramLabel = "TYPE [NAME...] | TYPE/NAME", description = "The resources to describe.")
    private List<String> words = new ArrayList<>();

    @Mixin
    private FileOptions from;

    @Mixin
    private ControlOptions options;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ControlClient client = options.client(spec);
        List<Named> named = new ArrayList<>(options.named(words, from));
        if (named.isEmpty() && words.size() == 1) {
            var kind = ControlOptions.kind(words.get(0));
            for (JsonNode item : client.get(ControlClient.path(kind, options.namespace(), null))
                    .path("items")) {
                named.add(options.named(kind, item.path("metadata").path("name").asText()));
            }
        }
        if (named.isEmpty()) {
            throw ServingException.invalidArgument("no resource is given", "for example: nereid describe isvc iris");
        }
        PrintWriter out = spec.commandLine().getOut();
        if (output.format().isDocument()) {
            ArrayNode all = ControlClient.JSON.createArrayNode();
            named.forEach(one -> all.add(document(client, one)));
            output.format().print(all.size() == 1 ? all.path(0) : all, out);
            return 0;
        }
        boolean first = true;
        for (Named one : named) {
            if (!first) {
                out.println();
            }
            first = false;
            describe(client, one, (ObjectNode) client.get(one.path()), out);
            out.flush();
        }
        return 0;
    }

    private static ObjectNode document(ControlClient client, Named named) {
        ObjectNode resource = (ObjectNode) client.get(named.path());
        if (resource.has("data")) {
            resource.set("data", secretless(named, "data", resource.path("data")));
        }
        if (named.kind() == ResourceKinds.SECRET
                && resource.path("metadata").path("annotations") instanceof ObjectNode annotations) {
            annotations.remove(LAST_APPLIED); // it has the data, too
        }
        ObjectNode document = ControlClient.JSON.createObjectNode();
        document.set("resource", resource);
        ArrayNode list = document.putArray("events");
        found(client, named, resource.path("metadata").path("uid").asText()).forEach(list::add);
        return document;
    }

    private static void describe(ControlClient client, Named named, ObjectNode resource, PrintWriter out) {
        JsonNode metadata = resource.path("metadata");
        line(out, "Name", named.name());
        if (!named.namespace().isEmpty()) {
            line(out, "Namespace", named.namespace());
        }
        line(out, "Kind", named.kind().kind() + " (" + named.kind().apiVersion() + ")");
        map(out, "Labels", SortedTree.of(metadata.path("labels")));
        map(out, "Annotations", SortedTree.of(metadata.path("annotations")));
        line(out, "Created", metadata.path("creationTimestamp").asText("-"));
        if (metadata.has("deletionTimestamp")) {
            line(
                    out,
                    "Being deleted",
                    "since " + metadata.path("deletionTimestamp").asText());
        }
        JsonNode status = resource.path("status");
        if (metadata.has("generation")) {
            JsonNode observed = status.get("observedGeneration");
            line(
                    out,
                    "Generation",
                    metadata.path("generation").asText()
                            + (observed == null ? "" : ", of which " + observed.asText() + " is reconciled"));
        }
        for (Map.Entry<String, JsonNode> part : SortedTree.of(resource).properties()) {
            if (List.of("apiVersion", "kind", "metadata", "status").contains(part.getKey())) {
                continue;
            }
            block(out, part.getKey(), secretless(named, part.getKey(), part.getValue()));
        }
        if (status instanceof ObjectNode object && !object.isEmpty()) {
            ObjectNode rest = object.deepCopy();
            rest.remove(List.of("conditions", "observedGeneration"));
            if (!rest.isEmpty()) {
                block(out, "status", SortedTree.of(rest));
            }
            revisions(out, object.path("components"));
            conditions(out, object.path("conditions"));
        }
        events(client, named, metadata.path("uid").asText(), out);
    }

    private static JsonNode secretless(Named named, String field, JsonNode value) {
        if (named.kind() != ResourceKinds.SECRET || !field.equals("data")) {
            return value;
        }
        ObjectNode sizes = ControlClient.JSON.createObjectNode();
        value.properties()
                .forEach(e -> sizes.put(e.getKey(), e.getValue().asText().length() * 3 / 4 + " bytes or fewer"));
        return sizes;
    }

    private static void line(PrintWriter out, String name, String value) {
        out.println(name + ":" + " ".repeat(Math.max(1, 15 - name.length())) + value);
    }

    private static void map(PrintWriter out, String name, JsonNode map) {
        if (map.isEmpty()) {
            line(out, name, "-");
        }
        String label = name;
        for (Map.Entry<String, JsonNode> entry : map.properties()) {
            if (entry.getKey().equals(LAST_APPLIED)) {
                continue;
            }
            String text = entry.getKey() + "=" + entry.getValue().asText();
            if (label.isEmpty()) {
                out.println(" ".repeat(16) + text);
            } else {
                line(out, label, text);
            }
            label = "";
        }
    }

    private static void block(PrintWriter out, String name, JsonNode value) {
        String title = name.substring(0, 1).toUpperCase(java.util.Locale.ROOT) + name.substring(1);
        if (value.isValueNode()) {
            line(out, title, value.asText());
            return;
        }
        out.println(title + ":");
        YamlWriter.of(value).lines().forEach(l -> out.println("  " + l));
    }

    /** Which share of the requests each revision gets; nothing for services without revisions. */
    private static void revisions(PrintWriter out, JsonNode components) {
        TextTable table = new TextTable("COMPONENT", "REVISION", "TRAFFIC", "TAG", "STATE");
        boolean any = false;
        for (Map.Entry<String, JsonNode> component : SortedTree.of(components).properties()) {
            String newest = component.getValue().path("latestCreatedRevision").asText("");
            String ready = component.getValue().path("latestReadyRevision").asText("");
            Set<String> named = new LinkedHashSet<>();
            for (JsonNode target : component.getValue().path("traffic")) {
                String revision = target.path("revisionName")
                        .asText(target.path("latestRevision").asBoolean() ? ready : "");
                named.add(revision);
                any = true;
                table.row(
                        component.getKey(),
                        revision,
                        target.path("percent").asInt(0) + "%",
                        target.path("tag").asText(""),
                        state(revision, newest, ready));
            }
            for (String revision : new LinkedHashSet<>(List.of(ready, newest))) {
                if (!revision.isEmpty() && named.add(revision)) {
                    any = true;
                    table.row(component.getKey(), revision, "0%", "", state(revision, newest, ready));
                }
            }
        }
        if (any) {
            out.println("Revisions:");
            table.print(out);
        }
    }

    private static String state(String revision, String newest, String ready) {
        return revision.equals(ready)
                ? revision.equals(newest) ? "newest, ready" : "newest that is ready"
                : revision.equals(newest) ? "newest, not ready" : "";
    }

    private static void conditions(PrintWriter out, JsonNode conditions) {
        if (conditions.isEmpty()) {
            return;
        }
        out.println("Conditions:");
        TextTable table = new TextTable("TYPE", "STATUS", "REASON", "MESSAGE");
        for (JsonNode condition : conditions) {
            table.row(
                    condition.path("type").asText(),
                    condition.path("status").asText(),
                    condition.path("reason").asText(""),
                    condition.path("message").asText(""));
        }
        table.print(out);
    }

    /** The events of a resource, the oldest first. */
    private static List<JsonNode> found(ControlClient client, Named named, String uid) {
        if (named.kind() == ResourceKinds.EVENT) {
            return List.of();
        }
        String path = ControlClient.path(ResourceKinds.EVENT, named.namespace(), null)
                + "?fieldSelector=involvedObject.name%3D"
                + ServerClient.segment(named.name()) + ",involvedObject.kind%3D"
                + named.kind().kind();
        List<JsonNode> events = new ArrayList<>();
        for (JsonNode event : client.get(path).path("items")) {
            String about = event.path("involvedObject").path("uid").asText("");
            if (about.isEmpty() || about.equals(uid)) {
                events.add(event);
            }
        }
        events.sort(Comparator.comparing(DescribeCommand::seen));
        return events;
    }

    private static void events(ControlClient client, Named named, String uid, PrintWriter out) {
        if (named.kind() == ResourceKinds.EVENT) {
            return;
        }
        List<JsonNode> events = found(client, named, uid);
        if (events.isEmpty()) {
            out.println("Events:         none");
            return;
        }
        out.println("Events:");
        TextTable table = new TextTable("TYPE", "REASON", "LAST SEEN", "COUNT", "MESSAGE");
        for (JsonNode event : events) {
            table.row(
                    event.path("type").asText(),
                    event.path("reason").asText(),
                    seen(event).isEmpty() ? "-" : seen(event),
                    Integer.toString(event.path("count")
                            .asInt(event.path("series").path("count").asInt(1))),
                    event.path("message").asText());
        }
        table.print(out);
    }

    /** When an event was last seen, whichever of the two forms of events it has. */
    private static String seen(JsonNode event) {
        return Stream.of("/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/firstTimestamp")
                .map(at -> event.at(at).asText(""))
                .filter(time -> !time.isEmpty() && !time.equals("null"))
                .findFirst()
                .orElse("");
    }
}
