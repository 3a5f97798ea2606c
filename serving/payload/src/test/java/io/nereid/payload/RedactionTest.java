// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RedactionTest {
    private static String clean(String paths, String body) {
        byte[] clean = Redaction.of(paths).clean(body.getBytes(StandardCharsets.UTF_8));
        return clean == null ? "withheld" : new String(clean, StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        $.a              | {"a":1,"b":{"a":2}}         | {"a":"#","b":{"a":2}}
        $.b.a            | {"a":1,"b":{"a":[2]}}       | {"a":1,"b":{"a":"#"}}
        $['a b'].c       | {"a b":{"c":1},"c":2}       | {"a b":{"c":"#"},"c":2}
        $["a.b"]         | {"a.b":1}                   | {"a.b":"#"}
        $.x[*].n         | {"x":[{"n":1},{"m":2},3]}   | {"x":[{"n":"#"},{"m":2},3]}
        $.x[1]           | {"x":[1,2,3]}               | {"x":[1,"#",3]}
        $.x[9]           | {"x":[1.10,2]}              | {"x":[1.10,2]}
        $.x[*][0]        | {"x":[[1,2],[3,4]]}         | {"x":[["#",2],["#",4]]}
        $.*.k            | {"p":{"k":1},"q":{"k":2}}   | {"p":{"k":"#"},"q":{"k":"#"}}
        $[*].k           | [{"k":1e400,"v":1.10}]      | [{"k":"#","v":1.10}]
        $                | {"a":1}                     | "#"
        $.a, $.b, header | {"a":1,"b":2,"header":3}    | {"a":"#","b":"#","header":3}
        $.gone           | {"a": 1 }                   | {"a": 1 }
        """)
    void pathsFindTheirValues(String paths, String body, String expected) {
        assertThat(clean(paths, body)).isEqualTo(expected.replace("\"#\"", "\"[redacted]\""));
    }

    @Test
    void aBodyThatCannotBeParsedIsNotSent() {
        assertThat(clean("$.a", "{\"a\":1")).isEqualTo("withheld");
        assertThat(clean("$.a", "{\"a\":1} {\"a\":2}")).isEqualTo("withheld");
        assertThat(clean("$.a.b", "{\"a\":{\"b\":1},\"a\":{}}")).isEqualTo("withheld");
        assertThat(clean("$.a", "[".repeat(100_000))).isEqualTo("withheld");
        assertThat(Redaction.of("$.a").clean(new byte[] {(byte) 0xff, 0})).isNull();
    }

    @Test
    void headersAloneLeaveBodiesAsTheyAre() {
        Redaction redaction = Redaction.of("Authorization,x-key");
        byte[] body = {(byte) 0xff};
        assertThat(redaction.clean(body)).isSameAs(body);
        assertThat(redaction.header("authorization")).isTrue();
        assertThat(redaction.header("accept")).isFalse();
    }
}
