// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.nereid.repository.Fakes;
import io.nereid.repository.layout.LocalFileSystems;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Trees that the kernel watches. An event takes a moment to arrive, so a test polls until it has. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ModelTreesTest {
    private static final int MODELS = 20;
    private static final long LONG_AGO = 1_700_000_000_000L;

    @TempDir
    Path root;

    @TempDir
    Path elsewhere;

    private final ModelTrees trees = new ModelTrees(Duration.ofMillis(100), 0);
    private final List<ModelTree> models = new ArrayList<>();

    @BeforeEach
    void models() {
        assumeThat(LocalFileSystems.contains(root)).isTrue();
        for (int i = 0; i < MODELS; i++) {
            Fakes.write(root.resolve("m" + i + "/config.pbtxt"), "max_batch_size: 4");
            Fakes.write(root.resolve("m" + i + "/1/model.onnx"), "v1");
        }
        Fakes.touch(root, LONG_AGO);
    }

    private void start() {
        for (int i = 0; i < MODELS; i++) {
            models.add(trees.add(root.resolve("m" + i)));
        }
        assertThat(poll()).hasSize(models.size());
        assertThat(poll()).as("the first poll with a watcher").isEmpty();
        assertThat(trees.watched()).isPositive();
    }

    @AfterEach
    void close() {
        trees.close();
    }

    private List<ModelTree> poll() {
        trees.begin();
        List<ModelTree> changed = new ArrayList<>();
        for (ModelTree tree : models) {
            if (trees.changed(tree)) {
                changed.add(tree);
            }
        }
        changed.forEach(tree -> {
            var unused = trees.capture(tree);
        });
        return changed;
    }

    /** Polls until something has changed. */
    private List<ModelTree> changed() {
        List<ModelTree> changed = poll();
        while (changed.isEmpty()) {
            Thread.onSpinWait();
            changed = poll();
        }
        return changed;
    }

    @Test
    void aPollThatFindsNothingReadsTheParentAndOneModelInTurn() {
        start();
        assertThat(trees.watched()).isEqualTo(2 * MODELS);
        for (int i = 0; i < 2 * MODELS; i++) {
            long before = trees.stampReads();
            assertThat(poll()).isEmpty();
            assertThat(trees.stampReads() - before).isBetween(1L, 1L + 4);
        }
    }

    @Test
    void aFileThatChangesInPlaceWithoutChangingItsStampIsNotified() {
        start();
        Fakes.write(root.resolve("m7/1/model.onnx"), "v2");
        Fakes.touch(root.resolve("m7"), LONG_AGO);
        assertThat(changed()).containsExactly(models.get(7));
    }

    @Test
    void filesOfANewDirectoryAreNotified() throws IOException {
        start();
        Files.createDirectory(root.resolve("m7/2"));
        Fakes.touch(root.resolve("m7"), LONG_AGO);
        assertThat(changed()).containsExactly(models.get(7));
        while (!poll().isEmpty()) {
            Thread.onSpinWait();
        }
        Fakes.write(root.resolve("m7/2/model.onnx"), "v2");
        assertThat(changed()).containsExactly(models.get(7));
    }

    @Test
    void aDirectoryThatIsReplacedIsSeenByItsParent() throws IOException {
        start();
        Files.move(root.resolve("m7"), elsewhere.resolve("m7"));
        Files.move(root.resolve("m8"), root.resolve("m7"));
        assertThat(changed()).containsExactly(models.get(7), models.get(8));
        // Only the parent: a notification of the others might come late.
        Files.setLastModifiedTime(root, FileTime.fromMillis(LONG_AGO));
        while (!poll().isEmpty()) {
            Thread.onSpinWait();
        }
        Fakes.write(root.resolve("m7/1/model.onnx"), "v2");
        assertThat(changed()).containsExactly(models.get(7));
    }

    @Test
    void aModelThatDoesNotExistYetIsSeenByItsParent() {
        models.add(trees.add(root.resolve("later")));
        start();
        Fakes.write(root.resolve("later/1/model.onnx"), "v1");
        assertThat(changed()).containsExactly(models.get(0));
    }

    @Test
    void aTreeWithALinkIsReadAtEachPoll() throws IOException {
        Fakes.write(elsewhere.resolve("model.onnx"), "v1");
        Files.createSymbolicLink(root.resolve("m7/1/weights"), elsewhere.resolve("model.onnx"));
        Fakes.touch(elsewhere, LONG_AGO);
        Fakes.touch(root, LONG_AGO);
        start();
        Fakes.write(elsewhere.resolve("model.onnx"), "version 2");
        assertThat(poll()).containsExactly(models.get(7));
    }

    @Test
    void aFileWithASecondNameIsReadAtEachPoll() throws IOException {
        Files.createLink(elsewhere.resolve("second"), root.resolve("m7/1/model.onnx"));
        start();
        Fakes.write(elsewhere.resolve("second"), "version 2");
        assertThat(poll()).containsExactly(models.get(7));
    }

    @Test
    void theParentMayBeALinkThatIsMoved() throws IOException {
        Path link = elsewhere.resolve("models");
        Files.createSymbolicLink(link, root);
        Fakes.write(elsewhere.resolve("other/m7/1/model.onnx"), "v1");
        Fakes.touch(elsewhere.resolve("other"), LONG_AGO);
        models.add(trees.add(link.resolve("m7")));
        start();
        Path next = elsewhere.resolve("next");
        Files.createSymbolicLink(next, elsewhere.resolve("other"));
        Files.move(next, link, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        assertThat(poll()).containsExactly(models.get(0));
    }

    @Test
    void afterTheEndAllStampsAreCompared() {
        start();
        trees.close();
        assertThat(poll()).isEmpty();
        Fakes.write(root.resolve("m7/1/model.onnx"), "version 2");
        assertThat(poll()).containsExactly(models.get(7));
    }

    @Test
    void aForgottenTreeIsNoLongerWatched() {
        start();
        trees.remove(models.remove(0));
        assertThat(trees.watched()).isEqualTo(2 * (MODELS - 1));
    }
}
