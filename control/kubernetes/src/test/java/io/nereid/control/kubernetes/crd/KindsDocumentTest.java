// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.crd;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKinds;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Compares the table of kinds in {@code docs/KUBERNETES.md} with KServe's definitions and with what is done here. */
class KindsDocumentTest {
    private static final Path DOCUMENT =
            Path.of("").toAbsolutePath().resolve("../../docs/KUBERNETES.md").normalize();

    private static final Pattern KIND = Pattern.compile("`([A-Za-z]+)`");

    /** The rows of the table by kind: the cells for a cluster and for one machine. */
    static Map<String, List<String>> rows(List<String> lines) {
        Map<String, List<String>> rows = new LinkedHashMap<>();
        boolean inside = false;
        for (String line : lines) {
            if (line.startsWith("#")) {
                inside = line.equals("### Kinds");
            }
            if (inside && line.startsWith("| `")) {
                String[] cells = line.split("\\|");
                Matcher kind = KIND.matcher(cells[1]);
                while (kind.find()) {
                    rows.put(kind.group(1), List.of(cells[2].strip(), cells[3].strip()));
                }
            }
        }
        return rows;
    }

    /** The kinds of KServe's definitions, a line each. */
    private static Set<String> ofKserve() throws IOException {
        try (var in = KindsDocumentTest.class.getResourceAsStream("/kserve-kinds.txt")) {
            assertThat(in).isNotNull();
            Set<String> kinds = new TreeSet<>();
            new String(in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .forEach(kinds::add);
            return kinds;
        }
    }

    private static Set<String> defined() {
        Set<String> kinds = new TreeSet<>();
        for (ObjectNode definition : CustomResourceDefinitions.all()) {
            kinds.add(definition.at("/spec/names/kind").asText());
        }
        return kinds;
    }

    @Test
    void everyKindOfKserveHasARowThatSaysWhatIsDone() throws IOException {
        assertThat(problems(Files.readAllLines(DOCUMENT)))
                .as(DOCUMENT.toString())
                .isEmpty();
    }

    private static List<String> problems(List<String> lines) throws IOException {
        Map<String, List<String>> rows = rows(lines);
        Set<String> kserve = ofKserve();
        Set<String> defined = defined();
        List<String> problems = new ArrayList<>();
        for (String kind : kserve) {
            List<String> row = rows.get(kind);
            if (row == null) {
                problems.add(kind + " has no row");
            } else if (defined.contains(kind) == row.get(0).startsWith("not defined")) {
                problems.add(kind + " is " + (defined.contains(kind) ? "" : "not ") + "defined, unlike its row");
            } else if (ResourceKinds.unsupported().containsKey(kind)
                    != row.get(1).startsWith("refused")) {
                problems.add(kind + " on one machine is not as its row says");
            }
        }
        rows.keySet().stream()
                .filter(kind -> !kserve.contains(kind))
                .forEach(kind -> problems.add(kind + " is not KServe's"));
        defined.stream()
                .filter(kind -> !kserve.contains(kind))
                .forEach(kind -> problems.add(kind + " is not KServe's"));
        return problems;
    }

    @Test
    void aMissingAndAWrongRowAreFound() throws IOException {
        List<String> lines = new ArrayList<>(Files.readAllLines(DOCUMENT));
        lines.replaceAll(line -> line.startsWith("| `InferenceGraph` |")
                ? "| `InferenceGrap` | carried out | carried out |"
                : line.startsWith("| `InferenceService` |") ? "| `InferenceService` | not defined | - |" : line);
        assertThat(problems(lines))
                .containsExactlyInAnyOrder(
                        "InferenceGraph has no row",
                        "InferenceService is defined, unlike its row",
                        "InferenceGrap is not KServe's");
    }
}
