// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigTextTest {
    private static final String TEXT = """
            # count: 7 is not a field, nor is instance_group { }
            name: "m # not a comment \\" {"
            max_batch_size: 8 # rows
            dynamic_batching {
              # the delay of before
              max_queue_delay_microseconds: 5
              preferred_batch_size: [ 4, 8 ], preserve_ordering: true
            }
            instance_group [
              { count: 2 kind: KIND_CPU name: "a" }
            ]
            parameters: { key: "other", value: { string_value: "1" } }
            parameters [ { key: "intra_op_thread_count" value: { string_value: "1" } } ]
            """;

    @Test
    void aScalarIsReplacedWhereItStands() {
        ConfigText text = new ConfigText(TEXT);
        text.set("max_batch_size", "16");
        assertThat(text.text()).isEqualTo(TEXT.replace("max_batch_size: 8 #", "max_batch_size: 16 #"));
    }

    @Test
    void aNewFieldIsAddedAtTheEnd() {
        ConfigText text = new ConfigText(TEXT);
        text.set("platform", "\"x\"");
        assertThat(text.text()).isEqualTo(TEXT + "platform: \"x\"\n");
        ConfigText empty = new ConfigText("");
        empty.set("platform", "\"x\"");
        assertThat(empty.text()).isEqualTo("platform: \"x\"\n");
        ConfigText open = new ConfigText("name: \"a\"");
        open.set("platform", "\"x\"");
        assertThat(open.text()).isEqualTo("name: \"a\" platform: \"x\" ");
    }

    @Test
    void aMessageKeepsItsOtherFieldsAndComments() {
        ConfigText text = new ConfigText(TEXT);
        ConfigText body = new ConfigText(text.body("dynamic_batching"));
        body.set("max_queue_delay_microseconds", "100");
        body.remove("preferred_batch_size");
        text.setBody("dynamic_batching", body.text());
        assertThat(text.text())
                .isEqualTo(TEXT.replace("microseconds: 5\n", "microseconds: 100\n")
                        .replace("preferred_batch_size: [ 4, 8 ], ", ""));
    }

    @Test
    void theOnlyElementOfAListIsAMessageToo() {
        ConfigText text = new ConfigText(TEXT);
        ConfigText group = new ConfigText(text.body("instance_group"));
        group.set("count", "4");
        text.setBody("instance_group", group.text());
        assertThat(text.text()).isEqualTo(TEXT.replace("{ count: 2", "{ count: 4"));
    }

    @Test
    void anEntryOfAMapIsReplacedOrAdded() {
        ConfigText text = new ConfigText(TEXT);
        text.setEntry("parameters", "intra_op_thread_count", "{ string_value: \"2\" }");
        assertThat(text.text())
                .isEqualTo(TEXT.replace(
                        "thread_count\" value: { string_value: \"1\" }",
                        "thread_count\" value: { string_value: \"2\" }"));
        text.setEntry("parameters", "third", "{ string_value: \"3\" }");
        assertThat(text.text()).endsWith("parameters { key: \"third\" value { string_value: \"3\" } }\n");
    }

    @ParameterizedTest
    @CsvSource({
        "a: 1 a: 2 b: 3, a: 5 b: 3",
        "a <x: 1> b: 3, a : 5 b: 3",
        "'a { s: \"}\" } b: 3', a : 5 b: 3",
        "'b: \"x\" \"y\" a: -1.5e+3f', 'b: \"x\" \"y\" a: 5'",
        "'b: inf; a: \"\\\"\"', 'b: inf; a: 5'"
    })
    void valuesOfEveryFormAreSkippedWhole(String before, String after) {
        ConfigText text = new ConfigText(before);
        text.set("a", "5");
        assertThat(text.text().strip().replaceAll(" +", " ")).isEqualTo(after);
    }
}
