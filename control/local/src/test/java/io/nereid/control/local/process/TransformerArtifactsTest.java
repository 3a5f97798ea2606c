// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.Process;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.local.workload.Fakes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.NullMarked;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@NullMarked
class TransformerArtifactsTest {
    private static final Scaling ONE = new Scaling(1, 0, "concurrency", null, "none", Map.of());

    @TempDir
    Path files;

    @TempDir
    Path directory;

    private final List<String> log = new ArrayList<>();

    private static Workload.Transformer form(@Nullable String className, @Nullable String file, String... settings) {
        Map<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < settings.length; i += 2) {
            all.put(settings[i], settings[i + 1]);
        }
        Workload.Artifact where = new Workload.Artifact("s3://b/steps", "/mnt/models", null, Map.of(), null, null);
        return new Workload.Transformer(className, file, all, List.of(where));
    }

    private Path file(String name) throws IOException {
        Path file = files.resolve(name);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, "");
    }

    private Path find(@Nullable String file) {
        return TransformerArtifacts.find(form(null, file), List.of(files));
    }

    @Test
    void theFileThatIsNamedIsMeant() throws IOException {
        file("transformer.py");
        Path named = file("lib/other.jar");

        assertThat(find("lib/other.jar")).isEqualTo(named);
        assertThat(TransformerArtifacts.isPython(named)).isFalse();
    }

    @Test
    void theFileOfTheExpectedNameIsMeantAmongOthers() throws IOException {
        file("words.py");
        Path expected = file("transformer.py");

        assertThat(find(null)).isEqualTo(expected);
        assertThat(TransformerArtifacts.isPython(expected)).isTrue();
    }

    @Test
    void theOnlyJarIsMeant() throws IOException {
        file("README.md");
        Path only = file("steps-1.0.jar");

        assertThat(find(null)).isEqualTo(only);
    }

    @Test
    void aSingleFileIsMeantItself() throws IOException {
        Path one = file("steps.py");

        assertThat(TransformerArtifacts.find(form(null, null), List.of(one))).isEqualTo(one);
        assertThat(TransformerArtifacts.find(form(null, "steps.py"), List.of(one)))
                .isEqualTo(one);
        assertThatThrownBy(() -> TransformerArtifacts.find(form(null, "other.py"), List.of(one)))
                .hasMessageContaining("the artifact is the single file 'steps.py'");
        assertThatThrownBy(() -> TransformerArtifacts.find(form(null, null), List.of(file("model.onnx"))))
                .hasMessageContaining("'model.onnx' is neither a .jar nor a .py file");
    }

    @Test
    void moreThanOneFileIsRejectedWithTheirNames() throws IOException {
        file("transformer.jar");
        file("transformer.py");

        assertThatThrownBy(() -> find(null))
                .hasMessageContaining("more than one .jar or .py file: transformer.jar, transformer.py");
    }

    @Test
    void aFileThatIsMissingOrOutsideIsRejectedWithTheExistingOnes() throws IOException {
        file("a.txt");
        Path outside = Files.writeString(directory.resolve("steps.py"), "");

        assertThatThrownBy(() -> find("steps.jar"))
                .hasMessageContaining("does not contain the file 'steps.jar', but a.txt");
        String around = files.relativize(outside).toString();
        assertThatThrownBy(() -> find(around)).hasMessageContaining("it does not contain the file");
        assertThatThrownBy(() -> find(null)).hasMessageContaining("does not contain a .jar or .py file");
    }

    private ProcessContainer process(Path file, Workload.Transformer form) {
        Workload workload = Fakes.workload("iris-t-1", Component.TRANSFORMER, form, ONE);
        Workload process = TransformerArtifacts.process(workload, form, file, directory, log::add);
        assertThat(process.revision()).isEqualTo("iris-t-1");
        assertThat(((Process) process.form()).artifacts()).isEqualTo(form.artifacts());
        return ((Process) process.form()).containers().get(0);
    }

    @Test
    void aPythonFileBecomesAProcessOfOurProgram() throws IOException {
        Path file = file("transformer.py");

        ProcessContainer container = process(file, form("Words", null, "a", "$(HOME)"));

        Path program = directory.resolve("programs/transformer_server.py").toAbsolutePath();
        assertThat(container.command())
                .containsExactly("python3", program.toString(), "--file", file.toString(), "--class", "Words");
        assertThat(Files.readString(program)).contains("class Steps").contains("--predictor_host");
        // a setting that looks like a variable is not expanded
        String config = container.environment().get("NEREID_TRANSFORMER_CONFIG");
        assertThat(ProcessSpecBuilder.expand(config, Map.of("HOME", "/root"), 8))
                .isEqualTo("{\"a\":\"$(HOME)\"}");
        assertThat(log).isEmpty();
    }

    @Test
    void aVirtualEnvironmentBesideTheFileIsUsed() throws IOException {
        Path file = file("transformer.py");
        Path python = file("venv/bin/python");
        file("requirements.txt");
        assertThat(python.toFile().setExecutable(true)).isTrue();

        assertThat(process(file, form(null, null)).command()).startsWith(python.toString());
        assertThat(log).isEmpty();
    }

    @Test
    void packagesBesideTheFileAreUsed() throws IOException {
        Path file = file("transformer.py");
        file("requirements/numpy/__init__.py");

        assertThat(process(file, form(null, null)).command())
                .containsSequence("--packages", files.resolve("requirements").toString());
    }

    @Test
    void requirementsThatAreNotInstalledAreReported() throws IOException {
        file("requirements.txt");

        ProcessContainer unused = process(file("transformer.py"), form(null, null));

        assertThat(log).singleElement().asString().contains("the packages of requirements.txt are not installed");
    }

    @Test
    void aProgramOfAnotherVersionIsReplaced() throws IOException {
        Path old = directory.resolve("programs/transformer_server.py");
        Files.createDirectories(old.getParent());
        Files.writeString(old, "old");

        ProcessContainer unused = process(file("transformer.py"), form(null, null));

        assertThat(Files.readString(old)).contains("class Steps");
    }
}
