// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.engine.Engine;
import io.nereid.engine.EngineOptions;
import io.nereid.repository.Problem;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.RepositoryValidator;
import io.nereid.spi.ModelControl.ModelStatus;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.logging.Level;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid validate}: every problem of a repository, without serving it. */
@Command(
        name = "validate",
        mixinStandardHelpOptions = true,
        description = {
            "Check a directory of models without serving it: every problem, with file, line and remedy.",
            "Exit code 0 when every model can be served, 1 when not."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
final class ValidateCommand implements Callable<Integer> {
    @Parameters(paramLabel = "DIR", description = "The directory of models.")
    private Path directory;

    @Option(names = "--files-only", description = "Do not load the models into their backends.")
    private boolean filesOnly;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        Logging.configure(Logging.Format.TEXT, Level.SEVERE);
        List<Backend> backends = Backends.find();
        List<Problem> problems = new ArrayList<>(new RepositoryValidator(backends).validate(directory));
        if (!filesOnly) {
            problems.addAll(Progress.during(
                    "loading models to check them", spec.commandLine().getErr(), () -> load(backends, problems)));
        }
        PrintWriter out = spec.commandLine().getOut();
        long errors = 0;
        for (Problem p : problems) {
            errors += p.isError() ? 1 : 0;
            out.println((p.isError() ? "error: " : "warning: ") + p);
        }
        out.println(
                problems.isEmpty()
                        ? "no problems"
                        : errors + " error(s), " + (problems.size() - errors) + " warning(s)");
        out.flush();
        return errors == 0 ? 0 : 1;
    }

    /** What goes wrong when the models are loaded and warmed up as they would be to serve, members of ensembles first. */
    private List<Problem> load(List<Backend> backends, List<Problem> known) {
        List<Problem> found = new ArrayList<>();
        try (Engine engine = new Engine(
                EngineOptions.builder(List.of(directory))
                        .repository(RepositorySource.Options.DEFAULT.withSettle(Duration.ZERO))
                        .scratch(Scratch.directory())
                        .build(),
                backends,
                Clock.system())) {
            engine.start().toCompletableFuture().join();
            for (ModelStatus model : engine.index()) {
                Path place = Files.isDirectory(directory.resolve(model.model()))
                        ? directory.resolve(model.model())
                        : directory;
                boolean told =
                        known.stream().anyMatch(p -> p.isError() && p.file().startsWith(place));
                for (ServableState version : model.versions()) {
                    String reason = version.reason();
                    if (version.phase() == Phase.FAILED && !told && reason != null) {
                        Path file = place.resolve(Long.toString(version.id().version()));
                        found.add(new Problem(
                                Problem.Severity.ERROR, Files.exists(file) ? file : place, 0, 0, reason, null));
                    }
                }
            }
        }
        return found;
    }
}
