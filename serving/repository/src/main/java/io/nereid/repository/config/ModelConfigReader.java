// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.ConfigBinder;
import io.nereid.repository.schema.ConfigSchema;
import io.nereid.repository.schema.DocumentFields;
import io.nereid.repository.schema.JsonConfigParser;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.repository.textformat.TextFormatException;
import io.nereid.repository.textformat.TextFormatNode;
import io.nereid.repository.textformat.TextFormatParser;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.parameters.PaddingPolicy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Reads a model's configuration, as text or as JSON, and validates its syntax, schema, Triton's rules and the files it
 * refers to. Reports all problems together. Other readers of this package read parts of it. Confined to one thread.
 */
public final class ModelConfigReader {
    private static final String PYTHON_FILE = "model.py";
    private static final String PLAN_FILE = "model.plan";
    private static final Pattern CAPABILITY = Pattern.compile("[0-9]{1,3}\\.[0-9]{1,3}");

    private final ConfigReadContext scope;

    /**
     * A configuration with positions for later error messages.
     *
     * @param config the model's configuration, as far as it could be read
     * @param platformAt the position of the platform
     * @param backendAt the position of the backend
     * @param complete whether the text could be parsed to its end
     */
    public record Result(ModelConfig config, SourcePosition platformAt, SourcePosition backendAt, boolean complete) {}

    private ModelConfigReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    /** As {@link #read(Path, String, Path, String, boolean, GpuInventory, ProblemCollector)} on a server without GPUs. */
    public static Result read(
            Path file, String text, Path directory, String directoryName, boolean named, ProblemCollector problems) {
        return read(file, text, directory, directoryName, named, GpuInventory.NONE, problems);
    }

    /**
     * Reads protobuf's text format.
     *
     * @param file the origin of the text, for messages
     * @param directory the model's directory, with its label and warm-up files
     * @param directoryName the required name of the configuration, if it has a name
     * @param named whether that rule applies; else the configuration's own name is used
     * @param gpus the GPUs that the configuration is checked against
     */
    public static Result read(
            Path file,
            String text,
            Path directory,
            String directoryName,
            boolean named,
            GpuInventory gpus,
            ProblemCollector problems) {
        List<TextFormatNode.Field> fields = new ArrayList<>();
        boolean complete = true;
        try {
            TextFormatParser.parse(text, fields);
        } catch (TextFormatException e) {
            problems.error(file, e.at(), e.message(), e.remedy());
            complete = false;
        }
        return result(fields, complete, new ConfigReadContext(file, directory, directoryName, gpus, problems), named);
    }

    /** As {@link #read(Path, String, Path, String, boolean, ProblemCollector)}, ignoring the configuration's name. */
    public static Result readNamed(
            Path file, String text, Path directory, String name, GpuInventory gpus, ProblemCollector problems) {
        List<TextFormatNode.Field> fields = new ArrayList<>();
        boolean complete = true;
        try {
            TextFormatParser.parse(text, fields);
        } catch (TextFormatException e) {
            problems.error(file, e.at(), e.message(), e.remedy());
            complete = false;
        }
        fields.removeIf(f -> f.name().equals("name"));
        return result(fields, complete, new ConfigReadContext(file, directory, name, gpus, problems), true);
    }

    /**
     * As {@link #read(Path, String, Path, String, boolean, ProblemCollector)}, of the JSON form that clients load a
     * model with.
     */
    public static Result readJson(
            Path file, String json, Path directory, String directoryName, boolean named, ProblemCollector problems) {
        return readJson(file, json, directory, directoryName, named, GpuInventory.NONE, problems);
    }

    /** As {@link #read(Path, String, Path, String, boolean, GpuInventory, ProblemCollector)}, of the JSON form. */
    public static Result readJson(
            Path file,
            String json,
            Path directory,
            String directoryName,
            boolean named,
            GpuInventory gpus,
            ProblemCollector problems) {
        List<TextFormatNode.Field> fields = new ArrayList<>();
        boolean complete = true;
        try {
            JsonConfigParser.parse(json, ConfigSchema.MODEL_CONFIG, fields);
        } catch (TextFormatException e) {
            problems.error(file, e.at(), e.message(), e.remedy());
            complete = false;
        }
        return result(fields, complete, new ConfigReadContext(file, directory, directoryName, gpus, problems), named);
    }

    /** Validates a configuration that a backend has completed, as if its document had been read. */
    static void check(ModelConfig completed, Path directory, GpuInventory gpus, ProblemCollector problems) {
        Path file = directory.resolve("config.pbtxt");
        result(
                DocumentFields.of(ModelConfigDocument.of(completed)),
                true,
                new ConfigReadContext(file, directory, completed.name(), gpus, problems),
                true);
    }

    private static Result result(
            List<TextFormatNode.Field> fields, boolean complete, ConfigReadContext scope, boolean named) {
        TypedMessage bound = new ConfigBinder(ConfigSchema.MODEL_CONFIG, scope.file(), scope.problems()).bind(fields);
        String name = name(bound, scope, named);
        ModelConfig config = new ModelConfigReader(
                        new ConfigReadContext(scope.file(), scope.directory(), name, scope.gpus(), scope.problems()))
                .map(bound);
        return new Result(config, bound.place("platform"), bound.place("backend"), complete);
    }

    private static String name(TypedMessage c, ConfigReadContext scope, boolean named) {
        String name = c.text("name");
        if (name.isEmpty() || name.equals(scope.model())) {
            return scope.model();
        }
        if (named) {
            scope.error(
                    c.place("name"),
                    "unexpected directory name '" + scope.model() + "' for model " + ProblemCollector.quote(name)
                            + ", directory name must equal model name",
                    "write name: \"" + scope.model() + "\", or leave it out");
        } else if (ModelNames.valid(name)) {
            return name;
        } else {
            scope.error(
                    c.place("name"),
                    "invalid model name " + ProblemCollector.quote(name)
                            + ", model name must not contain path traversal characters",
                    "use letters, digits, '_', '-', '.'");
        }
        return scope.model();
    }

    private ModelConfig map(TypedMessage c) {
        int maxBatchSize = maxBatchSize(c);
        boolean plan = isOf(c, "tensorrt", "tensorrt_plan", PLAN_FILE);
        TensorConfigReader io = new TensorConfigReader(scope, plan);
        DynamicBatchingReader scheduling = new DynamicBatchingReader(scope);
        MiscConfigReader extras = new MiscConfigReader(scope);
        Map<String, List<String>> labels = new LinkedHashMap<>();
        boolean ensemble = c.has("ensemble_scheduling");
        String platform = c.text("platform");
        platform(c, ensemble);
        exclusions(c);
        extras.objective(c);
        // A Python model may complete its inputs and outputs when it is loaded.
        boolean partial = isOf(c, "python", "", PYTHON_FILE);
        ModelConfig config = ModelConfig.builder(scope.model())
                .platform(ensemble && platform.isEmpty() && c.text("backend").isEmpty() ? "ensemble" : platform)
                .backend(c.text("backend"))
                .modelFile(modelFile(c))
                .capabilityFiles(capabilityFiles(c))
                .maxBatchSize(maxBatchSize)
                .inputs(io.tensors(c.all("input"), "model input ", maxBatchSize, labels, partial))
                .outputs(io.tensors(c.all("output"), "model output ", maxBatchSize, labels, partial))
                .batchInputs(io.batchInputs(c.all("batch_input"), names(c.all("input"))))
                .batchOutputs(io.batchOutputs(c.all("batch_output"), names(c.all("input")), names(c.all("output"))))
                .versionPolicy(versionPolicy(c))
                .batching(
                        c.has("dynamic_batching")
                                ? scheduling.batching(c.message("dynamic_batching"), maxBatchSize)
                                : null)
                .sequence(
                        c.has("sequence_batching")
                                ? new SequenceBatchingReader(scope).read(c.message("sequence_batching"), maxBatchSize)
                                : null)
                .ensemble(ensemble ? new EnsembleSchedulingReader(scope).read(c) : null)
                .queue(scheduling.queue(c.message("dynamic_batching").first("default_queue_policy")))
                .instanceGroups(
                        ensemble ? List.of() : new InstanceGroupReader(scope, plan).read(c.all("instance_group")))
                .decoupled(c.message("model_transaction_policy").flag("decoupled"))
                .responseCache(c.message("response_cache").flag("enable"))
                .parameters(extras.parameters(c.all("parameters")))
                .labels(Map.copyOf(labels))
                .warmups(ensemble ? List.of() : new ModelWarmupReader(scope).read(c.all("model_warmup"), maxBatchSize))
                .optimization(extras.optimization(c.message("optimization")))
                .operatorLibraries(extras.operatorLibraries(c.message("model_operations")))
                .metricTags(MiscConfigReader.texts(c.all("metric_tags")))
                .histogramBuckets(
                        extras.histogramBuckets(c.message("model_metrics").all("metric_control")))
                .document(ModelConfigDocument.given(c))
                .build();
        padding(c, config);
        return config;
    }

    /** Reports parameters of {@link PaddingPolicy} that are wrong, or do not fit what is configured. */
    private void padding(TypedMessage c, ModelConfig config) {
        try {
            PaddingPolicy.read(config);
        } catch (ServingException e) {
            SourcePosition at = c.all("parameters").stream()
                    .filter(v ->
                            e.getMessage().startsWith("parameter " + v.entry().key() + " "))
                    .map(Value::at)
                    .findFirst()
                    .orElse(c.place("parameters"));
            scope.error(at, e.getMessage(), e.remedy());
        }
    }

    /** Whether the model is of a backend, by its name, its platform or, without both, its file. */
    private boolean isOf(TypedMessage c, String backend, String platform, String modelFile) {
        if (!c.text("backend").isEmpty() || !c.text("platform").isEmpty()) {
            return c.text("backend").equals(backend)
                    || (c.text("backend").isEmpty() && c.text("platform").equals(platform));
        }
        String file = c.text("default_model_filename");
        if (!file.isEmpty()) {
            return file.equals(modelFile);
        }
        try (Stream<Path> versions = Files.list(scope.directory())) {
            return versions.anyMatch(version -> Files.isRegularFile(version.resolve(modelFile)));
        } catch (IOException | UncheckedIOException e) {
            // A directory that cannot be read is reported where its versions are looked for.
            return false;
        }
    }

    private int maxBatchSize(TypedMessage c) {
        if (!c.has("max_batch_size")) {
            return -1;
        }
        long size = c.number("max_batch_size");
        if (size < 0) {
            scope.error(
                    c.place("max_batch_size"),
                    "'max_batch_size' must be non-negative value" + scope.forModel(),
                    "use 0 for a model without batch dimension");
        }
        return (int) Math.max(0, size);
    }

    private void platform(TypedMessage c, boolean ensemble) {
        if (!c.text("platform").equals("ensemble")) {
            return;
        }
        if (!c.text("backend").isEmpty()) {
            scope.error(
                    c.place("backend"),
                    "Ensemble model '" + scope.model() + "' must have platform type 'ensemble' and empty backend type",
                    "remove 'backend'");
        }
        if (!ensemble && !c.faulty().contains("ensemble_scheduling")) {
            scope.error(
                    c.place("platform"),
                    "ensemble scheduling must be set for ensemble " + scope.model() + " whose platform is ensemble",
                    "write ensemble_scheduling { step [ … ] }");
        }
    }

    /** Rejects a response cache with settings that Triton does not permit together with it. */
    private void exclusions(TypedMessage c) {
        TypedMessage cache = c.message("response_cache");
        if (!cache.flag("enable")) {
            return;
        }
        String message = "Response Cache does not currently support model " + scope.model() + " with ";
        if (c.has("sequence_batching")) {
            scope.error(
                    cache.place("enable"),
                    message + "sequence batching scheduler. Please disable the response cache.",
                    null);
        }
        if (c.message("model_transaction_policy").flag("decoupled")) {
            scope.error(
                    cache.place("enable"),
                    message + "'decoupled' transaction policy. Please disable the response cache.",
                    null);
        }
    }

    private static Set<String> names(List<Value> members) {
        return members.stream().map(v -> v.message().text("name")).collect(Collectors.toSet());
    }

    private String modelFile(TypedMessage c) {
        String name = c.text("default_model_filename");
        if (!name.isEmpty() && !ModelNames.staysInside(name)) {
            scope.error(
                    c.place("default_model_filename"),
                    "'default_model_filename' " + ProblemCollector.quote(name)
                            + " must lie inside the version's directory",
                    "give a file name without '..'");
            return "";
        }
        return name;
    }

    /** The files by compute capability, such as {@code 7.5}. */
    private Map<String, String> capabilityFiles(TypedMessage c) {
        for (Value v : c.all("cc_model_filenames")) {
            String capability = v.entry().key();
            String file = v.entry().value() instanceof String s ? s : "";
            if (!CAPABILITY.matcher(capability).matches()) {
                scope.error(
                        v.at(),
                        "'cc_model_filenames' has the key " + ProblemCollector.quote(capability)
                                + ", which is not a compute capability (expected: MAJOR.MINOR, such as 8.0)",
                        null);
            }
            if (file.isEmpty() || !ModelNames.staysInside(file)) {
                scope.error(
                        v.at(),
                        "'cc_model_filenames' " + ProblemCollector.quote(file)
                                + " must lie inside the version's directory",
                        "give a file name without '..'");
            }
        }
        return MiscConfigReader.texts(c.all("cc_model_filenames"));
    }

    private VersionPolicy versionPolicy(TypedMessage c) {
        TypedMessage policy = c.message("version_policy");
        if (policy.has("all")) {
            return new VersionPolicy(VersionPolicy.Kind.ALL, 0, List.of());
        }
        if (policy.has("specific")) {
            TreeSet<Long> versions = new TreeSet<>();
            for (Value v : policy.message("specific").all("versions")) {
                if (v.number() < 1) {
                    scope.error(v.at(), "version " + v.number() + " in 'version_policy' (expected: >= 1)", null);
                }
                versions.add(v.number());
            }
            if (versions.isEmpty()) {
                scope.error(
                        policy.place("specific"),
                        "at least one version must be available under the version policy of model '" + scope.model()
                                + "'",
                        "write specific { versions: [ 1 ] }");
            }
            return new VersionPolicy(VersionPolicy.Kind.SPECIFIC, 0, List.copyOf(versions));
        }
        long count = policy.message("latest").number("num_versions");
        return count <= 1
                ? VersionPolicy.LATEST
                : new VersionPolicy(VersionPolicy.Kind.LATEST, (int) Math.min(count, Integer.MAX_VALUE), List.of());
    }
}
