// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.crd;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
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
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Compares {@code docs/KUBERNETES-FIELDS.md} with the definitions, the settings and the sources: every field, key,
 * annotation and label has a row, and every row is of one that exists.
 */
class FieldsDocumentTest {
    private static final Path TOP =
            Path.of("").toAbsolutePath().resolve("../..").normalize();
    private static final Path DOCUMENT = TOP.resolve("docs/KUBERNETES-FIELDS.md");
    private static final String SETTINGS = "inferenceservice-config";

    private static final String LANGUAGE_MODELS = "LLMInferenceService and LLMInferenceServiceConfig";

    private static final Pattern CODE = Pattern.compile("`([^`]+)`");
    private static final Pattern WORD = Pattern.compile("([A-Z]+)(.*)");

    private static final String LOCAL_MODELS = "Local models";

    /** The headings whose tables are about each kind. */
    private static final Map<String, List<String>> SECTIONS = Map.ofEntries(
            Map.entry("LLMInferenceService", List.of("Every resource", LANGUAGE_MODELS)),
            Map.entry("LLMInferenceServiceConfig", List.of("Every resource", LANGUAGE_MODELS)),
            Map.entry("TrainedModel", List.of("Every resource", "TrainedModel")),
            Map.entry("LocalModelCache", List.of("Every resource", LOCAL_MODELS)),
            Map.entry("LocalModelNamespaceCache", List.of("Every resource", LOCAL_MODELS)),
            Map.entry("LocalModelNodeGroup", List.of("Every resource", "Groups of local models")),
            Map.entry("LocalModelNode", List.of("Every resource", "Nodes of local models")),
            Map.entry("InferenceService", List.of("Every resource", "InferenceService", "Containers")),
            Map.entry(
                    "ServingRuntime",
                    List.of("Every resource", "ServingRuntime and ClusterServingRuntime", "Containers")),
            Map.entry(
                    "ClusterServingRuntime",
                    List.of("Every resource", "ServingRuntime and ClusterServingRuntime", "Containers")),
            Map.entry("InferenceGraph", List.of("Every resource", "InferenceGraph")),
            Map.entry("ClusterStorageContainer", List.of("Every resource", "ClusterStorageContainer", "Containers")),
            Map.entry(SETTINGS, List.of(SETTINGS)));

    /** Keys in the sources that are neither annotations nor labels. */
    private static final Pattern NOT_METADATA = Pattern.compile(
            ".*/v\\d.*|(nvidia|amd|intel)\\.com/.*|kubernetes\\.io/(tls|h2c|metadata.*)|app\\.kubernetes\\.io/.*"
                    + "|k8s\\.io/initial-events-end|argocd\\.argoproj\\.io/|.*\\.io/|.*\\.dev/|internal\\.serving\\.kserve\\.io/.*"
                    + "|.*-finalizer|nereid\\.io/(contents|replicas|fields-of-others)");

    private static final Pattern KEY =
            Pattern.compile("\"((?:[a-z0-9-]+\\.)+(?:io|dev|com|org)/[A-Za-z0-9.-]*[A-Za-z0-9])\"");
    private static final Pattern OF_GROUP = Pattern.compile("GROUP \\+ \"([A-Za-z0-9-]+)\"");

    /** The rows of one section: the paths of the first column, with the number of their line. */
    private static Map<String, Integer> rows(List<String> lines, String section) {
        Map<String, Integer> rows = new LinkedHashMap<>();
        boolean inside = false;
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i);
            if (line.startsWith("## ")) {
                inside = line.equals("## " + section);
            }
            if (inside && line.startsWith("| ")) {
                Matcher code = CODE.matcher(line.substring(1, line.indexOf('|', 1)));
                while (code.find()) {
                    rows.put(code.group(1), i + 1);
                }
            }
        }
        return rows;
    }

    /** What the words in capital letters stand for in resources of one kind. */
    private static Map<String, List<String>> words(List<String> lines, String kind) {
        Map<String, List<String>> words = new LinkedHashMap<>();
        int column = -1;
        for (String line : lines) {
            if (line.startsWith("| name |")) {
                String[] cells = line.split("\\|");
                for (int i = 0; i < cells.length; i++) {
                    if (List.of(cells[i].strip().split(", ")).contains(kind)) {
                        column = i;
                    }
                }
                if (column < 0) {
                    return words;
                }
            } else if (column >= 0 && line.startsWith("| `")) {
                String[] cells = line.split("\\|", -1);
                List<String> paths = new ArrayList<>();
                Matcher code = CODE.matcher(cells[column]);
                while (code.find()) {
                    paths.addAll(expanded(code.group(1), words));
                }
                words.put(cells[1].strip().replace("`", ""), paths);
            } else if (column >= 0 && line.isBlank()) {
                return words;
            }
        }
        return words;
    }

    private static List<String> expanded(String path, Map<String, List<String>> words) {
        Matcher word = WORD.matcher(path);
        if (!word.matches() || !words.containsKey(word.group(1))) {
            return List.of(path);
        }
        return words.get(word.group(1)).stream().map(one -> one + word.group(2)).toList();
    }

    /** The paths of all fields of a schema; those that have no fields of their own are mapped to true. */
    private static Map<String, Boolean> fields(JsonNode schema) {
        Map<String, Boolean> all = new LinkedHashMap<>();
        collect(schema, "", all);
        return all;
    }

    private static boolean collect(JsonNode schema, String path, Map<String, Boolean> all) {
        boolean found = false;
        for (Map.Entry<String, JsonNode> field : schema.path("properties").properties()) {
            found = true;
            String at = path.isEmpty() ? field.getKey() : path + "." + field.getKey();
            all.put(at, true);
            if (collect(field.getValue(), at, all)) {
                all.put(at, false);
            }
        }
        if (schema.path("items").has("properties")) {
            all.put(path + "[]", false);
            found |= collect(schema.path("items"), path + "[]", all);
        }
        if (schema.path("additionalProperties").has("properties")) {
            all.put(path + ".*", false);
            found |= collect(schema.path("additionalProperties"), path + ".*", all);
        }
        return found;
    }

    /** What is wrong with the rows for the fields of a kind, a line each. */
    static List<String> problems(List<String> lines, String kind, JsonNode schema) {
        Map<String, List<String>> words = words(lines, kind);
        Map<String, Boolean> fields = fields(schema);
        Set<String> single = new TreeSet<>();
        Set<String> whole = new TreeSet<>();
        List<String> problems = new ArrayList<>();
        for (String section : SECTIONS.getOrDefault(kind, List.of())) {
            rows(lines, section).forEach((row, line) -> {
                boolean below = row.endsWith(".**");
                String path = below ? row.substring(0, row.length() - 3) : row;
                for (String one : expanded(path, words)) {
                    if (!fields.containsKey(one)) {
                        problems.add("line " + line + ": " + kind + " has no " + one);
                    }
                    (below ? whole : single).add(one);
                }
            });
        }
        fields.forEach((field, leaf) -> {
            if (leaf && !single.contains(field) && whole.stream().noneMatch(one -> isBelow(field, one))) {
                problems.add(kind + ": " + field + " has no row");
            }
        });
        return problems;
    }

    private static boolean isBelow(String field, String path) {
        return field.equals(path) || field.startsWith(path + ".") || field.startsWith(path + "[]");
    }

    private static List<String> document() throws IOException {
        return Files.readAllLines(DOCUMENT);
    }

    @Test
    void everyFieldOfTheDefinitionsHasARowAndEveryRowAField() throws IOException {
        List<String> problems = new ArrayList<>();
        int kinds = 0;
        for (var kind : ResourceKinds.all()) {
            if (kind.group().equals(ResourceKinds.SERVING)) {
                kinds++;
                JsonNode schema = CustomResourceDefinitions.of(kind).at("/spec/versions/0/schema/openAPIV3Schema");
                problems.addAll(problems(document(), kind.kind(), schema));
            }
        }
        assertThat(kinds).isEqualTo(12);
        assertThat(problems).as(DOCUMENT.toString()).isEmpty();
    }

    @Test
    void everySettingHasARowAndEveryRowASetting() throws IOException {
        assertThat(problems(document(), SETTINGS, InferenceServiceConfig.schema()))
                .as(DOCUMENT.toString())
                .isEmpty();
    }

    @Test
    void everyAnnotationAndLabelThatIsReadHasARow() throws IOException {
        StringBuilder text = new StringBuilder();
        Set<String> keys = new TreeSet<>();
        try (Stream<Path> files = Files.walk(TOP.resolve("control"))) {
            for (Path file : files.filter(f -> f.toString().contains("src/main/java")
                            && f.toString().endsWith(".java"))
                    .toList()) {
                String source = Files.readString(file);
                text.append(source);
                Matcher key = KEY.matcher(source);
                while (key.find()) {
                    keys.add(key.group(1));
                }
                Matcher group = OF_GROUP.matcher(source);
                while (group.find()) {
                    keys.add("serving.kserve.io/" + group.group(1));
                }
            }
        }
        keys.removeIf(key -> NOT_METADATA.matcher(key).matches());
        assertThat(keys).hasSizeGreaterThan(25);
        Set<String> rows = rows(document(), "Annotations and labels").keySet();
        assertThat(keys.stream().filter(key -> !rows.contains(key)).toList())
                .as("annotations and labels without a row in %s", DOCUMENT)
                .isEmpty();
        List<String> unknown = rows.stream()
                .filter(row -> row.contains("/") && !isIn(text.toString(), row))
                .toList();
        assertThat(unknown).as("rows of %s that no source reads", DOCUMENT).isEmpty();
    }

    @Test
    void everyMetricOfTheRunbookExists() throws IOException {
        StringBuilder sources = new StringBuilder();
        for (String folder : List.of("control", "serving/access")) {
            try (Stream<Path> files = Files.walk(TOP.resolve(folder))) {
                for (Path file : files.filter(f -> f.toString().contains("src/main/java")
                                && f.toString().endsWith(".java"))
                        .toList()) {
                    sources.append(Files.readString(file));
                }
            }
        }
        Matcher metric = Pattern.compile("nereid_[a-z_]+[a-z]")
                .matcher(Files.readString(TOP.resolve("docs/KUBERNETES-RUNBOOK.md")));
        Set<String> unknown = new TreeSet<>();
        int found = 0;
        while (metric.find()) {
            found++;
            if (!sources.toString().contains("\"" + metric.group() + "\"")) {
                unknown.add(metric.group());
            }
        }
        assertThat(unknown).as("metrics that no source writes").isEmpty();
        assertThat(found).isGreaterThan(15);
    }

    /** Whether sources have a key: its name as the end of a string, or in two strings of which it is made. */
    private static boolean isIn(String sources, String key) {
        if (sources.contains(key.substring(key.indexOf('/') + 1) + "\"")) {
            return true;
        }
        for (int i = key.indexOf('-'); i >= 0; i = key.indexOf('-', i + 1)) {
            if (sources.contains("\"" + key.substring(0, i + 1) + "\"")
                    && sources.contains("\"" + key.substring(i + 1) + "\"")) {
                return true;
            }
        }
        return false;
    }

    @Test
    void aFieldWithoutARowAndARowWithoutAFieldAreFound() throws IOException {
        JsonNode schema = CustomResourceDefinitions.of(ResourceKinds.INFERENCE_GRAPH)
                .at("/spec/versions/0/schema/openAPIV3Schema");
        List<String> lines = new ArrayList<>(document());
        lines.replaceAll(line -> line.replace("`spec.nodes.*.steps[].data`", "`spec.nodes.*.steps[].date`"));
        assertThat(problems(lines, "InferenceGraph", schema))
                .anyMatch(one -> one.endsWith("InferenceGraph has no spec.nodes.*.steps[].date"))
                .contains("InferenceGraph: spec.nodes.*.steps[].data has no row");
    }
}
