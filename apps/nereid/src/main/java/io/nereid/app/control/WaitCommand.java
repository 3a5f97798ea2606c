// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.app.text.DurationConverter;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Units;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Predicate;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid wait}: waits for a condition of resources. Set by picocli; confined to one thread. */
@Command(
        name = "wait",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Wait until resources meet a condition, or are deleted.",
        footer = {
            "",
            "  nereid wait isvc/iris --for=condition=Ready --timeout=60s",
            "  nereid wait isvc/iris --for=delete"
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class WaitCommand implements Callable<Integer> {
    @Parameters(arity = "0..*", paramLabel = "TYPE NAME... | TYPE/NAME", description = "The resources to wait for.")
    private List<String> words = new ArrayList<>();

    @Mixin
    private FileOptions from;

    @Option(
            names = "--for",
            paramLabel = "WHAT",
            defaultValue = "condition=Ready",
            description = "condition=NAME, condition=NAME=VALUE, create or delete (default: condition=Ready).")
    private String what;

    @Option(
            converter = DurationConverter.class,
            names = "--timeout",
            paramLabel = "TIME",
            defaultValue = "30s",
            description = "Time limit (default: 30s).")
    private String timeout;

    @Mixin
    private ControlOptions options;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        Predicate<JsonNode> condition = condition();
        List<Named> named = options.named(words, from);
        if (named.isEmpty()) {
            throw ServingException.invalidArgument(
                    "no resource is given", "for example: nereid wait isvc/iris --for=condition=Ready");
        }
        ControlClient client = options.client(spec);
        ConditionWaiter waiter = new ConditionWaiter(client, Units.duration(timeout));
        boolean deletion = what.equals("delete");
        for (Named one : named) {
            boolean there =
                    waiter.until(one, deletion ? "deletion" : what.replace("condition=", "condition "), condition);
            if (!there && !deletion) {
                throw ServingException.of(ErrorCode.NOT_FOUND, one.shown() + " does not exist");
            }
            spec.commandLine().getOut().println(one.shown() + (deletion ? " deleted" : " condition met"));
            spec.commandLine().getOut().flush();
        }
        return 0;
    }

    private Predicate<JsonNode> condition() {
        if (what.equals("delete")) {
            return resource -> false;
        }
        if (what.equals("create")) {
            return resource -> true;
        }
        String[] parts = what.split("=", -1);
        if (!parts[0].equals("condition") || parts.length < 2 || parts.length > 3 || parts[1].isEmpty()) {
            throw ServingException.invalidArgument("--for=" + what
                    + " is not known (expected condition=NAME, condition=NAME=VALUE, create or delete)");
        }
        String value = parts.length == 3 ? parts[2] : "True";
        return resource -> {
            JsonNode observed = resource.path("status").get("observedGeneration");
            if (observed != null
                    && observed.asLong()
                            < resource.path("metadata").path("generation").asLong()) {
                return false;
            }
            for (JsonNode condition : resource.path("status").path("conditions")) {
                if (condition.path("type").asText().equalsIgnoreCase(parts[1])) {
                    return condition.path("status").asText().equalsIgnoreCase(value);
                }
            }
            return false;
        };
    }
}
