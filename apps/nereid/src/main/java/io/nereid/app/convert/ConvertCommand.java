// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.convert;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.Conversion;
import io.nereid.backend.ModelConverter;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid convert}: says what a model file is, makes the files that serve it, and prints the next command. */
@Command(
        name = "convert",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        customSynopsis = "nereid convert FILE [--force]",
        description = {
            "Say what a model file is and how it is served.",
            "Of a pickled booster of XGBoost, LightGBM or CatBoost, the library's own file is written beside it.",
            "Of a pickle that this server does not compute, and of an MLflow model that is a Python function, a model.py for"
                    + " the backend python is written beside it.",
            "Files are read as data: nothing in them runs."
        },
        footer = {
            "",
            "  nereid convert models/churn/1/model.pkl",
            "",
            "Exit code: 0 when the model can be served now, else 1."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ConvertCommand implements Callable<Integer> {
    /** Backends whose models are programs, which a look at a file must not run. */
    private static final Set<String> RUN_CODE = Set.of("java", "python");

    @Parameters(paramLabel = "FILE", description = "A model file, or a directory of MLflow or Hugging Face.")
    private Path file;

    @Option(names = "--force", description = "Overwrite files that exist.")
    private boolean force;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    private final List<String> written = new ArrayList<>();

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        if (!Files.exists(file)) {
            throw ServingException.invalidArgument(
                    "there is no file '" + file + "'", "name a model file, or a directory of MLflow or Hugging Face");
        }
        for (ModelConverter converter : ServiceLoader.load(ModelConverter.class)) {
            if (converter.recognises(file)) {
                Conversion conversion = ProgressPrinter.during(
                        "converting " + file, spec.commandLine().getErr(), () -> converter.convert(file));
                if (!output.format().isDocument()) {
                    out.println(file + " is " + conversion.description());
                }
                write(conversion, out);
                if (output.format().isDocument()) {
                    print(true, conversion.description(), null, conversion.next(), out);
                } else {
                    conversion.next().forEach(out::println);
                    out.flush();
                }
                return 0;
            }
        }
        return byBackend(out);
    }

    private void write(Conversion conversion, PrintWriter out) {
        Path directory = Files.isDirectory(file) ? file : file.toAbsolutePath().getParent();
        for (Map.Entry<String, byte[]> one : new TreeMap<>(conversion.files()).entrySet()) {
            Path target = directory == null ? Path.of(one.getKey()) : directory.resolve(one.getKey());
            if (Files.exists(target) && !force) {
                throw ServingException.invalidArgument(
                        "'" + target + "' exists", "remove it, or overwrite it with --force");
            }
            try {
                Files.write(target, one.getValue());
            } catch (IOException e) {
                throw ServingException.wrap(
                        ErrorCode.INTERNAL,
                        "cannot write '" + target + "': " + e.getMessage(),
                        "make the directory writable",
                        e);
            }
            written.add(target.toString());
            if (!output.format().isDocument()) {
                out.println("wrote " + target);
            }
        }
    }

    private void print(
            boolean servable, String description, @Nullable String remedy, List<String> next, PrintWriter out) {
        ObjectNode document = JsonNodeFactory.instance.objectNode().put("file", file.toString());
        document.put("servable", servable).put("description", description);
        if (remedy != null) {
            document.put("remedy", remedy);
        }
        written.forEach(document.putArray("written")::add);
        next.forEach(document.putArray("next")::add);
        output.format().print(document, out);
    }

    /** The backend that serves the file as it is, or that knows what it is and why it is not served. */
    private int byBackend(PrintWriter out) {
        Path directory = Files.isDirectory(file) ? file : file.toAbsolutePath().getParent();
        List<Path> candidates = Files.isDirectory(file) ? children() : List.of(file);
        for (Backend backend : InstalledPlugins.load().backends()) {
            Path found = found(backend, candidates);
            if (found == null || directory == null) {
                continue;
            }
            String name = String.valueOf(found.getFileName());
            ModelLocation source = new ModelLocation(new ServableId("model", 1), directory, directory);
            ModelConfig config = ModelConfig.builder("model").modelFile(name).build();
            try {
                if (!RUN_CODE.contains(backend.name())) {
                    ProgressPrinter.during(
                                    "loading " + found,
                                    spec.commandLine().getErr(),
                                    () -> backend.load(source, config, new BackendContext(1, scratch(), Map.of())))
                            .close();
                }
            } catch (ServingException e) {
                if (output.format().isDocument()) {
                    print(false, String.valueOf(e.getMessage()), e.remedy(), List.of(), out);
                    return 1;
                }
                out.println(e.getMessage());
                String remedy = e.remedy();
                out.println(remedy == null ? "" : remedy);
                out.flush();
                return 1;
            }
            if (output.format().isDocument()) {
                print(
                        true,
                        "a model of the backend " + backend.name() + ", which is served as it is",
                        null,
                        List.of("nereid serve " + file),
                        out);
                return 0;
            }
            out.println(found + " is a model of the backend " + backend.name() + ", which is served as it is");
            out.println("nereid serve " + file);
            out.flush();
            return 0;
        }
        throw ServingException.invalidArgument(
                "'" + file + "' is not of a format that this server knows",
                "docs/FORMATS.md lists the formats; serve any other with a model.py for the backend python");
    }

    private static @Nullable Path found(Backend backend, List<Path> candidates) {
        for (Path candidate : candidates) {
            String name = String.valueOf(candidate.getFileName());
            boolean named = backend.defaultFiles().stream().anyMatch(known -> {
                int dot = known.lastIndexOf('.');
                return name.equals(known) || (dot > 0 && name.endsWith(known.substring(dot)));
            });
            if (named && backend.recognises(candidate)) {
                return candidate;
            }
        }
        return null;
    }

    private List<Path> children() {
        try (var files = Files.list(file)) {
            return files.sorted().toList();
        } catch (IOException e) {
            throw ServingException.invalidArgument("cannot read the directory '" + file + "': " + e.getMessage());
        }
    }

    private static Path scratch() {
        return Path.of(System.getProperty("java.io.tmpdir"));
    }
}
