// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.convert;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.app.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** {@code nereid convert}: files are looked at, never run. */
class ConvertCommandTest {
    @TempDir
    Path directory;

    private final StringWriter printed = new StringWriter();

    private int convert(Path file) {
        CommandLine program = Main.commandLine();
        program.setOut(new PrintWriter(printed));
        program.setErr(new PrintWriter(printed));
        return program.execute("convert", file.toString());
    }

    @Test
    void aModelThatIsAProgramIsNotRun() throws IOException {
        Path trace = directory.resolve("ran");
        Path model = Files.writeString(directory.resolve("model.py"), """
                open(%s, "w").close()
                class TritonPythonModel:
                    def execute(self, requests):
                        return []
                """.replace("%s", "\"" + trace + "\""));
        assertThat(convert(model)).as(printed::toString).isZero();
        assertThat(printed.toString()).contains("backend python").contains("nereid serve");
        assertThat(trace).doesNotExist();
    }

    @Test
    void anExportedProgramOfPytorchNamesTheCommandThatConvertsIt() throws IOException {
        Path program = directory.resolve("net.pt2");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(program))) {
            zip.putNextEntry(new ZipEntry("net/archive_format"));
            zip.putNextEntry(new ZipEntry("net/models/net.json"));
        }
        assertThat(convert(program)).isEqualTo(1);
        assertThat(printed.toString())
                .contains("'net.pt2' is a program of torch.export")
                .contains("torch.onnx.export(torch.export.load('" + program + "'), f='"
                        + directory.resolve("model.onnx") + "', dynamo=True)");
    }

    @Test
    void aFileThatIsNotAModelSaysWhatToDo() throws IOException {
        Path model = Files.writeString(directory.resolve("notes.txt"), "nothing");
        assertThat(convert(model)).isEqualTo(1);
        assertThat(printed.toString()).contains("notes.txt").contains("docs/FORMATS.md");
        printed.getBuffer().setLength(0);
        assertThat(convert(directory.resolve("absent.pkl"))).isEqualTo(1);
        assertThat(printed.toString()).contains("there is no file").contains("absent.pkl");
    }
}
