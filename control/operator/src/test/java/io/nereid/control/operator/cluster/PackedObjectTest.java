// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

class PackedObjectTest {
    private static ObjectNode map(String version, String value) throws Exception {
        return (ObjectNode) new ObjectMapper()
                .readTree("{\"kind\":\"ConfigMap\",\"metadata\":{\"resourceVersion\":\"" + version
                        + "\",\"name\":\"a\",\"uid\":\"u\"},\"data\":{\"a\":\"" + value + "\"}}");
    }

    @Test
    void theTreeThatIsPackedStaysAsItIs() throws Exception {
        ObjectNode tree = map("7", "x");
        String before = tree.toString();
        PackedObject packed = PackedObject.of(tree);
        assertThat(tree.toString()).isEqualTo(before);
        assertThat(packed.tree()).isEqualTo(tree);
        assertThat(packed.version()).isEqualTo(7);
        assertThat(packed.uid()).isEqualTo("u");
    }

    @Test
    void theVersionAloneMakesNoDifference() throws Exception {
        assertThat(PackedObject.of(map("7", "x")).isLike(PackedObject.of(map("8", "x"))))
                .isTrue();
        assertThat(PackedObject.of(map("7", "x")).isLike(PackedObject.of(map("7", "y"))))
                .isFalse();
    }

    @Test
    void aTreeThatWasCollectedIsReadAgain() throws Exception {
        PackedObject packed = PackedObject.of(map("7", "x"));
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        assertThat(packed.tree()).isEqualTo(map("7", "x"));
    }
}
