// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.tensorflow.SavedModelFile.MetaGraph;
import io.nereid.backends.tensorflow.SavedModelFile.SignatureFacts;
import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Runs SavedModels and frozen GraphDefs with TensorFlow, on CPUs. Thread-safe; TensorFlow is started on first use,
 * under this object's lock.
 *
 * <p>All instances of a version share one session, and so its variables. Instances run in parallel, each run on the
 * thread that calls it, unless the model's parameters ask for more threads per run.
 *
 * <p>The server finds this class through {@link java.util.ServiceLoader}. Used directly:
 *
 * <pre>{@code
 * Backend backend = new TensorflowBackend();
 * if (backend.unavailableReason() == null) {
 *     BackendModel model = backend.load(location, config, context);
 * }
 * }</pre>
 */
public final class TensorflowBackend implements Backend {
    static final String NAME = "tensorflow";
    static final String SAVED_MODEL = "tensorflow_savedmodel";
    static final String GRAPH_DEF = "tensorflow_graphdef";

    private static final Logger LOG = System.getLogger(TensorflowBackend.class.getName());
    private static final String DIRECTORY = "model.savedmodel";
    private static final String GRAPH_FILE = "model.graphdef";

    /** Prefix of the signatures that TensorFlow 2 adds to every model for its initialisation. They are not served. */
    private static final String OF_LOADING = "__saved_model_";

    @GuardedBy("this") private @Nullable TfRuntime runtime;

    @GuardedBy("this") private @Nullable String failure;

    /** Creates the backend. It loads native code only when a model is loaded or its availability is checked. */
    public TensorflowBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(SAVED_MODEL, GRAPH_DEF);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(DIRECTORY, SavedModelFile.NAME, GRAPH_FILE);
    }

    @Override
    public boolean recognises(Path file) {
        if (Files.isDirectory(file)) {
            return Files.isRegularFile(file.resolve(SavedModelFile.NAME));
        }
        byte[] head = new byte[3];
        try (InputStream in = Files.newInputStream(file)) {
            if (in.readNBytes(head, 0, 3) < 3) {
                return false;
            }
        } catch (IOException e) {
            return false;
        }
        // A SavedModel begins with saved_model_schema_version = 1 and the first meta_graphs field. A GraphDef begins
        // with its first node field and that node's name; a length of 128 or more takes a second byte.
        return isSavedModel(head) || (head[0] == 0x0a && (head[2] == 0x0a || head[1] < 0));
    }

    private static boolean isSavedModel(byte[] head) {
        return head[0] == 0x08 && head[1] == 0x01 && head[2] == 0x12;
    }

    @Override
    public synchronized @Nullable String unavailableReason() {
        if (runtime == null && failure == null) {
            try {
                runtime = TfRuntime.start();
            } catch (LinkageError | RuntimeException e) {
                Throwable cause = e;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                failure = "TensorFlow cannot be loaded on this machine (" + System.getProperty("os.name") + ", "
                        + System.getProperty("os.arch") + "): " + cause.getMessage();
            }
        }
        return failure;
    }

    private synchronized TfRuntime started() {
        String reason = unavailableReason();
        TfRuntime started = runtime;
        if (started == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    String.valueOf(reason),
                    "TensorFlow needs Linux with glibc 2.34 or newer on x86-64, and 700 MB of disk in the user's cache"
                            + " directory; 'nereid plugins install tensorflow' repairs a damaged installation");
        }
        return started;
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(TfSettings.names());
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        TfSettings settings = TfSettings.read(config.parameters(), context.settings());
        Path place = find(source, config);
        try {
            return Files.isDirectory(place)
                    ? savedModel(source, config, context, settings, place)
                    : graphDef(source, config, context, settings, place);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read '" + place + "' of model '" + config.name() + "': "
                            + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
    }

    /** Finds the directory of a SavedModel, or the file of a GraphDef. */
    private static Path find(ModelLocation source, ModelConfig config) {
        Path directory = source.versionDirectory().normalize();
        boolean graph = config.platform().equals(GRAPH_DEF);
        List<String> names = !config.modelFile().isEmpty()
                ? List.of(config.modelFile())
                : graph ? List.of(GRAPH_FILE) : List.of(DIRECTORY, SavedModelFile.NAME, GRAPH_FILE);
        for (String name : names) {
            Path place = directory.resolve(name).normalize();
            if (!place.startsWith(directory)) {
                throw ServingException.invalidArgument(
                        "model file '" + name + "' lies outside the version's directory",
                        "name a file inside " + directory);
            }
            if (Files.isDirectory(place)) {
                return place;
            }
            if (Files.isRegularFile(place)) {
                boolean inside = String.valueOf(place.getFileName()).equals(SavedModelFile.NAME);
                Path parent = place.getParent();
                return inside && parent != null ? parent : place;
            }
        }
        throw ServingException.invalidArgument(
                "unable to find '" + directory.resolve(names.get(0)) + "' for model '" + config.name() + "'",
                Files.exists(directory.resolve("saved_model.pbtxt"))
                        ? "saved_model.pbtxt is not served: save the model in the binary form"
                        : "put " + String.join(", or ", names) + " there, or name the file in default_model_filename");
    }

    private BackendModel savedModel(
            ModelLocation source, ModelConfig config, BackendContext context, TfSettings settings, Path directory)
            throws IOException {
        Path file = directory.resolve(SavedModelFile.NAME);
        if (!Files.isRegularFile(file)) {
            throw ServingException.invalidArgument(
                    "unable to find '" + file + "' for model '" + config.name() + "'",
                    Files.exists(directory.resolve("saved_model.pbtxt"))
                            ? "saved_model.pbtxt is not served: save the model in the binary form"
                            : "copy the whole SavedModel there");
        }
        List<MetaGraph> graphs = SavedModelFile.read(file);
        MetaGraph chosen = chosen(config, settings, graphs, file);
        if (chosen.variables() && !Files.exists(directory.resolve("variables").resolve("variables.index"))) {
            // TensorFlow would load the model without an error, and every run would fail.
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "' from '" + directory
                            + "': the values of its variables are missing (expected: variables/variables.index)",
                    "copy the whole SavedModel: saved_model.pb, and the directories variables and assets beside it");
        }
        String byDefault = defaultSignature(config, settings, chosen, file);
        TfRuntime engine = started();
        libraries(engine, source, config);
        TfGraph graph = TfGraph.ofSavedModel(config.name(), directory, chosen.tags(), settings);
        boolean loaded = false;
        try {
            List<SignatureBinding> all = new ArrayList<>();
            for (Map.Entry<String, SignatureFacts> entry : chosen.signatures().entrySet()) {
                String name = entry.getKey();
                if (name.startsWith(OF_LOADING)) {
                    continue;
                }
                try {
                    all.add(SignatureBinding.find(
                            config.name(), name, entry.getValue(), graph, settings.checkShapes()));
                } catch (ServingException e) {
                    if (name.equals(byDefault)) {
                        throw e;
                    }
                    LOG.log(Level.WARNING, "signature ''{0}'' is not served: {1}", name, e.describe());
                }
            }
            TfModel model = complete(config, context, settings, SAVED_MODEL, graph, all, byDefault, bytes(directory));
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                graph.close();
            }
        }
    }

    private static TfModel complete(
            ModelConfig config,
            BackendContext context,
            TfSettings settings,
            String platform,
            TfGraph graph,
            List<SignatureBinding> all,
            String byDefault,
            long bytes) {
        SignatureBinding signature =
                all.stream().filter(s -> s.name().equals(byDefault)).findFirst().orElseThrow();
        ModelConfig complete = new ConfigCompletion(config, signature, all)
                .complete(
                        platform,
                        context.autoComplete(),
                        settings.defaultMaxBatchSize(),
                        Math.max(1, context.cores() / Math.max(1, settings.intraThreads())));
        return new TfModel(complete, graph, all, signature, bytes);
    }

    private BackendModel graphDef(
            ModelLocation source, ModelConfig config, BackendContext context, TfSettings settings, Path file)
            throws IOException {
        TfRuntime engine = started();
        libraries(engine, source, config);
        TfGraph graph = TfGraph.ofGraphDef(config.name(), file, settings);
        boolean loaded = false;
        try {
            SignatureBinding signature = SignatureBinding.ofGraph(config, graph, settings.checkShapes());
            TfModel model = complete(
                    config,
                    context,
                    settings,
                    GRAPH_DEF,
                    graph,
                    List.of(signature),
                    signature.name(),
                    Files.size(file));
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                graph.close();
            }
        }
    }

    private static void libraries(TfRuntime engine, ModelLocation source, ModelConfig config) {
        for (String library : config.operatorLibraries()) {
            engine.loadOperators(
                    config.name(), source.modelDirectory().resolve(library).toAbsolutePath());
        }
    }

    private static MetaGraph chosen(ModelConfig config, TfSettings settings, List<MetaGraph> graphs, Path file) {
        Set<String> wanted = settings.tag().isEmpty() ? Set.of(SavedModelFile.SERVE) : settings.tag();
        for (MetaGraph graph : graphs) {
            if (graph.tags().equals(wanted)) {
                return graph;
            }
        }
        List<String> there =
                graphs.stream().map(g -> String.join(",", g.tags())).toList();
        if (settings.tag().isEmpty() && graphs.size() == 1) {
            // The only graph, and the configuration does not ask for a tag.
            return graphs.get(0);
        }
        throw ServingException.invalidArgument(
                "unable to load model '" + config.name() + "' from '" + file + "': it has no graph with the tags '"
                        + String.join(",", new TreeSet<>(wanted)) + "' (it has '" + String.join("', '", there) + "')",
                "set the parameter TF_GRAPH_TAG to one of these");
    }

    private static String defaultSignature(ModelConfig config, TfSettings settings, MetaGraph graph, Path file) {
        Map<String, SignatureFacts> there = new java.util.TreeMap<>(graph.signatures());
        if (!settings.signature().isEmpty()) {
            if (there.containsKey(settings.signature())) {
                return settings.signature();
            }
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "' from '" + file + "': it has no signature '"
                            + settings.signature() + "' (it has " + String.join(", ", there.keySet()) + ")",
                    NameSuggestions.didYouMean(settings.signature(), there.keySet(), "correct TF_SIGNATURE_DEF"));
        }
        if (there.containsKey(ModelMetadata.DEFAULT_SIGNATURE)) {
            return ModelMetadata.DEFAULT_SIGNATURE;
        }
        there.keySet().removeIf(name -> name.startsWith(OF_LOADING));
        for (Map.Entry<String, SignatureFacts> entry : there.entrySet()) {
            if (entry.getValue().method().equals(Signature.PREDICT)
                    && !entry.getValue().outputs().isEmpty()) {
                return entry.getKey();
            }
        }
        for (Map.Entry<String, SignatureFacts> entry : there.entrySet()) {
            if (!entry.getValue().outputs().isEmpty()) {
                return entry.getKey();
            }
        }
        throw ServingException.invalidArgument(
                "unable to load model '" + config.name() + "' from '" + file + "': it has no signature with outputs",
                "export the model with signatures: tf.saved_model.save(model, path, signatures=...)");
    }

    /** The size of the files, an estimate of the memory that TensorFlow needs for the model. */
    private static long bytes(Path directory) throws IOException {
        try (var files = Files.walk(directory)) {
            long sum = 0;
            for (Path file : (Iterable<Path>) files::iterator) {
                sum += Files.isRegularFile(file) ? Files.size(file) : 0;
            }
            return sum;
        }
    }
}
