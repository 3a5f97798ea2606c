// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.ServingException;
import io.nereid.repository.BoundMessage.Value;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.ModelConfig.Queue;
import io.nereid.spi.ModelConfig.VersionPolicy;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Reads a {@code config.pbtxt}: syntax, schema, Triton's rules, and the files it refers to. All problems of a text are
 * reported together. Confined to one thread.
 */
final class ConfigReader {
    private static final int MAX_RANK = 32;
    private static final int MAX_INSTANCES = 1024;
    private static final long MAX_MICROSECONDS = Long.MAX_VALUE / 1_000;

    private final Path file;
    private final Path directory;
    private final Problems problems;
    private String model = "";

    /**
     * A configuration and where it says what.
     *
     * @param config the model's configuration, as far as it could be read
     * @param platformAt where the platform is named
     * @param backendAt where the backend is named
     * @param complete whether the text could be read to its end
     */
    record Result(ModelConfig config, Position platformAt, Position backendAt, boolean complete) {}

    private ConfigReader(Path file, Path directory, Problems problems) {
        this.file = file;
        this.directory = directory;
        this.problems = problems;
    }

    /**
     * Reads a text.
     *
     * @param file where it comes from, for messages
     * @param directory the model's directory, in which label and warm-up files lie
     * @param directoryName the name that the configuration must repeat, if it gives one
     * @param named whether that rule holds; else the configuration's own name counts
     */
    static Result read(Path file, String text, Path directory, String directoryName, boolean named, Problems problems) {
        ConfigReader reader = new ConfigReader(file, directory, problems);
        List<TextValue.Field> fields = new ArrayList<>();
        boolean complete = true;
        try {
            TextParser.parse(text, fields);
        } catch (TextSyntaxException e) {
            problems.error(file, e.at(), e.message(), e.remedy());
            complete = false;
        }
        BoundMessage bound = new ConfigBinder(ConfigSchema.MODEL_CONFIG, file, problems).bind(fields);
        ModelConfig config = reader.map(bound, directoryName, named);
        return new Result(config, bound.place("platform"), bound.place("backend"), complete);
    }

    private ModelConfig map(BoundMessage c, String directoryName, boolean named) {
        String name = c.text("name");
        model = directoryName;
        if (!name.isEmpty() && !name.equals(directoryName)) {
            if (named) {
                problems.error(
                        file,
                        c.place("name"),
                        "unexpected directory name '" + directoryName + "' for model " + Problems.quote(name)
                                + ", directory name must equal model name",
                        "write name: \"" + directoryName + "\", or leave it out");
            } else if (ModelNames.valid(name)) {
                model = name;
            } else {
                error(
                        c.place("name"),
                        "invalid model name " + Problems.quote(name)
                                + ", model name must not contain path traversal characters",
                        "use letters, digits, '_', '-', '.'");
            }
        }
        int maxBatchSize = -1;
        if (c.has("max_batch_size")) {
            maxBatchSize = (int) c.number("max_batch_size");
            if (maxBatchSize < 0) {
                error(
                        c.place("max_batch_size"),
                        "'max_batch_size' must be non-negative value for " + model,
                        "use 0 for a model without batch dimension");
                maxBatchSize = 0;
            }
        }
        Map<String, List<String>> labels = new LinkedHashMap<>();
        return ModelConfig.builder(model)
                .platform(c.text("platform"))
                .backend(c.text("backend"))
                .modelFile(modelFile(c))
                .maxBatchSize(maxBatchSize)
                .inputs(tensors(c.all("input"), "model input ", labels))
                .outputs(tensors(c.all("output"), "model output ", labels))
                .versionPolicy(versionPolicy(c))
                .batching(c.has("dynamic_batching") ? batching(c.message("dynamic_batching"), maxBatchSize) : null)
                .queue(queue(c.message("dynamic_batching").first("default_queue_policy")))
                .instanceGroups(groups(c.all("instance_group")))
                .parameters(parameters(c.all("parameters")))
                .labels(Map.copyOf(labels))
                .warmups(new WarmupReader(file, directory, problems).read(c.all("model_warmup"), maxBatchSize))
                .build();
    }

    private void error(Position at, String message, @Nullable String remedy) {
        problems.error(file, at, message, remedy);
    }

    private String modelFile(BoundMessage c) {
        String name = c.text("default_model_filename");
        if (!name.isEmpty() && !ModelNames.staysInside(name)) {
            error(
                    c.place("default_model_filename"),
                    "'default_model_filename' " + Problems.quote(name) + " must lie inside the version's directory",
                    "give a file name without '..'");
            return "";
        }
        return name;
    }

    private VersionPolicy versionPolicy(BoundMessage c) {
        BoundMessage policy = c.message("version_policy");
        if (policy.has("all")) {
            return new VersionPolicy(VersionPolicy.Kind.ALL, 0, List.of());
        }
        if (policy.has("specific")) {
            TreeSet<Long> versions = new TreeSet<>();
            for (Value v : policy.message("specific").all("versions")) {
                if (v.number() < 1) {
                    error(v.at(), "version " + v.number() + " in 'version_policy' (expected: >= 1)", null);
                }
                versions.add(v.number());
            }
            if (versions.isEmpty()) {
                error(
                        policy.place("specific"),
                        "version policy 'specific' lists no versions for " + model,
                        "write specific { versions: [ 1 ] }");
            }
            return new VersionPolicy(VersionPolicy.Kind.SPECIFIC, 0, List.copyOf(versions));
        }
        long count = policy.message("latest").number("num_versions");
        return count <= 1
                ? VersionPolicy.LATEST
                : new VersionPolicy(VersionPolicy.Kind.LATEST, (int) Math.min(count, Integer.MAX_VALUE), List.of());
    }

    private List<TensorSpec> tensors(List<Value> given, String prefix, Map<String, List<String>> labels) {
        List<TensorSpec> specs = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (Value v : given) {
            BoundMessage io = v.message();
            String name = io.text("name");
            String who = prefix;
            if (name.isEmpty() && !io.faulty().contains("name")) {
                error(v.at(), prefix + "must specify 'name'", null);
            } else if (!name.isEmpty()) {
                who = prefix + Problems.quote(name) + " ";
                if (!names.add(name)) {
                    error(
                            io.place("name"),
                            who + "is given twice (expected: names differ)",
                            "rename or remove one of them");
                }
            }
            DataType type = dataType(io, v.at(), who);
            Shape shape = dims(io, v.at(), who);
            String format = io.text("format");
            if ((format.equals("FORMAT_NHWC") || format.equals("FORMAT_NCHW"))
                    && io.all("dims").size() != 3) {
                error(
                        io.place("format"),
                        prefix + format.substring(7) + " require 3 dims",
                        "give the three dims, or no format");
            }
            if (!io.text("label_filename").isEmpty()) {
                labels(io, name, labels);
            }
            if (type != null && shape != null) {
                specs.add(new TensorSpec(name, type, shape, io.flag("optional")));
            }
        }
        return List.copyOf(specs);
    }

    private @Nullable DataType dataType(BoundMessage io, Position at, String who) {
        DataType type = typeOf(io.text("data_type"));
        if (io.lacks("data_type") || io.text("data_type").equals("TYPE_INVALID")) {
            error(at, who + "must specify 'data_type'", "write data_type: TYPE_FP32, or whichever the model has");
        }
        return type;
    }

    /** Triton's name of a type without its prefix is the wire name, but for strings. */
    static @Nullable DataType typeOf(String configName) {
        if (configName.equals("TYPE_STRING")) {
            return DataType.BYTES;
        }
        return configName.startsWith("TYPE_") ? DataType.ofWireName(configName.substring(5)) : null;
    }

    private @Nullable Shape dims(BoundMessage io, Position at, String who) {
        List<Value> dims = io.all("dims");
        if (dims.isEmpty() && !io.lacks("dims")) {
            return null;
        }
        if (dims.isEmpty()) {
            error(at, who + "must specify 'dims'", "write dims: [ -1 ] for one dimension of any size");
            return null;
        }
        if (dims.size() > MAX_RANK) {
            error(io.place("dims"), who + "has " + dims.size() + " dims (expected: <= " + MAX_RANK + ")", null);
            return null;
        }
        long[] sizes = new long[dims.size()];
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = dims.get(i).number();
            if (sizes[i] < 1 && sizes[i] != -1) {
                error(
                        dims.get(i).at(),
                        who + "dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
                        null);
                return null;
            }
        }
        return Shape.of(sizes);
    }

    private void labels(BoundMessage io, String output, Map<String, List<String>> labels) {
        try {
            labels.put(output, TextFiles.labels(TextFiles.inside(directory, io.text("label_filename"))));
        } catch (ServingException e) {
            error(io.place("label_filename"), "label " + e.getMessage(), e.remedy());
        }
    }

    private Batching batching(BoundMessage b, int maxBatchSize) {
        TreeSet<Integer> preferred = new TreeSet<>();
        for (Value v : b.all("preferred_batch_size")) {
            if (v.number() <= 0) {
                error(v.at(), "dynamic batching preferred size must be positive for " + model, null);
            } else if (maxBatchSize >= 0 && v.number() > maxBatchSize) {
                error(
                        v.at(),
                        "dynamic batching preferred size must be <= max batch size for " + model,
                        "max_batch_size is " + maxBatchSize);
            } else {
                preferred.add((int) v.number());
            }
        }
        return new Batching(
                List.copyOf(preferred), micros(b.number("max_queue_delay_microseconds")), b.flag("preserve_ordering"));
    }

    /** A policy that is given says everything, so that what it leaves out has Triton's default. */
    private Queue queue(@Nullable Value given) {
        if (given == null) {
            return Queue.DEFAULT;
        }
        BoundMessage q = given.message();
        if (q.text("timeout_action").equals("DELAY")) {
            error(
                    q.place("timeout_action"),
                    "timeout_action DELAY is not supported by this version of Nereid",
                    "use REJECT, or leave it out");
        }
        return new Queue(
                (int) Math.min(q.number("max_queue_size"), Integer.MAX_VALUE),
                micros(q.number("default_timeout_microseconds")),
                q.flag("allow_timeout_override"));
    }

    private static Duration micros(long micros) {
        return Duration.ofNanos(Math.min(micros, MAX_MICROSECONDS) * 1_000);
    }

    private List<ModelConfig.InstanceGroup> groups(List<Value> groups) {
        List<ModelConfig.InstanceGroup> read = new ArrayList<>();
        for (Value v : groups) {
            BoundMessage group = v.message();
            if (group.text("kind").equals("KIND_GPU")) {
                error(
                        group.place("kind"),
                        "instance group kind KIND_GPU is not supported by this version of Nereid",
                        "use KIND_CPU or KIND_AUTO");
            }
            long count = group.number("count");
            if (count < 0 || count > MAX_INSTANCES) {
                error(
                        group.place("count"),
                        "instance group count " + count + " for " + model + " (expected: 1 to " + MAX_INSTANCES + ")",
                        null);
            }
            read.add(ModelConfig.InstanceGroup.cpu(model + "_" + read.size(), (int) Math.max(1, count)));
        }
        return read;
    }

    private static Map<String, String> parameters(List<Value> given) {
        Map<String, String> parameters = new LinkedHashMap<>();
        for (Value v : given) {
            BoundMessage.Entry entry = v.entry();
            parameters.put(entry.key(), entry.value() instanceof BoundMessage m ? m.text("string_value") : "");
        }
        return Map.copyOf(parameters);
    }
}
