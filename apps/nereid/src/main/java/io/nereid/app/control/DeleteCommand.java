// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.app.text.DurationConverter;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import io.nereid.control.api.ResourceKind;
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

/** {@code nereid delete}: deletes resources. */
@Command(
        name = "delete",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Delete resources, by name or from files, and wait until they are gone.",
        footer = {"", "  nereid delete isvc iris", "  nereid delete -f iris.yaml", "  nereid delete isvc --all"})
@SuppressWarnings("NullAway.Init") // set by picocli
public final class DeleteCommand implements Callable<Integer> {
    @Parameters(arity = "0..*", paramLabel = "TYPE NAME... | TYPE/NAME", description = "The resources to delete.")
    private List<String> words = new ArrayList<>();

    @Mixin
    private FileOptions from;

    @Option(names = "--all", description = "All resources of the type in the namespace.")
    private boolean all;

    @Option(
            names = {"-l", "--selector"},
            paramLabel = "LABELS",
            description = "All resources of the type with these labels.")
    private @Nullable String selector;

    @Option(names = "--ignore-not-found", description = "Treat missing resources as success.")
    private boolean ignoreNotFound;

    @Option(
            names = "--wait",
            negatable = true,
            defaultValue = "true",
            fallbackValue = "true",
            description = "Wait until they are gone (default: yes).")
    private boolean wait;

    @Option(
            converter = DurationConverter.class,
            names = "--timeout",
            paramLabel = "TIME",
            defaultValue = "60s",
            description = "Time limit for the wait.")
    private String timeout;

    @Mixin
    private ControlOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        ControlClient client = options.client(spec);
        List<Named> named;
        if (all || selector != null) {
            if (words.size() != 1) {
                throw ServingException.invalidArgument(
                        (all ? "--all" : "--selector") + " needs one type", "for example: nereid delete isvc --all");
            }
            named = selected(client, ControlOptions.kind(words.get(0)));
        } else {
            named = options.named(words, from);
            if (named.isEmpty()) {
                throw ServingException.invalidArgument(
                        "no resource is given", "for example: nereid delete isvc iris, or --all");
            }
        }
        boolean failed = false;
        List<Named> going = new ArrayList<>();
        for (Named one : named) {
            try {
                client.delete(one.path());
                going.add(one);
                spec.commandLine()
                        .getOut()
                        .println((one.kind().group().isEmpty()
                                        ? one.kind().singular()
                                        : one.kind().singular() + "."
                                                + one.kind().group())
                                + " \"" + one.name() + "\" deleted");
                spec.commandLine().getOut().flush();
            } catch (ServingException e) {
                if (e.code() == ErrorCode.UNAVAILABLE) {
                    throw e;
                }
                if (e.code() != ErrorCode.NOT_FOUND || !ignoreNotFound) {
                    failed = true;
                    spec.commandLine().getErr().println("nereid: " + e.describe());
                }
            }
        }
        if (wait) {
            ConditionWaiter waiter = new ConditionWaiter(client, Units.duration(timeout));
            going.forEach(one -> waiter.until(one, "deletion", resource -> false));
        }
        return failed ? 1 : 0;
    }

    private List<Named> selected(ControlClient client, ResourceKind kind) {
        String path = ControlClient.path(kind, options.namespace(), null)
                + (selector == null ? "" : "?labelSelector=" + ServerClient.segment(selector));
        List<Named> found = new ArrayList<>();
        for (JsonNode item : client.get(path).path("items")) {
            found.add(options.named(kind, item.path("metadata").path("name").asText()));
        }
        if (found.isEmpty()) {
            spec.commandLine().getErr().println("No resources found");
        }
        return found;
    }
}
