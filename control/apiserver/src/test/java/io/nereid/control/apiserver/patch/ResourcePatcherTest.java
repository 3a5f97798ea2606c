// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.patch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import org.junit.jupiter.api.Test;

/** JSON patches that are small and have a large result are refused before the memory is taken. */
class ResourcePatcherTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static ArrayNode copies(int count) {
        ArrayNode patch = JSON.createArrayNode();
        for (int i = 0; i < count; i++) {
            patch.addObject().put("op", "copy").put("from", "/data").put("path", "/data/x" + i);
        }
        return patch;
    }

    @Test
    void copiesThatDoubleTheResourceEachTimeAreRefused() throws Exception {
        JsonNode target = JSON.readTree("{\"data\":{\"a\":\"" + "b".repeat(100) + "\"}}");
        // Forty doublings of a hundred bytes are a hundred terabytes.
        assertThatThrownBy(() -> ResourcePatcher.json(target, copies(40)))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.describe()).contains("copies", "3145728");
                });
        assertThat(ResourcePatcher.json(target, copies(8)).path("data")).hasSize(9);
    }

    @Test
    void aPatchOfMoreThanTenThousandOperationsIsRefused() throws Exception {
        JsonNode target = JSON.readTree("{\"a\":1}");
        ArrayNode patch = JSON.createArrayNode();
        for (int i = 0; i < 10_001; i++) {
            patch.addObject().put("op", "test").put("path", "/a").put("value", 1);
        }
        assertThatThrownBy(() -> ResourcePatcher.json(target, patch))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains("10001 operations", "10000"));
        patch.remove(0);
        assertThat(ResourcePatcher.json(target, patch)).isEqualTo(target);
    }

    @Test
    void theErrorOfAFailedTestDoesNotRepeatTheResource() throws Exception {
        JsonNode target = JSON.readTree("{\"a\":\"" + "b".repeat(100_000) + "\"}");
        JsonNode patch = JSON.readTree("[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]");
        assertThatThrownBy(() -> ResourcePatcher.json(target, patch))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.getMessage())
                                .startsWith("the JSON patch's test of '/a' failed: it is \"bbb")
                                .hasSizeLessThan(500));
    }
}
