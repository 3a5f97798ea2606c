// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.yaml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ManifestReaderTest {
    @Test
    void documentsAreReadInOrderAndEmptyOnesAreSkipped() {
        assertThat(ManifestReader.parse("---\na: 1\n---\n# nothing\n---\nb: [x, y]\n...\n", "f"))
                .map(JsonNode::toString)
                .containsExactly("{\"a\":1}", "{\"b\":[\"x\",\"y\"]}");
        assertThat(ManifestReader.parse("", "f")).isEmpty();
    }

    @Test
    void jsonIsReadTooAndOneDocumentAfterAnother() {
        assertThat(ManifestReader.parse("{\"a\": 1}\n\t{\"b\": \"x\\n\"}", "f"))
                .map(JsonNode::toString)
                .containsExactly("{\"a\":1}", "{\"b\":\"x\\n\"}");
    }

    @Test
    void listsAreExpanded() {
        assertThat(ManifestReader.parse("kind: List\nitems: [{kind: A}, {kind: B}]", "f"))
                .map(JsonNode::toString)
                .containsExactly("{\"kind\":\"A\"}", "{\"kind\":\"B\"}");
        assertThat(ManifestReader.parse("apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}}]", "f"))
                .map(JsonNode::toString)
                .containsExactly("{\"metadata\":{\"name\":\"a\"},\"kind\":\"Secret\",\"apiVersion\":\"v1\"}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1|1",
                "-12|-12",
                "0644|420",
                "0o17|15",
                "0x1F|31",
                "0b101|5",
                "1_000|1000",
                "9223372036854775808|9223372036854775808",
                "1.5|1.5",
                "1e3|1000.0",
                ".5|0.5",
                "yes|true",
                "Off|false",
                "true|true",
                "~|null",
                "null|null",
                "'\"yes\"'|\"yes\"",
                "2026-01-01|\"2026-01-01\"",
                "1.2.3|\"1.2.3\"",
                "100m|\"100m\"",
                "08|8.0",
                "!!str 1|\"1\"",
                "!!int 7|7",
                "s3://a/b|\"s3://a/b\"",
                "'+'|\"+\"",
                "y|\"y\""
            })
    void scalarsMeanWhatTheyMeanToKubernetes(String yaml, String json) {
        assertThat(ManifestReader.parse("a: " + yaml, "f").get(0).get("a")).hasToString(json);
    }

    @Test
    void anchorsAndMergesAreFollowed() {
        String text = "base: &b {x: 1, y: {z: 2}}\nown: {<<: *b, x: 3}\nboth: {<<: [{x: 8}, *b]}\nsame: *b";
        assertThat((JsonNode) ManifestReader.parse(text, "f").get(0))
                .hasToString(
                        "{\"base\":{\"x\":1,\"y\":{\"z\":2}},"
                                + "\"own\":{\"x\":3,\"y\":{\"z\":2}},\"both\":{\"x\":8,\"y\":{\"z\":2}},\"same\":{\"x\":1,\"y\":{\"z\":2}}}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'a: 1~b: [1, 2'|f:2: expected ',' or ']', but got <stream end>, at column 9",
                "'a: 1~~\tb: 2'|f:3: found character '\\t(TAB)' that cannot start any token. (Do not use \\t(TAB) for"
                        + " indentation), at column 1",
                "'a: 1~b: 2~a: 3'|'f:3: the key \"a\" is duplicated, first in line 1'",
                "'a: *x'|f:1: the alias *x names no anchor that ends before it",
                "'a: &x [*x]'|f:1: the alias *x names no anchor that ends before it",
                "'a: 1~--- ~? {b: 1}~: 2'|'f:3: a key must be a string, not an object or a list'",
                "'~a: .inf'|f:2: .inf cannot be written in JSON; put it in quotes if it is a string",
                "'a: !!java/object x'|f:1: the tag tag:yaml.org,2002:java/object is not supported",
                "'a: !!int x'|'f:1: the string \"x\" is not of the type tag:yaml.org,2002:int'",
                "'a: {<<: 5}'|'f:1: << takes an object or a list of objects, found 5'",
                "'- a'|'f: document 1 is a list, not an object'"
            })
    void errorsAreReportedWithTheirLine(String text, String message) {
        assertThatThrownBy(() -> ManifestReader.parse(text.replace('~', '\n'), "f"))
                .isInstanceOf(ServingException.class)
                .hasMessage(message);
    }

    @Test
    void aliasBombsAreRejected() {
        StringBuilder text = new StringBuilder("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for (int i = 1; i < 12; i++) {
            text.append("a").append(i).append(": &a").append(i).append(" [");
            text.append(("*a" + (i - 1) + ", ").repeat(9))
                    .append("*a")
                    .append(i - 1)
                    .append("]\n");
        }
        assertThatThrownBy(() -> ManifestReader.parse(text.toString(), "f"))
                .isInstanceOf(ServingException.class)
                .hasMessageEndingWith("more than 1000000 values, aliases counted each time");
    }

    @Test
    void depthAndSizeAreBounded() {
        assertThatThrownBy(() -> ManifestReader.parse("a: " + "[".repeat(5000), "f"))
                .isInstanceOf(ServingException.class)
                .hasMessage("f:1: nested deeper than 100 levels");
        assertThatThrownBy(() -> ManifestReader.parse("{\"a\":" + "[".repeat(5000), "f"))
                .isInstanceOf(ServingException.class)
                .hasMessage("f:1: nested deeper than 100 levels");
        assertThatThrownBy(() -> ManifestReader.parse("#".repeat(ManifestReader.MOST_CHARACTERS + 1), "f"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("at most");
    }
}
