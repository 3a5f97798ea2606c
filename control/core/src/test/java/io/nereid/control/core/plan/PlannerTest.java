// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadCodec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Plans services from case files. Each case is a document with a specification and steps. A step has changes of the
 * specification, the new states of the workloads, and the expected plan. Names in {@code expect} are paths in the
 * plan's tree; a value that begins with {@code ~} is a substring to look for.
 */
class PlannerTest {
    private static final List<String> FILES = List.of(
            "rollout.yaml", "components.yaml", "rejections.yaml", "scaling.yaml", "ingress.yaml", "status.yaml");

    @TestFactory
    Stream<DynamicTest> everyStepOfEveryCaseIsPlannedAsExpected() {
        return FILES.stream()
                .flatMap(file -> PlanCase.read(file).stream()
                        .map(one -> DynamicTest.dynamicTest(
                                file + ": " + one.path("case").asText(), () -> play(one))));
    }

    private static void play(ObjectNode one) throws IOException {
        PlanCase service = new PlanCase(one);
        int number = 0;
        ObjectNode tree = null;
        for (JsonNode step : steps(one)) {
            number++;
            Plan plan = service.step(step);
            tree = PlanCase.tree(plan);
            for (var expected : step.path("expect").properties()) {
                check(tree, expected.getKey(), expected.getValue(), "step " + number);
            }
            Instant now = PlanCase.START.plusSeconds(step.path("at").asLong());
            Plan again = service.plan(now);
            assertThat(again).as("the same input, the same plan").isEqualTo(service.plan(now));
            assertThat(again.events()).as("events are not repeated").isEmpty();
            assertThat((Object) withoutEvents(PlanCase.tree(again)))
                    .as("a plan that came true changes nothing, step " + number)
                    .isEqualTo(withoutEvents(tree));
            assertThat(again.workloads()).isEqualTo(plan.workloads());
            for (Workload workload : plan.workloads()) {
                assertThat(WorkloadCodec.read(WorkloadCodec.write(workload))).isEqualTo(workload);
            }
            for (Revision revision : plan.revisions()) {
                assertThat(Revision.read(revision.toTree())).isEqualTo(revision);
            }
            checkShares(plan);
        }
        if (one.path("golden").asBoolean()) {
            golden(one.path("case").asText(), tree);
        }
    }

    private static List<JsonNode> steps(ObjectNode one) {
        List<JsonNode> all = new ArrayList<>();
        one.path("steps").forEach(all::add);
        assertThat(all).isNotEmpty();
        return all;
    }

    private static ObjectNode withoutEvents(ObjectNode tree) {
        ObjectNode copy = tree.deepCopy();
        copy.remove("events");
        return copy;
    }

    /** Shares add up to 100, and go to running workloads. */
    private static void checkShares(Plan plan) {
        Route route = plan.route();
        if (route == null) {
            return;
        }
        List<String> running = plan.workloads().stream().map(Workload::revision).toList();
        route.components().values().forEach(backend -> {
            assertThat(backend.targets().stream()
                            .mapToInt(Route.Target::percent)
                            .sum())
                    .isEqualTo(100);
            backend.targets().forEach(target -> assertThat(running).contains(target.revision()));
            backend.mirrors().forEach(target -> assertThat(running).contains(target.revision()));
        });
    }

    private static void check(JsonNode tree, String path, JsonNode expected, String where) {
        JsonNode found = tree;
        for (String part : path.split("/")) {
            found = found.isArray() && !part.isEmpty() && Character.isDigit(part.charAt(0))
                    ? found.path(Integer.parseInt(part))
                    : found.path(part);
        }
        String text = found.isValueNode() ? found.asText() : found.isMissingNode() ? "" : found.toString();
        String value = expected.isValueNode() ? expected.asText() : expected.toString();
        if (expected.isNull()) {
            assertThat(found.isMissingNode())
                    .as(where + ": " + path + " = " + found)
                    .isTrue();
        } else if (value.startsWith("~")) {
            assertThat(text).as(where + ": " + path).contains(value.substring(1));
        } else {
            assertThat(text).as(where + ": " + path).isEqualTo(value);
        }
    }

    /** Compares the whole plan with its golden file; {@code -Dnereid.golden=DIRECTORY} writes it anew. */
    private static void golden(String name, ObjectNode tree) throws IOException {
        String file = "golden/" + name.replace(' ', '-') + ".json";
        ObjectMapper json = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
        String directory = System.getProperty("nereid.golden");
        if (directory != null) {
            Path path = Path.of(directory, file);
            Files.createDirectories(path.getParent());
            Files.writeString(path, json.writeValueAsString(tree) + "\n");
        } else {
            assertThat((Object) json.readTree(json.writeValueAsString(tree)))
                    .isEqualTo(json.readTree(PlanCase.text(file)));
        }
    }
}
