// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.AdmissionCase;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.yaml.ManifestReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** However valid resources are mutated, they are either admitted or rejected as the client's fault. */
class AdmissionFuzzTest {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    @Test
    void mutatedResourcesAreEitherAdmittedOrRejected() {
        List<AdmissionCase> cases = AdmissionCase.all();
        Random random = new Random(20260817);
        int admitted = 0;
        int refused = 0;
        for (int round = 0; round < 20_000; round++) {
            AdmissionCase one = cases.get(random.nextInt(cases.size()));
            ObjectNode resource = one.input().deepCopy();
            for (int i = random.nextInt(4); i >= 0; i--) {
                mutate(resource, random);
            }
            try {
                ResourceKind kind = ResourceKinds.of(resource);
                Admission admission = one.admission();
                ObjectNode first = admission.admit(kind, resource, one.old()).resource();
                assertThat(admission.admit(kind, first, one.old()).resource()).isEqualTo(first);
                read(kind, first);
                admission.admit(kind, one.input(), first);
                admitted++;
            } catch (ServingException e) {
                assertThat(e.code()).as("%s of %s", e.getMessage(), resource).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                refused++;
            } catch (RuntimeException e) {
                throw new AssertionError("of " + resource, e);
            }
        }
        assertThat(admitted).isGreaterThan(500);
        assertThat(refused).isGreaterThan(500);
    }

    @Test
    void mutatedTextsAreEitherReadOrRejected() {
        Random random = new Random(4);
        String alphabet = ":-{}[]&*!|>'\"#%@`\n\t ,?~<abc019.\u0000\u2028\uD83D";
        int read = 0;
        for (int round = 0; round < 15_000; round++) {
            StringBuilder text = new StringBuilder("""
                apiVersion: serving.kserve.io/v1beta1
                kind: InferenceService
                metadata: &m {name: iris, labels: {a: "b"}}
                spec:
                  predictor:
                    minReplicas: 1
                    model: {modelFormat: {name: sklearn}, <<: *m, args: [a, 'b', "c"]}
                ---
                - text: |
                    more
                """);
            for (int i = random.nextInt(6); i >= 0; i--) {
                int at = random.nextInt(text.length());
                char some = alphabet.charAt(random.nextInt(alphabet.length()));
                switch (random.nextInt(3)) {
                    case 0 -> text.insert(at, some);
                    case 1 -> text.setCharAt(at, some);
                    default -> text.deleteCharAt(at);
                }
            }
            try {
                ManifestReader.parse(text.toString(), "fuzz");
                read++;
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.getMessage()).startsWith("fuzz");
            } catch (RuntimeException e) {
                throw new AssertionError("of " + text, e);
            }
        }
        assertThat(read).isLessThan(15_000);
    }

    private static void read(ResourceKind kind, ObjectNode resource) {
        ObjectMeta.read(resource);
        switch (kind.kind()) {
            case "InferenceService" -> InferenceService.read(resource);
            case "ServingRuntime", "ClusterServingRuntime" -> ServingRuntime.read(resource);
            case "InferenceGraph" -> InferenceGraph.read(resource);
            case "ClusterStorageContainer" -> ClusterStorageContainer.read(resource);
            default -> {}
        }
    }

    private static void mutate(ObjectNode resource, Random random) {
        List<JsonNode> inner = new ArrayList<>();
        collect(resource, inner);
        JsonNode chosen = inner.get(random.nextInt(inner.size()));
        if (chosen instanceof ArrayNode array) {
            if (array.isEmpty() || random.nextInt(3) == 0) {
                array.add(
                        array.isEmpty() || random.nextBoolean()
                                ? some(random)
                                : array.get(0).deepCopy());
            } else if (random.nextBoolean()) {
                array.remove(random.nextInt(array.size()));
            } else {
                array.set(random.nextInt(array.size()), some(random));
            }
            return;
        }
        ObjectNode object = (ObjectNode) chosen;
        List<String> names = new ArrayList<>();
        object.fieldNames().forEachRemaining(names::add);
        String name = names.isEmpty() ? "x" : names.get(random.nextInt(names.size()));
        switch (random.nextInt(4)) {
            case 0 -> object.remove(name);
            case 1 -> object.set(name, some(random));
            case 2 -> {
                JsonNode value = object.remove(name);
                object.set(name + "s", value == null ? some(random) : value);
            }
            default -> {
                List<JsonNode> donors = new ArrayList<>();
                collect(resource, donors);
                object.set(name, donors.get(random.nextInt(donors.size())).deepCopy());
            }
        }
    }

    private static void collect(JsonNode node, List<JsonNode> into) {
        if (node.isContainerNode()) {
            into.add(node);
            node.forEach(child -> collect(child, into));
        }
    }

    private static JsonNode some(Random random) {
        return switch (random.nextInt(12)) {
            case 0 -> NODES.nullNode();
            case 1 -> NODES.numberNode(-1);
            case 2 -> NODES.numberNode(1L << 40);
            case 3 -> NODES.numberNode(1.5);
            case 4 -> NODES.booleanNode(true);
            case 5 -> NODES.textNode("");
            case 6 -> NODES.textNode("ÄÖ ../\n\"{{");
            case 7 -> NODES.textNode("x".repeat(3000));
            case 8 -> NODES.arrayNode().add("a").add(NODES.nullNode());
            case 9 -> NODES.objectNode().put("name", "b");
            case 10 -> NODES.numberNode(0);
            default -> NODES.textNode("s3://b/c");
        };
    }
}
