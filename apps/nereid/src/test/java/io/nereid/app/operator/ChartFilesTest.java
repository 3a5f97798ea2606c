// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.core.util.Separators;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.Main;
import io.nereid.app.text.YamlWriter;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.kubernetes.manifest.ManifestOptions;
import io.nereid.control.kubernetes.manifest.ManifestOptions.Part;
import io.nereid.control.kubernetes.manifest.OperatorManifests;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/**
 * The files of the Helm chart that are made from the program: definitions, rights, settings, runtimes, and the options of
 * {@code nereid serve}. With {@code -Dnereid.chart.update=true}, as {@code deploy/helm/update.sh} runs it, they are written
 * instead of compared.
 */
class ChartFilesTest {
    static final Path CHART = TestCluster.root().resolve("deploy/helm/nereid");

    /** Stands for the image, which the chart's values say. */
    private static final String IMAGE = "image-of-the-chart";

    private static final ObjectMapper JSON = new ObjectMapper();

    /** Options that the chart sets by values of its own, and those that open ports or programs which it does not know. */
    private static final Pattern NOT_IN_SERVER_CONFIG =
            Pattern.compile("models|model-repository|host|(grpc-|metrics-|rest_api_)?port|compat-ports|grpc_socket_path"
                    + "|drain-timeout|grace-period|tls-(cert|key|client-ca|client-verify)|grpc-use-ssl(-mutual)?"
                    + "|ssl_config_file|api-keys|access-config|control|control-.*|pvc-root|storage-allow|ingress-domain"
                    + "|model-cache|model-cache-size");

    private static ManifestOptions options(List<String> watched, Part... without) {
        Set<Part> parts = EnumSet.copyOf(ManifestOptions.DEFAULT_PARTS);
        parts.removeAll(List.of(without));
        ManifestOptions some = ManifestOptions.of(IMAGE);
        return new ManifestOptions(
                some.namespace(),
                some.image(),
                watched,
                some.replicas(),
                some.upgradeBudget(),
                some.gateways(),
                some.deploymentMode(),
                some.ingressDomain(),
                some.ingressClass(),
                parts);
    }

    private static JsonNode find(ManifestOptions options, String kind, String name) {
        return OperatorManifests.of(options, YamlWriter::of).stream()
                .filter(object -> object.path("kind").asText().equals(kind)
                        && object.path("metadata").path("name").asText().equals(name))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + kind + " " + name));
    }

    private static ArrayNode rules(ManifestOptions options, String kind, String name) {
        return (ArrayNode) find(options, kind, name).path("rules");
    }

    /** The rules of a longer list that come after those of a shorter one. */
    private static ArrayNode after(ArrayNode shorter, ArrayNode longer) {
        ArrayNode rest = JsonNodeFactory.instance.arrayNode();
        for (int i = 0; i < longer.size(); i++) {
            if (i < shorter.size()) {
                assertThat(longer.get(i)).isEqualTo(shorter.get(i));
            } else {
                rest.add(longer.get(i));
            }
        }
        return rest;
    }

    /** The rights, by what they depend on in the chart. */
    private static ObjectNode rules() {
        ManifestOptions all = options(List.of());
        ManifestOptions plain = options(List.of(), Part.WEBHOOK);
        ManifestOptions named = options(List.of("nereid"));
        ObjectNode rules = JsonNodeFactory.instance.objectNode();
        for (String program : List.of("operator", "gateway")) {
            String name = "nereid-" + program;
            ArrayNode services = rules(named, "Role", name);
            ArrayNode cluster = rules(plain, "ClusterRole", name);
            ArrayNode own = rules(plain, "Role", name + "-own");
            ObjectNode one = rules.putObject(program);
            one.set("services", services);
            one.set("cluster", after(services, cluster));
            one.set("own", own);
            if (program.equals("operator")) {
                ArrayNode webhook = after(cluster, rules(all, "ClusterRole", name));
                webhook.forEach(rule -> ((ObjectNode) rule).remove("resourceNames"));
                one.set("webhook", webhook);
                one.set("certificate", after(own, rules(all, "Role", name + "-own")));
            }
        }
        ObjectNode agent = rules.putObject("node-agent");
        agent.set("cluster", rules(all, "ClusterRole", "nereid-node-agent"));
        agent.set("own", rules(all, "Role", "nereid-node-agent-own"));
        agent.set("credentials", rules(all, "ClusterRole", "nereid-node-agent-credentials"));
        return rules;
    }

    /** The texts by their paths in the chart. */
    private static Map<String, String> files() throws IOException {
        Map<String, String> files = new TreeMap<>();
        for (ObjectNode definition : CustomResourceDefinitions.all()) {
            String plural = definition.path("spec").path("names").path("plural").asText();
            files.put("files/definitions/" + plural + ".yaml", YamlWriter.of(definition));
        }
        files.put("files/rules.yaml", YamlWriter.of(rules()));
        ObjectNode sections = JsonNodeFactory.instance.objectNode();
        for (Map.Entry<String, JsonNode> section : find(options(List.of()), "ConfigMap", "inferenceservice-config")
                .path("data")
                .properties()) {
            sections.set(section.getKey(), JSON.readTree(section.getValue().asText()));
        }
        files.put("files/config.yaml", YamlWriter.of(sections));
        for (Map.Entry<String, JsonNode> resource : find(options(List.of()), "ConfigMap", OperatorManifests.BUILT_IN)
                .path("data")
                .properties()) {
            files.put("files/runtimes/" + resource.getKey(), resource.getValue().asText());
        }
        files.put("files/alerts.yaml", Files.readString(TestCluster.root().resolve("deploy/monitoring/alerts.yaml")));
        return files;
    }

    @Test
    void theChartHasTheDefinitionsRightsSettingsAndRuntimesOfTheProgram() throws Exception {
        Map<String, String> expected = files();
        if (Boolean.getBoolean("nereid.chart.update")) {
            for (Map.Entry<String, String> file : expected.entrySet()) {
                Path path = CHART.resolve(file.getKey());
                Files.createDirectories(path.getParent());
                Files.writeString(path, file.getValue());
            }
        }
        Map<String, String> found = new TreeMap<>();
        try (Stream<Path> all = Files.walk(CHART.resolve("files"))) {
            for (Path path : (Iterable<Path>) all.filter(Files::isRegularFile)::iterator) {
                found.put(CHART.relativize(path).toString().replace('\\', '/'), Files.readString(path));
            }
        }
        String what = "run deploy/helm/update.sh, and delete files that it no longer writes";
        assertThat(found.keySet()).as(what).isEqualTo(expected.keySet());
        expected.forEach((path, text) -> assertThat(found.get(path).equals(text))
                .as(path + " is up to date: " + what)
                .isTrue());
    }

    @Test
    void theSchemaHasTheOptionsOfTheServer() throws Exception {
        StringWriter out = new StringWriter();
        CommandLine program = Main.commandLine().setOut(new PrintWriter(out, true));
        assertThat(program.execute("config", "schema")).isZero();
        ObjectNode options = JsonNodeFactory.instance.objectNode();
        JSON.readTree(out.toString()).path("properties").properties().forEach(option -> {
            if (!NOT_IN_SERVER_CONFIG.matcher(option.getKey()).matches()) {
                // Helm does not fill in defaults; the descriptions name them.
                ((ObjectNode) option.getValue()).remove("default");
                options.set(option.getKey(), option.getValue());
            }
        });
        Path file = CHART.resolve("values.schema.json");
        ObjectNode schema = (ObjectNode) JSON.readTree(Files.readString(file));
        ObjectNode config = (ObjectNode) schema.at("/properties/server/properties/config");
        if (Boolean.getBoolean("nereid.chart.update")) {
            config.set("properties", options);
            DefaultPrettyPrinter printer = new DefaultPrettyPrinter(
                    Separators.createDefaultInstance().withObjectFieldValueSpacing(Separators.Spacing.AFTER));
            printer.indentArraysWith(new DefaultIndenter("  ", "\n"));
            printer.indentObjectsWith(new DefaultIndenter("  ", "\n"));
            Files.writeString(file, JSON.writer(printer).writeValueAsString(schema) + "\n");
        }
        assertThat(config.path("properties").equals(options))
                .as("the options of server.config are up to date: run deploy/helm/update.sh")
                .isTrue();
    }

    @Test
    void theDocumentHasTheValuesOfTheServer() throws Exception {
        JsonNode values = ManifestReader.parse(Files.readString(CHART.resolve("values.yaml")), "values.yaml")
                .get(0)
                .path("server");
        JsonNode schema = JSON.readTree(Files.readString(CHART.resolve("values.schema.json")));
        StringBuilder table = new StringBuilder("| value | default | |\n|---|---|---|\n");
        rows("server", values, schema.path("properties").path("server"), table);
        Path file = TestCluster.root().resolve("docs/HELM-SERVER.md");
        String document = Files.readString(file);
        String begin = "<!-- written by deploy/helm/update.sh -->\n";
        int from = document.indexOf(begin) + begin.length();
        int to = document.indexOf("\n\n", from) + 1;
        if (Boolean.getBoolean("nereid.chart.update")) {
            Files.writeString(file, document.substring(0, from) + table + document.substring(to));
        } else {
            assertThat(document.substring(from, to))
                    .as("the table of docs/HELM-SERVER.md is up to date: run deploy/helm/update.sh")
                    .isEqualTo(table.toString());
        }
    }

    private static void rows(String path, JsonNode value, JsonNode schema, StringBuilder table) {
        if (value.isObject() && !value.isEmpty() && schema.has("properties")) {
            value.properties()
                    .forEach(entry -> rows(
                            path + "." + entry.getKey(),
                            entry.getValue(),
                            schema.path("properties").path(entry.getKey()),
                            table));
            return;
        }
        String text = value.isTextual() ? value.asText() : value.toString();
        table.append("| `")
                .append(path)
                .append("` | ")
                .append(text.isEmpty() || value.isContainerNode() && value.isEmpty() ? "" : '`' + text + '`')
                .append(" | ")
                .append(schema.path("description").asText())
                .append(" |\n");
    }

    @Test
    void theChartHasTheVersionOfTheProgram() throws Exception {
        Matcher version = Pattern.compile("<artifactId>nereid</artifactId>\\s*<version>([^<]+)</version>")
                .matcher(Files.readString(TestCluster.root().resolve("pom.xml")));
        assertThat(version.find()).isTrue();
        JsonNode chart = ManifestReader.parse(Files.readString(CHART.resolve("Chart.yaml")), "Chart.yaml")
                .get(0);
        assertThat(chart.path("appVersion").asText()).isEqualTo(version.group(1));
        assertThat(chart.path("version").asText()).isEqualTo(version.group(1));
    }

    @Test
    void everyValueIsDescribedAndNoOtherIsTaken() throws Exception {
        JsonNode values = ManifestReader.parse(Files.readString(CHART.resolve("values.yaml")), "values.yaml")
                .get(0);
        JsonNode schema = JSON.readTree(Files.readString(CHART.resolve("values.schema.json")));
        List<String> problems = new ArrayList<>();
        compare("", values, schema, problems);
        assertThat(problems).isEmpty();
    }

    private static void compare(String path, JsonNode values, JsonNode schema, List<String> problems) {
        if (schema.path("description").asText().isEmpty()) {
            problems.add(path + " has no description");
        }
        if (!schema.has("properties")) {
            return;
        }
        if (schema.path("additionalProperties").asBoolean(true)) {
            problems.add(path + " takes values that do not exist");
        }
        values.properties().forEach(entry -> {
            JsonNode one = schema.path("properties").path(entry.getKey());
            if (one.isMissingNode()) {
                problems.add(path + "." + entry.getKey() + " is not in the schema");
            } else {
                compare(path + "." + entry.getKey(), entry.getValue(), one, problems);
            }
        });
    }
}
