// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LiteralTextTest {
    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
            {0: 0.0095, 1: 0.9905}             | {"0": 0.0095, "1": 0.9905}
            [[{0: '0.1000'}, {1: '0.9'}]]      | [[{"0": "0.1000"}, {"1": "0.9"}]]
            {0: -1.5e-05}                      | {"0": -1.5e-05}
            [{"word": "a 'b' 1: \\"c\\"", "n": 1}] | [{"word": "a 'b' 1: \\"c\\"", "n": 1}]
            ['it\\'s "x"']                      | ["it's \\"x\\""]
            """)
    void literalsOfPythonBecomeJsonAndJsonStays(String text, String json) {
        assertThat(new String(LiteralText.toJson(text.getBytes(StandardCharsets.UTF_8)), StandardCharsets.UTF_8))
                .isEqualTo(json);
    }
}
