// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.app.text.OutputFormat;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.TextTable;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid explain-selection}: shows which serving runtime a service gets, and why the others do not match. */
@Command(
        name = "explain-selection",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Show every runtime that was considered for an InferenceService, and why it was chosen or not.",
            "For a file, the runtimes of the cluster or of a running server are considered; without --kubeconfig,"
                    + " --context and a server, the built-in ones."
        },
        footer = {"", "  nereid explain-selection iris", "  nereid explain-selection iris.yaml"})
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ExplainSelectionCommand implements Callable<Integer> {
    @Parameters(
            paramLabel = "NAME|FILE",
            description = "The service, as iris or isvc/iris, or a file; - for standard input.")
    private String subject;

    @Option(names = "--built-in", description = "Consider only the built-in runtimes, without a server.")
    private boolean builtIn;

    @Option(
            names = "--operator-namespace",
            paramLabel = "NAME",
            defaultValue = "nereid",
            description = "The namespace of the operator in a cluster, whose ConfigMap inferenceservice-config counts"
                    + " (default: nereid).")
    private String home;

    @Mixin
    private ControlOptions options;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ControlClient client = options.client(spec);
        boolean file = subject.equals("-")
                || subject.matches(".*\\.(ya?ml|json)")
                || subject.startsWith("/")
                || subject.startsWith(".")
                || !subject.matches("[a-z/0-9-]+") && Files.exists(Path.of(subject));
        if (!file) {
            Named named = subject.contains("/")
                    ? options.named(List.of(subject)).get(0)
                    : options.named(ResourceKinds.INFERENCE_SERVICE, subject);
            return print(
                    named.name(),
                    client.isCluster()
                            ? ClusterSelection.explain(
                                    client, home, named.namespace(), (ObjectNode) client.get(named.path()))
                            : client.get(named.path() + "/selection"));
        }
        int worst = 0;
        boolean any = false;
        for (ObjectNode resource : ControlOptions.resources(List.of(subject), false)) {
            if (!resource.path("kind").asText().equals("InferenceService")) {
                continue;
            }
            Named named = options.named(resource);
            if (any) {
                out().println(output.format() == OutputFormat.YAML ? "---" : "");
            }
            any = true;
            worst = Math.max(worst, print(named.name(), explained(client, named, resource)));
        }
        if (!any) {
            throw ServingException.invalidArgument(
                    "no InferenceService in " + (subject.equals("-") ? "standard input" : subject));
        }
        return worst;
    }

    private JsonNode explained(ControlClient client, Named named, ObjectNode resource) {
        if (!builtIn && client.isCluster()) {
            return ClusterSelection.explain(client, home, named.namespace(), admitted(named, resource));
        }
        if (!builtIn) {
            try {
                return client.send("POST", named.path() + "/selection", "application/json", resource)
                        .body();
            } catch (ServingException e) {
                if (e.code() != ErrorCode.UNAVAILABLE) {
                    throw e;
                }
                spec.commandLine()
                        .getErr()
                        .println("(" + e.getMessage() + ": only the built-in runtimes are considered)");
                spec.commandLine().getErr().flush();
            }
        }
        return ClusterSelection.tree(
                RuntimeSelection.of(InferenceService.read(admitted(named, resource)), RuntimeCatalog.builtIn()));
    }

    private static ObjectNode admitted(Named named, ObjectNode resource) {
        ObjectNode placed = resource.deepCopy();
        placed.withObject("/metadata").put("namespace", named.namespace());
        return new Admission(AdmissionContext.NONE)
                .admit(ResourceKinds.INFERENCE_SERVICE, placed, null)
                .resource();
    }

    private int print(String name, JsonNode explanation) {
        if (output.format().isDocument()) {
            ObjectNode document = JsonNodeFactory.instance.objectNode().put("name", name);
            explanation.properties().forEach(field -> document.set(field.getKey(), field.getValue()));
            output.format().print(document, out());
            return explanation.hasNonNull("reason") ? 1 : 0;
        }
        String chosen = explanation.path("chosen").asText("");
        String protocol = explanation.path("protocol").asText("");
        String reason = explanation.path("reason").asText("");
        out().println(name + ": "
                + (explanation.hasNonNull("chosen")
                        ? chosen + (explanation.hasNonNull("protocol") ? " (" + protocol + ")" : "") + ": "
                        : explanation.hasNonNull("reason") ? reason + ": " : "")
                + explanation.path("message").asText());
        if (explanation.hasNonNull("kept")) {
            out().println("It runs with " + explanation.path("kept").asText()
                    + ", and stays with it until its specification changes.");
        }
        if (!explanation.path("considered").isEmpty()) {
            TextTable table = new TextTable("RUNTIME", "SCOPE", "FITS", "CHOSEN", "WHY");
            for (JsonNode one : explanation.path("considered")) {
                table.row(
                        one.path("runtime").asText(),
                        one.path("cluster").asBoolean() ? "cluster" : "namespace",
                        one.path("fits").asBoolean() ? "yes" : "no",
                        one.path("chosen").asBoolean() ? "yes" : "",
                        one.path("why").asText());
            }
            table.print(out());
        }
        out().flush();
        return explanation.hasNonNull("reason") ? 1 : 0;
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }
}
