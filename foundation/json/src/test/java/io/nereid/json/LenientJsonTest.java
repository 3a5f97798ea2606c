// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LenientJsonTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{'a': 'it\\'s \"b\"'} | {\"a\": \"it's \\\"b\\\"\"}",
                "{a: 1, b_2 : [1, 2,], C: {d: true,} ,} | {\"a\": 1, \"b_2\" : [1, 2 ], \"C\": {\"d\": true }  }",
                "{\"a\": \"\\U0041 {b: 'c',}\"} | {\"a\": \"\\u0041 {b: 'c',}\"}",
                "{a: null, b: false, 'c': \"d\"} | {\"a\": null, \"b\": false, \"c\": \"d\"}",
            })
    void deviationsBecomeStandard(String given, String standard) {
        assertThat(LenientJson.standard(given)).isEqualTo(standard);
    }

    @Test
    void controlCharactersInStringsAreEscaped() {
        assertThat(LenientJson.standard("{\"a\": \"b\n\u0001\u001f\",\n\"c\": 1}"))
                .isEqualTo("{\"a\": \"b\\u000a\\u0001\\u001f\",\n\"c\": 1}");
    }

    /** Texts that are standard, and others that protobuf's parser refuses as well. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{\"a\": [1, -2.5e3, true, null, \"\\\"\\\\\\u0041'\"], \"b\": {}}",
                "{,}",
                "[,]",
                "[1,,]",
                "{\"a\":,}",
                "{true: 1}",
                "{null: 1}",
                "{1a: 1}",
                "{\"a\": word}",
                "[a: 1]",
                "{\"a\": \"unended",
                "{\"a\": \"\\",
                "{a-b: 1}",
            })
    void othersStayAsTheyAre(String text) {
        assertThat(LenientJson.standard(text)).isSameAs(text);
    }
}
