// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.app.text.OutputFormat;
import io.nereid.app.text.TextTable;
import io.nereid.control.operator.adopt.AdoptionPlan;
import io.nereid.control.operator.adopt.KserveSwitch;
import io.nereid.control.operator.adopt.ServiceAdoption;
import java.io.PrintWriter;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The take-over as a process, apart from the command as {@link OperatorProcess} is. Stateless. */
final class OperatorAdoption {
    private static final int REQUEST_TIMEOUT_MILLIS = 30_000;

    /** What the command line asks for. Immutable. */
    record Request(
            @Nullable String kubeconfig,
            boolean dryRun,
            boolean switchOff,
            Set<String> namespaces,
            String kserveNamespace,
            String settingsNamespace,
            String webhookConfiguration,
            boolean webhook) {}

    private OperatorAdoption() {}

    /** Prints the answer and returns the exit code. */
    static int run(Request request, OutputFormat format, PrintWriter out) {
        try (KubernetesClient client = KubernetesClients.create(request.kubeconfig, REQUEST_TIMEOUT_MILLIS)) {
            KserveSwitch kserve = new KserveSwitch(client, request.kserveNamespace, request.webhookConfiguration);
            if (request.dryRun) {
                List<ServiceAdoption> services =
                        new AdoptionPlan(client, request.settingsNamespace, request.webhook).of(request.namespaces);
                print(services, kserve.remaining(), format, out);
                return services.stream().allMatch(ServiceAdoption::isQuiet) ? 0 : 1;
            }
            List<String> done = request.switchOff ? kserve.switchOff() : List.of();
            List<String> remaining = kserve.remaining();
            boolean completes = kserve.completesPods();
            print(done, remaining, completes, format, out);
            return remaining.isEmpty() && completes ? 0 : 1;
        }
    }

    private static void print(
            List<ServiceAdoption> services, List<String> remaining, OutputFormat format, PrintWriter out) {
        if (format.isDocument()) {
            ObjectNode document = JsonNodeFactory.instance.objectNode();
            ArrayNode list = document.putArray("services");
            for (ServiceAdoption one : services) {
                ObjectNode service = list.addObject();
                service.put("namespace", one.namespace());
                service.put("name", one.name());
                service.put("mode", one.mode());
                service.put("podTemplates", text(one.template()));
                one.changes().forEach(service.putArray("changes")::add);
                if (!one.reason().isEmpty()) {
                    service.put("reason", one.reason());
                }
            }
            remaining.forEach(document.putArray("kserve")::add);
            format.print(document, out);
            return;
        }
        TextTable table = new TextTable("NAMESPACE", "NAME", "MODE", "POD TEMPLATES", "CHANGES");
        for (ServiceAdoption one : services) {
            table.row(
                    one.namespace(),
                    one.name(),
                    one.mode(),
                    text(one.template()),
                    one.changes().isEmpty() ? "none" : String.join("; ", one.changes()));
        }
        table.print(out);
        services.stream()
                .filter(one -> !one.reason().isEmpty())
                .forEach(one -> out.println(one.namespace() + "/" + one.name() + ": " + one.reason()));
        long restarting = services.stream().filter(one -> !one.isQuiet()).count();
        out.println(services.size() + " services, " + (services.size() - restarting)
                + " go on without a restart of their pods and without a step by hand");
        remaining.forEach(one -> out.println("KServe: " + one));
        out.flush();
    }

    private static String text(ServiceAdoption.Template template) {
        return switch (template) {
            case KEPT -> "kept";
            case ROLLS -> "roll";
            case OWN -> "Nereid's";
            case NONE -> "-";
        };
    }

    private static void print(
            List<String> done, List<String> remaining, boolean completes, OutputFormat format, PrintWriter out) {
        if (format.isDocument()) {
            ObjectNode document = JsonNodeFactory.instance.objectNode();
            done.forEach(document.putArray("done")::add);
            remaining.forEach(document.putArray("kserve")::add);
            document.put("completesPods", completes);
            format.print(document, out);
            return;
        }
        done.forEach(out::println);
        remaining.forEach(one -> out.println("KServe: " + one));
        if (!completes) {
            out.println(
                    "the operator's webhook for pods does not answer yet: install the operator, wait until it is ready,"
                            + " and run this command again");
        } else if (remaining.isEmpty()) {
            out.println("nothing of KServe stands in the way, and the operator's webhook completes its pods");
        } else {
            out.println("--switch-off-kserve takes it away");
        }
        out.flush();
    }
}
