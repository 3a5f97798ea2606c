// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import io.nereid.repository.PrettyJson;
import io.nereid.repository.config.ModelConfigReader.Result;
import io.nereid.repository.problem.Problem;
import io.nereid.repository.problem.ProblemCollector;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * The cases under {@code src/test/resources/corpus}, one directory each, which is the directory of a model {@code m}:
 *
 * <ul>
 *   <li>{@code config.pbtxt} or {@code config.json}, and the files it names;
 *   <li>{@code expected}: every problem, one a line, as {@code ERROR line:column message}, in any order; {@code $MODEL} is
 *       the model's directory; a first line {@code # gpus} stands for a server that can use GPUs;
 *   <li>{@code expected.json}, where there is no error: the whole configuration as the server shows it.
 * </ul>
 *
 * <p>A new case is written with its messages; run with {@code -Dnereid.corpus.record=true} the test adds the places to
 * messages that are as expected, and writes the JSON. Review both before committing them.
 */
class ConfigCorpusTest {
    private static final Path CORPUS = Path.of("src/test/resources/corpus");
    private static final boolean RECORD = Boolean.getBoolean("nereid.corpus.record");
    private static final Pattern LINE = Pattern.compile("(ERROR|WARNING) (?:(\\d+:\\d+) )?(.*)");

    /** A case, as stored in its directory. */
    private static GpuInventory inventory(boolean gpus) {
        return gpus ? GpuInventory.UNCHECKED : GpuInventory.NONE;
    }

    private record Case(Path directory, boolean json, boolean gpus, List<String> expected) {
        static Case of(Path directory) {
            List<String> lines = read(directory.resolve("expected")).lines().toList();
            boolean gpus = lines.contains("# gpus");
            return new Case(
                    directory,
                    Files.exists(directory.resolve("config.json")),
                    gpus,
                    lines.stream().filter(l -> !l.startsWith("#")).toList());
        }

        Result run(ProblemCollector problems) {
            Path file = directory.resolve(json ? "config.json" : "config.pbtxt");
            String text = read(file);
            return json
                    ? ModelConfigReader.readJson(file, text, directory, "m", true, inventory(gpus), problems)
                    : ModelConfigReader.read(file, text, directory, "m", true, inventory(gpus), problems);
        }

        Path document() {
            return directory.resolve("expected.json");
        }
    }

    private static Stream<Path> directories() {
        try (Stream<Path> list = Files.list(CORPUS)) {
            return list.sorted().toList().stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @TestFactory
    Stream<DynamicTest> everyCaseGivesWhatIsExpected() {
        return directories()
                .map(d -> dynamicTest(d.getFileName().toString(), () -> {
                    Case c = Case.of(d);
                    ProblemCollector problems = new ProblemCollector();
                    Result result = c.run(problems);
                    List<String> actual = problems.list().stream()
                            .map(p -> p.severity() + " " + p.line() + ":" + p.column() + " "
                                    + p.message().replace(d.toString(), "$MODEL"))
                            .toList();
                    if (RECORD) {
                        assertThat(actual.stream().map(ConfigCorpusTest::bare))
                                .containsExactlyInAnyOrderElementsOf(c.expected.stream()
                                        .map(ConfigCorpusTest::bare)
                                        .toList());
                        List<String> lines = new ArrayList<>(c.gpus ? List.of("# gpus") : List.of());
                        lines.addAll(actual);
                        write(d.resolve("expected"), String.join("\n", lines) + (lines.isEmpty() ? "" : "\n"));
                    } else {
                        assertThat(actual).containsExactlyInAnyOrderElementsOf(c.expected);
                    }
                    assertThat(Files.exists(c.document())).isEqualTo(!problems.hasErrors());
                    if (!problems.hasErrors()) {
                        String document = PrettyJson.of(ModelConfigDocument.of(result.config()));
                        if (RECORD) {
                            write(c.document(), document);
                        }
                        assertThat(document).isEqualTo(read(c.document()));
                    }
                }));
    }

    /** The document that the server shows can be read again and has the same meaning. */
    @TestFactory
    Stream<DynamicTest> everyDocumentReadAgainGivesItself() {
        return directories()
                .filter(d -> Files.exists(d.resolve("expected.json")))
                .map(d -> dynamicTest(d.getFileName().toString(), () -> {
                    Case c = Case.of(d);
                    var config = c.run(new ProblemCollector()).config();
                    Map<String, Object> document = ModelConfigDocument.of(config);
                    var completed = config.toBuilder().document(document).build();
                    assertThat(ModelConfigDocument.of(completed)).isEqualTo(document);

                    ProblemCollector problems = new ProblemCollector();
                    Result again = ModelConfigReader.readJson(
                            c.document(), PrettyJson.of(document), d, "m", true, inventory(c.gpus), problems);
                    assertThat(problems.list()).noneMatch(Problem::isError);
                    assertThat(PrettyJson.of(ModelConfigDocument.of(again.config())))
                            .isEqualTo(PrettyJson.of(document));
                }));
    }

    @Test
    void thereAreCasesOfEverySort() {
        List<String> sorts = directories()
                .map(d -> d.getFileName().toString().replaceAll("-.*", ""))
                .distinct()
                .toList();
        assertThat(sorts)
                .contains(
                        "syntax", "type", "top", "refused", "input", "output", "batch", "dynamic", "sequence", "state")
                .contains("group", "metrics", "warmup", "ensemble", "json", "model");
        assertThat(directories().count()).isGreaterThan(200);
    }

    private static String bare(String line) {
        Matcher m = LINE.matcher(line);
        assertThat(m.matches()).as(line).isTrue();
        return m.group(1) + " " + m.group(3);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void write(Path file, String text) {
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
