// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.access.config.AccessConfig;
import io.nereid.access.config.AccessConfigReader;
import io.nereid.access.credential.ApiKey;
import io.nereid.access.credential.ApiKeyFile;
import io.nereid.app.connection.OwnerOnlyFile;
import io.nereid.app.device.DeviceFlags;
import io.nereid.app.device.ServerDevices;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.process.CacheDirectory;
import io.nereid.app.process.Logging;
import io.nereid.app.text.OutputOption;
import io.nereid.app.text.ProgressPrinter;
import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Devices;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.recording.RequestLogger;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.RepositoryValidator;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.repository.problem.Problem;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.logging.Level;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nereid validate}: reports all problems of a model repository, without serving it. */
@Command(
        name = "validate",
        mixinStandardHelpOptions = true,
        description = {
            "Check a model repository, a list of models, an access configuration or API keys, without serving: reports"
                    + " every problem with its place and remedy.",
            "Exit code 0 when every model can be served and the files are valid, 1 when not."
        })
@SuppressWarnings("NullAway.Init") // set by picocli
public final class ValidateCommand implements Callable<Integer> {
    private static final String LOADING = "loading models to check them";
    private static final Duration LONGEST_LOAD = Duration.ofHours(1);
    private static final Pattern ASSUMED = Pattern.compile("([0-9]{1,3})(?::([0-9]{1,3})\\.([0-9]{1,3}))?");
    private static final int MOST_ASSUMED = 64;

    @Parameters(arity = "0..1", paramLabel = "DIR", description = "The model repository.")
    private @Nullable Path directory;

    @Option(
            names = {"--model_config_file", "--model-config-file"},
            paramLabel = "FILE",
            description = "A list of models in TensorFlow Serving's format, instead of a directory.")
    private @Nullable Path modelConfigFile;

    @Option(
            names = "--access-config",
            paramLabel = "FILE",
            description = "Check an access.yaml; with or without models.")
    private @Nullable Path accessConfig;

    @Option(
            names = "--api-keys",
            paramLabel = "FILE",
            description = "Check a file of API keys, and their roles against --access-config.")
    private @Nullable Path apiKeys;

    @Option(names = "--files-only", description = "Do not load the models into their backends.")
    private boolean filesOnly;

    @Option(
            names = "--assume-gpus",
            paramLabel = "N[:MAJOR.MINOR]",
            description = "Check as on a server with N GPUs, of compute capability 8.0 unless it is given, on a machine"
                    + " with any; implies --files-only.")
    private @Nullable String assumedGpus;

    @Mixin
    private OutputOption output;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        Logging.configure(Logging.Format.TEXT, Level.SEVERE);
        Path models = directory;
        Path list = modelConfigFile;
        ValidationReport report =
                new ValidationReport(output.format(), spec.commandLine().getOut());
        boolean access = accessConfig != null || apiKeys != null;
        if (access) {
            access(report);
        }
        if (!access || models != null || list != null) {
            models(models, list, report);
        }
        report.end();
        return report.valid() ? 0 : 1;
    }

    private void models(@Nullable Path models, @Nullable Path list, ValidationReport report) {
        if (assumedGpus != null && list != null) {
            throw ServingException.invalidArgument(
                    "--assume-gpus is for a directory of models, not for a list",
                    "leave it out, or name the directory");
        }
        if (models != null && list == null) {
            directory(models, report);
            return;
        }
        if (list != null && models == null) {
            list(list, report);
            return;
        }
        throw ServingException.invalidArgument(
                (models == null ? "nothing" : "both a directory and a list") + " to validate is given",
                "set a model repository, or --model_config_file FILE");
    }

    /** Checks the rules and the keys. */
    private void access(ValidationReport report) {
        List<ServingException> errors = new ArrayList<>();
        Path rules = accessConfig;
        Set<String> roles = AccessConfig.DEFAULT.roles().keySet();
        if (rules != null) {
            errors.addAll(AccessConfigReader.errors(rules));
            if (errors.isEmpty()) {
                AccessConfig config = AccessConfigReader.read(rules);
                roles = config.roles().keySet();
                report.ok("'" + rules + "': " + config.roles().size() + " roles, "
                        + config.bindings().size() + " bindings, "
                        + config.tokens().size() + " token issuers");
            }
        }
        Path keys = apiKeys;
        if (keys != null) {
            errors.addAll(keyErrors(keys, errors.isEmpty() ? roles : null, report));
        }
        errors.forEach(report::error);
    }

    /** @param roles the known roles; null when the rules could not be read */
    private static List<ServingException> keyErrors(Path file, @Nullable Set<String> roles, ValidationReport report) {
        if (!Files.exists(file)) {
            return List.of(ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "there is no file of API keys '" + file + "'",
                    "make it with: nereid keys create NAME --file " + file));
        }
        List<ServingException> errors = new ArrayList<>();
        try {
            List<ApiKey> keys = new ApiKeyFile(file).read();
            for (ApiKey key : keys) {
                for (String role : key.roles()) {
                    if (roles != null && !roles.contains(role)) {
                        errors.add(ServingException.invalidArgument(
                                "'" + file + "': key '" + key.name() + "' has the role '" + role
                                        + "', which does not exist",
                                "add it to --access-config; the roles are " + String.join(", ", roles)));
                    }
                }
            }
            if (errors.isEmpty()) {
                report.ok("'" + file + "': " + keys.size() + " API keys");
            }
        } catch (ServingException e) {
            errors.add(e);
        }
        if (OwnerOnlyFile.isOpen(file)) {
            report.warning("'" + file + "' can be read or written by others than its owner", "chmod 600 " + file);
        }
        return errors;
    }

    private void list(Path file, ValidationReport report) {
        List<ModelListEntry> models = ModelServerConfig.read(file);
        RequestLogger.check(models);
        List<ModelListChange> changes =
                filesOnly ? tried(models, true) : ProgressPrinter.during(LOADING, err(), () -> tried(models, false));
        long errors = 0;
        for (ModelListChange change : changes) {
            ServingException error = change.error();
            if (error == null && change.load().isEmpty()) {
                error = ServingException.of(
                        ErrorCode.NOT_FOUND,
                        "Could not find any versions of model " + change.model(),
                        "its base path should hold a directory named by a number");
            }
            if (error == null) {
                report.ok("model '" + change.model() + "', versions " + change.load());
            } else {
                errors++;
                report.error(error);
            }
        }
        report.summary(
                errors == 0 ? "no problems" : errors + " of " + changes.size() + " models cannot be served as listed");
    }

    /** Applies a list to an engine, or returns the changes that this would make by the files on disk. */
    private static List<ModelListChange> tried(List<ModelListEntry> models, boolean dryRun) {
        EngineOptions options = EngineOptions.builder(List.of())
                .modelListSource(FileSystemStoragePathSource.Options.DEFAULT
                        .withSettle(Duration.ZERO)
                        .withPollInterval(Duration.ZERO))
                .reloadTimeout(LONGEST_LOAD)
                .scratch(CacheDirectory.directory())
                .build();
        try (Engine engine = new Engine(options, InstalledPlugins.load().backends(), Clock.system())) {
            engine.start().toCompletableFuture().join();
            return engine.configure(models, dryRun).toCompletableFuture().join();
        } catch (CompletionException e) {
            throw ServingException.from(ModelListReloader.cause(e));
        }
    }

    private PrintWriter err() {
        return spec.commandLine().getErr();
    }

    private void directory(Path models, ValidationReport report) {
        InstalledPlugins plugins = InstalledPlugins.load();
        List<Backend> backends = plugins.backends();
        List<Problem> problems;
        String assumed = assumedGpus;
        if (assumed != null) {
            problems = new RepositoryValidator(backends, assumed(assumed)).validate(models);
        } else {
            ServerDevices found = ServerDevices.open(plugins.deviceProviders(), new DeviceFlags(), Clock.system());
            try {
                Devices devices = found == null ? null : found.devices();
                problems =
                        new ArrayList<>(new RepositoryValidator(backends, GpuInventory.of(devices)).validate(models));
                if (!filesOnly) {
                    List<Problem> known = List.copyOf(problems);
                    problems.addAll(
                            ProgressPrinter.during(LOADING, err(), () -> load(models, backends, devices, known)));
                }
            } finally {
                if (found != null) {
                    found.close();
                }
            }
        }
        problems.forEach(report::problem);
        long errors = problems.stream().filter(Problem::isError).count();
        report.summary(
                problems.isEmpty()
                        ? "no problems"
                        : errors + " error(s), " + (problems.size() - errors) + " warning(s)");
    }

    /** The GPUs of {@code --assume-gpus}. */
    private static GpuInventory assumed(String text) {
        Matcher parts = ASSUMED.matcher(text);
        if (!parts.matches()) {
            throw ServingException.invalidArgument("--assume-gpus '" + text
                    + "' is not valid (expected: N or N:MAJOR.MINOR with at most 64 GPUs, such as 2 or 2:8.6)");
        }
        int count = Integer.parseInt(parts.group(1));
        if (count > MOST_ASSUMED) {
            throw ServingException.invalidArgument(
                    "--assume-gpus '" + text + "' has " + count + " GPUs (expected: at most " + MOST_ASSUMED + ")");
        }
        return parts.group(2) == null
                ? GpuInventory.assumed(count)
                : GpuInventory.assumed(count, Integer.parseInt(parts.group(2)), Integer.parseInt(parts.group(3)));
    }

    /** Loads and warms up all models as for serving, members of ensembles first. Returns the problems. */
    private static List<Problem> load(
            Path directory, List<Backend> backends, @Nullable Devices devices, List<Problem> known) {
        List<Problem> found = new ArrayList<>();
        try (Engine engine = new Engine(
                EngineOptions.builder(List.of(directory))
                        .repository(RepositorySource.Options.DEFAULT.withSettle(Duration.ZERO))
                        .devices(devices)
                        .scratch(CacheDirectory.directory())
                        .build(),
                backends,
                Clock.system())) {
            engine.start().toCompletableFuture().join();
            for (ModelStatus model : engine.index()) {
                Path place = Files.isDirectory(directory.resolve(model.model()))
                        ? directory.resolve(model.model())
                        : directory;
                boolean reported =
                        known.stream().anyMatch(p -> p.isError() && p.file().startsWith(place));
                for (ServableState version : model.versions()) {
                    String reason = version.reason();
                    if (version.phase() == Phase.FAILED && !reported && reason != null) {
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
