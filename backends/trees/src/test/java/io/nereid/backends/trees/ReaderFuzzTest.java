// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backends.trees.forest.ForestBuilder;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.backends.trees.format.TreeFile;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Files of any content are read or rejected, without taking more memory than their size justifies. */
class ReaderFuzzTest {
    private static final int ROUNDS = 400;

    private int read;
    private int rejected;

    private void read(Path name, byte[] bytes, int length, String backend) {
        byte[] slack = Arrays.copyOf(bytes, length + JsonReader.SLACK);
        try {
            ParsedModel model = TreeFile.read(name, slack, length, backend, true);
            if (model.weights() == null) {
                new ForestBuilder(model.trees(), ForestBuilder.Flavor.LESS_OR_EQUAL).build();
            }
            read++;
        } catch (ServingException e) {
            assertThat(e.remedy()).isNotBlank();
            rejected++;
        }
    }

    private void fuzz(List<Path> models, String backend, long seed) {
        Random random = new Random(seed);
        for (int i = 0; i < ROUNDS; i++) {
            Path model = models.get(random.nextInt(models.size()));
            byte[] bytes = References.bytes(model);
            int length = bytes.length;
            switch (random.nextInt(4)) {
                case 0:
                    length = random.nextInt(length);
                    break;
                case 1:
                    for (int n = 1 + random.nextInt(4); n > 0; n--) {
                        bytes[random.nextInt(length)] = (byte) random.nextInt(256);
                    }
                    break;
                case 2:
                    // Replacing digits by digits keeps the syntax and changes the values.
                    for (int n = 0; n < 200; n++) {
                        int at = random.nextInt(length);
                        if (bytes[at] >= '0' && bytes[at] <= '9') {
                            bytes[at] = (byte) ('0' + random.nextInt(10));
                        }
                    }
                    break;
                default:
                    int from = random.nextInt(length);
                    int to = random.nextInt(length);
                    System.arraycopy(bytes, from, bytes, to, Math.min(length - Math.max(from, to), random.nextInt(64)));
            }
            read(model, bytes, length, backend);
        }
    }

    @Test
    void damagedFilesAreReadOrRefused() {
        fuzz(References.models("xgboost"), XgboostBackend.NAME, 1);
        fuzz(References.models("lightgbm"), LightgbmBackend.NAME, 2);
        assertThat(read).isPositive();
        assertThat(rejected).isGreaterThan(ROUNDS / 4);
    }

    @Test
    void randomBytesBehindAGoodBeginningAreRefused() {
        Random random = new Random(3);
        for (int i = 0; i < 5 * ROUNDS; i++) {
            byte[] bytes = new byte[8 + random.nextInt(60)];
            random.nextBytes(bytes);
            String types = "{[}]$#SCHiUIlLdDTFZN";
            for (int n = 0; n < bytes.length; n++) {
                if (random.nextInt(3) > 0) {
                    bytes[n] = (byte) types.charAt(random.nextInt(types.length()));
                }
            }
            bytes[0] = '{';
            read(Path.of("model.ubj"), bytes, bytes.length, XgboostBackend.NAME);
        }
        assertThat(rejected).isEqualTo(5 * ROUNDS);
    }

    /** Each file declares more than it contains, nests deeply, or has sets of all categories. */
    @Test
    void hostileFilesTakeNoMemory() {
        byte[] key = {'{', 'i', 7, 'l', 'e', 'a', 'r', 'n', 'e', 'r'};
        hostile(key, new byte[] {'[', '$', 'd', '#', 'L', 0x7f, 0, 0, 0, 0, 0, 0, 0});
        hostile(key, new byte[] {'[', '$', 'Z', '#', 'l', 0x7f, 0, 0, 0});
        hostile(key, new byte[] {'S', 'L', 0x7f, 0, 0, 0, 0, 0, 0, 0});
        hostile(key, new byte[] {'S', 'L', -1, 0, 0, 0, 0, 0, 0, 0});
        byte[] nested = new byte[1 << 20];
        Arrays.fill(nested, (byte) '[');
        hostile(key, nested);
        byte[] objects = "{i\1a".repeat(1 << 18).getBytes(StandardCharsets.ISO_8859_1);
        hostile(new byte[0], objects);
        String json = new String(
                References.bytes(References.model("xgboost", "reg-squarederror-gbtree-missing-categorical.json")),
                StandardCharsets.UTF_8);
        byte[] wide = json.replaceAll("\"categories\":\\[\\d+", "\"categories\":[16777215")
                .getBytes(StandardCharsets.UTF_8);
        read(Path.of("model.json"), wide, wide.length, XgboostBackend.NAME);
        byte[] deep = "[".repeat(1 << 20).getBytes(StandardCharsets.UTF_8);
        deep[0] = '{';
        read(Path.of("model.json"), deep, deep.length, XgboostBackend.NAME);
        assertThat(read).isLessThanOrEqualTo(1);
    }

    private void hostile(byte[] beginning, byte[] rest) {
        byte[] bytes = Arrays.copyOf(beginning, beginning.length + rest.length);
        System.arraycopy(rest, 0, bytes, beginning.length, rest.length);
        int before = rejected;
        read(Path.of("model.ubj"), bytes, bytes.length, XgboostBackend.NAME);
        assertThat(rejected).isEqualTo(before + 1);
    }
}
