// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.backend.BackendContext;
import io.nereid.repository.Problem;
import io.nereid.repository.RepositoryValidator;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
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
        RepositoryValidator validator = new RepositoryValidator(Backends.find());
        List<Problem> problems = filesOnly
                ? validator.validate(directory)
                : Progress.during(
                        "loading models to check them",
                        spec.commandLine().getErr(),
                        () -> validator.validateDeep(directory, new BackendContext(1, Scratch.directory(), Map.of())));
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
}
