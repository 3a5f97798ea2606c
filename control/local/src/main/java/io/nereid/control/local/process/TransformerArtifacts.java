// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

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

/** Finds the jar or Python file of a transformer, and builds the process that runs a Python transformer. Stateless. */
public final class TransformerArtifacts {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String PROGRAM = "transformer_server.py";
    private static final String RESOURCE = "/io/nereid/control/local/" + PROGRAM;
    private static final String PYTHON = "transformer.py";
    private static final String JAR = "transformer.jar";
    private static final int SHOWN = 10;

    private TransformerArtifacts() {}

    public static boolean isPython(Path file) {
        return file.toString().endsWith(".py");
    }

    /**
     * Finds the transformer's file: the one that the specification names; else the artifact, if it is a single file;
     * else {@code transformer.jar}, {@code transformer.py}, or the only jar or Python file of the directory.
     *
     * @throws ServingException FAILED_PRECONDITION without a match, or with several
     */
    public static Path find(Workload.Transformer form, List<Path> files) {
        Path root = files.get(0);
        String named = form.file();
        if (!Files.isDirectory(root)) {
            if (named != null && !root.endsWith(named)) {
                throw wrong("the artifact is the single file '" + root.getFileName() + "', not '" + named + "'", form);
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
                throw wrong("it does not contain the file '" + named + "', but " + names(all), form);
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
        List<Path> candidates = all.stream()
                .filter(p -> p.toString().endsWith(".jar") || isPython(p))
                .toList();
        if (candidates.size() != 1) {
            throw wrong(
                    candidates.isEmpty()
                            ? "it does not contain a .jar or .py file, but " + names(all)
                            : "it contains more than one .jar or .py file: " + names(candidates),
                    form);
        }
        return candidates.get(0);
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
                "put " + JAR + " or " + PYTHON + " there, or name the file in spec.transformer.nereid.file");
    }

    /**
     * Builds the process of a Python transformer: the bundled {@code transformer_server.py} with the file as its
     * argument.
     *
     * @param directory the directory into which the bundled program is written
     * @param log receives a warning for each setting that cannot be applied as given
     */
    public static Workload process(
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
            log.accept("warning: the packages of requirements.txt are not installed; add a virtual environment named"
                    + " venv to"
                    + " its directory, or the packages: pip install -t requirements -r requirements.txt");
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

    /** Returns the Python of a virtual environment in the file's directory, else the one on the PATH. */
    private static String interpreter(Path beside) {
        for (String name : List.of("venv", ".venv")) {
            Path python = beside.resolve(name).resolve("bin").resolve("python");
            if (Files.isExecutable(python)) {
                return python.toString();
            }
        }
        return "python3";
    }

    /** Writes the bundled program to a file, unless the file already has that content. */
    private static Path program(Path directory) {
        Path file = directory.resolve("programs").resolve(PROGRAM);
        try (InputStream in = Objects.requireNonNull(
                TransformerArtifacts.class.getResourceAsStream(RESOURCE), RESOURCE + " is missing")) {
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

    /** Escapes a text, so that {@code $(NAME)} is not expanded in it. */
    private static String literal(String text) {
        return text.replace("$", "$$");
    }
}
