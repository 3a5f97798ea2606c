// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backends.tensorflow.SavedModelFile.MetaGraph;
import io.nereid.backends.tensorflow.SavedModelFile.TensorFacts;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Recognition, validation and auto-completion of models without TensorFlow's library. */
class RecognitionTest {
    @TempDir
    Path directory;

    @Test
    void bothLayoutsOfASavedModelAndGraphsAreRecognised() throws Exception {
        TensorflowBackend backend = new TensorflowBackend();
        assertThat(backend.platforms()).containsExactly("tensorflow_savedmodel", "tensorflow_graphdef");
        assertThat(backend.recognises(Models.root().resolve("half_plus_two/1/saved_model.pb")))
                .isTrue();
        assertThat(backend.recognises(Models.root().resolve("functions/1/model.savedmodel")))
                .isTrue();
        assertThat(backend.recognises(Models.root().resolve("graph/1/model.graphdef")))
                .isTrue();
        assertThat(backend.recognises(Models.root().resolve("graph/1"))).isFalse();
        assertThat(backend.recognises(Files.writeString(directory.resolve("model.pb"), "text")))
                .isFalse();
        assertThat(backend.recognises(directory.resolve("absent.pb"))).isFalse();
    }

    @Test
    void tagsAndSignaturesAreReadWithoutTheEngine() throws Exception {
        MetaGraph graph = SavedModelFile.read(Models.root().resolve("half_plus_two/1/saved_model.pb"))
                .get(0);
        assertThat(graph.tags()).containsExactly("serve");
        TensorFacts x = graph.signatures().get("serving_default").inputs().get(0);
        assertThat(x.name()).isEqualTo("x");
        assertThat(x.tensor()).isEqualTo("x:0");
        assertThat(x.shape()).isEqualTo(Shape.of(-1, 1));
        assertThat(graph.signatures().get("regress_x_to_y").inputs().get(0).shape())
                .isNull();
        List<MetaGraph> two = SavedModelFile.read(Models.root().resolve("two_tags/1/saved_model.pb"));
        assertThat(two).extracting(g -> String.join(",", g.tags())).containsExactly("serve", "other,serve");
        MetaGraph defaults = SavedModelFile.read(Models.root().resolve("defaults/1/saved_model.pb"))
                .get(0);
        assertThat(defaults.signatures().get("serving_default").inputs().get(0).defaultValue())
                .isNotNull();
    }

    @Test
    void damagedFilesAreRefusedInWords() throws Exception {
        byte[] whole = Files.readAllBytes(Models.root().resolve("functions/1/model.savedmodel/saved_model.pb"));
        Random random = new Random(7);
        for (int i = 0; i < 2000; i++) {
            byte[] bytes = i % 2 == 0 ? Arrays.copyOf(whole, random.nextInt(whole.length)) : whole.clone();
            for (int k = 0; bytes.length > 0 && k < i % 5; k++) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            Path file = Files.write(directory.resolve("saved_model.pb"), bytes);
            try {
                SavedModelFile.read(file);
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.remedy()).isNotBlank();
            }
        }
    }

    @Test
    void aVersionWithoutAModelSaysWhatIsExpected() throws Exception {
        Files.createDirectories(directory.resolve("bad/1"));
        assertThatThrownBy(() -> new TensorflowBackend()
                        .load(
                                Models.source("bad", directory),
                                ModelConfig.unspecified("bad"),
                                new BackendContext(1, directory, Map.of())))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.describe()).contains("model.savedmodel").contains("saved_model.pb");
                });
    }
}
