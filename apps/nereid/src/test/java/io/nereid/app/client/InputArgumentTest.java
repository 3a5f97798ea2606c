// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class InputArgumentTest {
    @Test
    void aFlatListTakesTheModelsShape() throws Exception {
        assertThat(input("INT32", "[-1,4]", "1..8").toString())
                .isEqualTo("{\"name\":\"x\",\"shape\":[2,4],\"datatype\":\"INT32\",\"data\":[1,2,3,4,5,6,7,8]}");
        assertThat(input("FP32", "[-1,-1]", "1,2.5").path("shape").toString()).isEqualTo("[1,2]");
    }

    @Test
    void aNestedListKeepsItsShape() throws Exception {
        JsonNode x = input("FP32", "[-1,2]", "[[1,2],[3,4],[5,6]]");
        assertThat(x.path("shape").toString()).isEqualTo("[3,2]");
        assertThat(x.path("data").toString()).isEqualTo("[1,2,3,4,5,6]");
    }

    @Test
    void textNeedsNoQuotes() throws Exception {
        assertThat(input("BYTES", "[-1,1]", "hello there").path("data").toString())
                .isEqualTo("[\"hello there\"]");
        assertThat(input("BYTES", "[-1,1]", "42").path("data").toString()).isEqualTo("[\"42\"]");
    }

    @Test
    void nonsenseIsRefusedWithAnExample() {
        assertThatThrownBy(() -> input("FP32", "[-1]", "one,two")).hasMessageContaining("neither JSON nor a list");
    }

    @Test
    void npyFilesKeepTheirShape(@TempDir Path dir) throws Exception {
        String head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
        ByteBuffer file = ByteBuffer.allocate(10 + head.length() + 12).order(ByteOrder.LITTLE_ENDIAN);
        file.put((byte) 0x93)
                .put("NUMPY".getBytes(StandardCharsets.US_ASCII))
                .put((byte) 1)
                .put((byte) 0);
        file.putShort((short) head.length()).put(head.getBytes(StandardCharsets.US_ASCII));
        file.putFloat(1).putFloat(2.5f).putFloat(-3);
        Path npy = dir.resolve("x.npy");
        Files.write(npy, file.array());
        assertThat(input("FP32", "[-1,3]", "@" + npy).toString())
                .isEqualTo("{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[1.0,2.5,-3.0]}");
        Files.write(npy, new byte[] {1, 2, 3});
        assertThatThrownBy(() -> input("FP32", "[-1,3]", "@" + npy)).hasMessageContaining("is not an .npy file");
    }

    @Test
    void aShapeThatIsNotOneIsNamed(@TempDir Path dir) throws Exception {
        Path npy = dir.resolve("x.npy");
        for (String shape :
                List.of("(1 3,)", "(99999999999999999999,)", "(4611686018427387904, 4)", "(2147483648, 8589934592)")) {
            String head = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
            ByteBuffer file = ByteBuffer.allocate(10 + head.length()).order(ByteOrder.LITTLE_ENDIAN);
            file.put((byte) 0x93)
                    .put("NUMPY".getBytes(StandardCharsets.US_ASCII))
                    .put((byte) 1)
                    .put((byte) 0);
            file.putShort((short) head.length()).put(head.getBytes(StandardCharsets.US_ASCII));
            Files.write(npy, file.array());
            assertThatThrownBy(() -> input("FP32", "[-1,3]", "@" + npy))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining(npy.toString());
        }
    }

    private static JsonNode input(String dataType, String shape, String value) throws Exception {
        JsonNode spec = ServerClient.JSON.readTree(
                "{\"name\":\"x\",\"datatype\":\"" + dataType + "\",\"shape\":" + shape + "}");
        return new InputArgument(spec).parse(value);
    }
}
