// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Process;
import io.nereid.control.core.Workload.ProcessContainer;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** What the files of a transformer are, and the process that runs those in Python. Stateless. */
final class TransformerFiles {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PROGRAM = "transformer_server.py";
    private static final String RESOURCE = "/io/nereid/control/local/" + PROGRAM;
    private static final String PYTHON = "transformer.py";
    private static final String JAR = "transformer.jar";
    private static final int SHOWN = 10;

    private TransformerFiles() {}

    static boolean isPython(Path file) {
        return file.toString().endsWith(".py");
    }

    /**
     * The jar or the Python file that is meant: the one that is named; else the one file; else {@code transformer.jar},
     * {@code transformer.py}, the only jar or the only Python file of the directory.
     *
     * @throws ServingException FAILED_PRECONDITION when there is none, or more than one
     */
    static Path find(Workload.Transformer form, List<Path> files) {
        Path root = files.get(0);
        String named = form.file();
        if (!Files.isDirectory(root)) {
            if (named != null && !root.endsWith(named)) {
                throw wrong(
                        "there is no file '" + named + "' in it, it is the file '" + root.getFileName() + "'", form);
            }
            if (!root.toString().endsWith(".jar") && !isPython(root)) {
                throw wrong("'" + root.getFileName() + "' is neither a .jar nor a .py file", form);
            }
            return root;
        }
        List<Path> all = new ArrayList<>();
        try (Stream<Path> listed = Files.list(root)) {
            listed.filter(Files::isRegularFile).sorted().forEach(all::add);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot read " + root + ": " + e.getMessage(), e);
        }
        if (named != null) {
            Path file = root.resolve(named).normalize();
            if (!file.startsWith(root.normalize()) || !Files.isRegularFile(file)) {
                throw wrong("there is no file '" + named + "' in it, there are " + names(all), form);
            }
            return file;
        }
        for (String name : List.of(JAR, PYTHON)) {
            if (all.contains(root.resolve(name))) {
                if (all.contains(root.resolve(JAR)) && all.contains(root.resolve(PYTHON))) {
                    break;
                }
                return root.resolve(name);
            }
        }
        List<Path> fitting = all.stream()
                .filter(p -> p.toString().endsWith(".jar") || isPython(p))
                .toList();
        if (fitting.size() != 1) {
            throw wrong(
                    fitting.isEmpty()
                            ? "there is neither a .jar nor a .py file in it, there are " + names(all)
                            : "there is more than one .jar or .py file in it: " + names(fitting),
                    form);
        }
        return fitting.get(0);
    }

    private static String names(List<Path> files) {
        if (files.isEmpty()) {
            return "no files";
        }
        List<String> names = files.stream()
                .limit(SHOWN)
                .map(p -> Objects.toString(p.getFileName()))
                .toList();
        return String.join(", ", names) + (files.size() > SHOWN ? ", …" : "");
    }

    private static ServingException wrong(String what, Workload.Transformer form) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "the transformer at " + form.artifacts().get(0).uri() + ": " + what,
                "put " + JAR + " or " + PYTHON
                        + " there, or name the one that is meant in spec.transformer.nereid.file");
    }

    /**
     * A transformer in Python as the process that runs it: our program, told which file.
     *
     * @param directory where the program is put
     * @param log gets a sentence for each thing that may not be as expected
     */
    static Workload process(
            Workload workload, Workload.Transformer form, Path file, Path directory, Consumer<String> log) {
        Path beside = Objects.requireNonNull(file.toAbsolutePath().getParent());
        List<String> command = new ArrayList<>(List.of(
                literal(interpreter(beside)),
                literal(program(directory).toString()),
                "--file",
                literal(file.toString())));
        String className = form.className();
        if (className != null) {
            command.add("--class");
            command.add(literal(className));
        }
        Path packages = beside.resolve("requirements");
        if (Files.isDirectory(packages)) {
            command.add("--packages");
            command.add(literal(packages.toString()));
        } else if (Files.isRegularFile(beside.resolve("requirements.txt"))
                && interpreter(beside).equals("python3")) {
            log.accept(
                    "warning: nothing of requirements.txt is installed; put a virtual environment beside it as venv, or"
                            + " its packages: pip install -t requirements -r requirements.txt");
        }
        Map<String, String> environment = Map.of("NEREID_TRANSFORMER_CONFIG", literal(json(form.settings())));
        ProcessContainer container = new ProcessContainer(
                "transformer",
                List.copyOf(command),
                List.of(),
                environment,
                null,
                List.of(),
                null,
                null,
                null,
                JsonNodeFactory.instance.objectNode());
        return new Workload(
                workload.namespace(),
                workload.service(),
                workload.component(),
                workload.revision(),
                workload.modelName(),
                new Process(form.artifacts(), List.of(container)),
                workload.scaling(),
                workload.containerConcurrency(),
                workload.timeout(),
                workload.logger(),
                workload.batcher(),
                workload.labels(),
                workload.annotations());
    }

    /** The Python of a virtual environment beside the file, else the one of the path. */
    private static String interpreter(Path beside) {
        for (String name : List.of("venv", ".venv")) {
            Path python = beside.resolve(name).resolve("bin").resolve("python");
            if (Files.isExecutable(python)) {
                return python.toString();
            }
        }
        return "python3";
    }

    /** Our program as a file; written anew when it is another one. */
    private static Path program(Path directory) {
        Path file = directory.resolve("programs").resolve(PROGRAM);
        try (InputStream in = Objects.requireNonNull(
                TransformerFiles.class.getResourceAsStream(RESOURCE), RESOURCE + " is missing")) {
            byte[] text = in.readAllBytes();
            if (!Files.isRegularFile(file) || !java.util.Arrays.equals(Files.readAllBytes(file), text)) {
                Files.createDirectories(file.getParent());
                Path next = Files.createTempFile(file.getParent(), PROGRAM, ".new");
                Files.write(next, text);
                Files.move(next, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            }
            return file.toAbsolutePath();
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot write " + file + ": " + e.getMessage(), e);
        }
    }

    private static String json(Map<String, String> settings) {
        try {
            return JSON.writeValueAsString(settings);
        } catch (JsonProcessingException e) {
            throw ServingException.internal("settings cannot be written", e);
        }
    }

    /** A text in which {@code $(NAME)} means itself. */
    private static String literal(String text) {
        return text.replace("$", "$$");
    }
}
