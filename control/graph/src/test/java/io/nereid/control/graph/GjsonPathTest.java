// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class GjsonPathTest {
    private static final String DOCUMENT = """
        {"name": {"first": "Ada", "last": "King"}, "age": 36, "none": null, "fav.movie": "Metropolis",
         "children": ["Byron", "Anne", "Ralph"],
         "friends": [
           {"first": "Mary", "last": "Som", "age": 44, "nets": ["ig", "fb"], "ok": true},
           {"first": "Charles", "last": "Bab", "age": 68, "nets": ["fb"], "ok": false},
           {"first": "Jane", "last": "Mur", "age": 47, "nets": ["tw"], "ok": true}],
         "predictions": [{"label": "cat", "p": 0.9}, {"label": "dog", "p": 0.1}]}
        """;

    private static JsonNode tree(String text) throws Exception {
        return new ObjectMapper().readTree(text);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            quoteCharacter = '`',
            value = {
                "name.last; \"King\"",
                "age; 36",
                "none; null",
                "nothing; ",
                "name.nothing; ",
                "children.1; \"Anne\"",
                "children.7; ",
                "children.#; 3",
                "child*.2; \"Ralph\"",
                "c?ildren.0; \"Byron\"",
                "fav\\.movie; \"Metropolis\"",
                "friends.#.first; [\"Mary\",\"Charles\",\"Jane\"]",
                "friends.#.middle; []",
                "age.#; ",
                "age.#.x; ",
                "friends.1.last; \"Bab\"",
                "friends.#(last==\"Bab\").first; \"Charles\"",
                "friends.#(last=\"Bab\").first; \"Charles\"",
                "friends.#(last==\"X\").first; ",
                "friends.#(age>45)#.last; [\"Bab\",\"Mur\"]",
                "friends.#(age>45)#|0.last; \"Bab\"",
                "friends.#(age>100)#; []",
                "friends.#(age>100); ",
                "friends.#(first%\"M*\").last; \"Som\"",
                "friends.#(first!%\"M*\")#.last; [\"Bab\",\"Mur\"]",
                "friends.#(nets.#(==\"tw\")).first; \"Jane\"",
                "friends.#(ok==false).first; \"Charles\"",
                "friends.#(nets)#.age; [44,68,47]",
                "friends.#(age==\"44\"); ",
                "children.#(>=\"B\")#; [\"Byron\",\"Ralph\"]",
                "children|@reverse; [\"Ralph\",\"Anne\",\"Byron\"]",
                "name.@keys; [\"first\",\"last\"]",
                "[@this].#(age==36).name.first; \"Ada\"",
                "[@this].#(age==37); ",
                "predictions.#(label==\"cat\"); {\"label\":\"cat\",\"p\":0.9}",
                "predictions.#(p > 0.5).label; \"cat\"",
                "[age,name.first]; [36,\"Ada\"]",
                "{age,\"who\":name.first}; {\"age\":36,\"who\":\"Ada\"}",
                "friends.#.nets.@flatten|#; 3",
            })
    void pathsEvaluateAsInGjson(String path, String expected) throws Exception {
        JsonNode found = GjsonPath.parse(path).find(tree(DOCUMENT));
        if (expected == null) {
            assertThat(found).isNull();
        } else {
            assertThat(found).isEqualTo(tree(expected));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                ".",
                "a.",
                "a..b",
                "a.#(",
                "a.#(b==",
                "a.#(b==c d)x",
                "[a",
                "{a",
                "@nothing",
                "@pretty:{}",
                "!true",
                "a.#(b~true)"
            })
    void invalidPathsAreRejectedWithThePosition(String path) {
        assertThatThrownBy(() -> GjsonPath.parse(path))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("condition");
    }

    @Test
    void everyTextIsAPathOrIsRejected() throws Exception {
        Random random = new Random(7);
        String letters = "ab.#()[]{}|@\\*?\"=<>!%~0, ";
        JsonNode tree = tree("{\"a\":[{\"b\":1},{\"b\":2}],\"b\":{\"a\":\"x\"}}");
        for (int i = 0; i < 50_000; i++) {
            StringBuilder path = new StringBuilder();
            for (int n = random.nextInt(12); n >= 0; n--) {
                path.append(letters.charAt(random.nextInt(letters.length())));
            }
            try {
                Object unused = GjsonPath.parse(path.toString()).find(tree);
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            }
        }
    }

    @Test
    void nestingIsBounded() {
        assertThatThrownBy(() -> GjsonPath.parse("a.".repeat(40_000) + "a")).isInstanceOf(ServingException.class);
        assertThatThrownBy(() -> GjsonPath.parse("[".repeat(40_000))).isInstanceOf(ServingException.class);
    }
}
