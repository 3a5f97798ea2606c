// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.backends.huggingface.graph.EncoderFamily;
import io.nereid.backends.huggingface.graph.EncoderGraph;
import io.nereid.backends.huggingface.graph.EncoderHeads;
import io.nereid.backends.huggingface.graph.EncoderTask;
import io.nereid.backends.huggingface.graph.SentenceStep;
import io.nereid.backends.huggingface.task.AnswerStyle;
import io.nereid.backends.huggingface.task.MaskAnswers;
import io.nereid.backends.huggingface.task.SequenceAnswers;
import io.nereid.backends.huggingface.task.SpanAnswers;
import io.nereid.backends.huggingface.task.TaskAnswers;
import io.nereid.backends.huggingface.task.TokenAnswers;
import io.nereid.backends.huggingface.task.VectorAnswers;
import io.nereid.backends.huggingface.weights.Checkpoint;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.TextTasks;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Serves encoders of Hugging Face's transformers from the folders that {@code save_pretrained} writes: {@code config.json}, weights
 * (safetensors or PyTorch's, in one file or several) and {@code tokenizer.json}. The graph is built from the configuration and runs on
 * the ONNX Runtime backend; no code of the folder is run. Texts go in, the task's answers come out.
 *
 * <p>Model parameters:
 *
 * <ul>
 *   <li>{@code task}: {@code sequence_classification}, {@code token_classification}, {@code fill_mask}, {@code question_answering} or
 *       {@code text_embedding}; by default that of the architecture
 *   <li>{@code max_length}: the maximum number of tokens of a text, which is truncated to it, and of a window over a text that answers
 *       a question; by default that of the folder, and at most 384 for windows
 *   <li>{@code add_special_tokens}: {@code true} (the default) or {@code false}
 *   <li>{@code do_lower_case}: {@code true} or {@code false}; by default the tokenizer decides
 *   <li>{@code return_probabilities}, {@code return_raw_logits}: the output of KServe's server with all probabilities or logits
 *   <li>{@code aggregation_strategy}: {@code none}, {@code simple} (the default), {@code first}, {@code average} or {@code max}; a
 *       request may have its own
 *   <li>{@code top_k}: the number of tokens for a mask, by default 5; a request may have its own
 *   <li>{@code text_pairs}: whether two texts are classified together; by default only with one label, as cross-encoders have
 *   <li>{@code doc_stride}: for {@code question_answering}, the tokens that two windows over a text longer than {@code max_length} have
 *       in common; by default half of {@code max_length}, or 128 if that is less
 *   <li>{@code normalize}: whether vectors are divided by their length where the folder does not say it; {@code true} by default
 *   <li>{@code intra_op_thread_count}, {@code inter_op_thread_count}, {@code session.*}: for ONNX Runtime
 * </ul>
 *
 * <p>Thread-safe. Nothing is downloaded.
 */
public final class HuggingFaceBackend implements Backend {
    static final String NAME = "huggingface";
    static final String TEXT = "TEXT";
    static final String PAIR = "TEXT_PAIR";

    private static final String ROWS_SETTING = "default-max-batch-size";
    private static final int ROWS = 32;

    private final List<Backend> others;

    /** Creates the backend for a server, which finds ONNX Runtime among the server's backends. */
    public HuggingFaceBackend() {
        this(List.of());
    }

    /** Creates the backend for use without a server. */
    public HuggingFaceBackend(List<Backend> others) {
        this.others = List.copyOf(others);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(
                "model.safetensors",
                "model.safetensors.index.json",
                "pytorch_model.bin",
                "pytorch_model.bin.index.json",
                "modules.json");
    }

    /**
     * By the name: the endings of index files and of PyTorch's weights are common to many files. A {@code modules.json} is that of
     * sentence-transformers, whose weights may be in a folder below it.
     */
    @Override
    public boolean recognises(Path file) {
        String name = String.valueOf(file.getFileName());
        return name.equals("modules.json")
                || name.endsWith(".safetensors")
                || name.endsWith(".safetensors.index.json")
                || (name.startsWith("pytorch_model") && (name.endsWith(".bin") || name.endsWith(".bin.index.json")));
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.of(ROWS_SETTING));
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        TextSettings settings = TextSettings.read(config);
        int rows = config.maxBatchSize() >= 0 ? config.maxBatchSize() : context.autoComplete() ? rows(context) : 0;
        Path folder = folder(source, config);
        SentenceModules modules = SentenceModules.read(folder);
        Path encoder = modules == null ? folder : modules.encoder();
        EncoderConfig described = RefusedModels.check(encoder, source.versionDirectory());
        String architecture = described.architecture();
        EncoderFamily family =
                RefusedModels.family(encoder, described, config.parameters().containsKey(ModelMetadata.KSERVE_SERVER));
        EncoderTask task = settings.task();
        if (task == null) {
            task = modules != null ? EncoderTask.TEXT_EMBEDDING : RefusedModels.task(encoder, architecture);
        }
        boolean score = task == EncoderTask.SEQUENCE_CLASSIFICATION
                && described.labels().size() == 1;
        if (score && settings.style() == AnswerStyle.KSERVE) {
            // The number of the only label says nothing: the score does, and KServe's clients rerank with it.
            settings = settings.withStyle(AnswerStyle.PIPELINE);
        }
        Checkpoint checkpoint = Checkpoint.open(encoder);
        List<SentenceStep> steps = modules != null ? modules.steps() : steps(settings);
        EncoderGraph graph = EncoderHeads.build(described, checkpoint, family, task, steps);
        boolean pairs = pairs(settings, described, task);
        // The tokenizer takes about half as long as the session, and neither needs the other.
        TextSettings tokens = settings;
        EncoderTask chosen = task;
        OpeningTokenizer opening = OpeningTokenizer.start(
                () -> TextTokenizer.open(config.name(), encoder, described, family, chosen, tokens, modules));
        GraphRunner runner = null;
        boolean loaded = false;
        try {
            runner = GraphRunner.open(graph, source, config, settings.runtime(), context, others);
            TextTokenizer tokenizer = opening.await();
            TaskAnswers answers = answers(task, settings, described, tokenizer, graph.outputWidth());
            String texts =
                    task == EncoderTask.TEXT_EMBEDDING ? TextTasks.EMBED : score && pairs ? TextTasks.RERANK : "";
            ModelConfig complete = complete(config, answers, pairs, texts, settings.style(), rows, context);
            TextModel model = new TextModel(
                    complete,
                    runner,
                    tokenizer,
                    answers,
                    graph.inputs(),
                    graph.outputs().keySet().iterator().next(),
                    task == EncoderTask.FILL_MASK);
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                if (runner != null) {
                    runner.close();
                }
                opening.discard();
            }
        }
    }

    private static Path folder(ModelLocation source, ModelConfig config) {
        Path directory = source.versionDirectory();
        if (config.modelFile().isEmpty()) {
            return directory;
        }
        Path given = directory.resolve(config.modelFile()).normalize();
        if (!given.startsWith(directory.normalize())) {
            throw ServingException.invalidArgument(
                    "model file '" + config.modelFile() + "' lies outside the version's directory",
                    "name a file inside " + directory);
        }
        Path parent = given.getParent();
        return Files.isDirectory(given) || parent == null ? given : parent;
    }

    private static List<SentenceStep> steps(TextSettings settings) {
        List<SentenceStep> steps = new ArrayList<>();
        steps.add(new SentenceStep.Pool(List.of("mean")));
        if (settings.normalize()) {
            steps.add(new SentenceStep.Normalize());
        }
        return steps;
    }

    private static boolean pairs(TextSettings settings, EncoderConfig config, EncoderTask task) {
        if (task != EncoderTask.QUESTION_ANSWERING && settings.stride() > 0) {
            throw ServingException.invalidArgument(
                    "parameter doc_stride is for question_answering, and the task is " + task.text(), "remove it");
        }
        Boolean given = settings.pairs();
        if (task != EncoderTask.SEQUENCE_CLASSIFICATION && given != null) {
            throw ServingException.invalidArgument(
                    "parameter text_pairs is for sequence_classification, and the task is " + task.text(), "remove it");
        }
        return task == EncoderTask.QUESTION_ANSWERING
                || (task == EncoderTask.SEQUENCE_CLASSIFICATION
                        && (given == null
                                ? config.labels().size() == 1 && settings.style() == AnswerStyle.PIPELINE
                                : given));
    }

    private static TaskAnswers answers(
            EncoderTask task, TextSettings settings, EncoderConfig config, TextTokenizer tokenizer, int width) {
        return switch (task) {
            case SEQUENCE_CLASSIFICATION -> new SequenceAnswers(config.labels(), function(config), settings.style());
            case TOKEN_CLASSIFICATION ->
                new TokenAnswers(
                        config.labels(),
                        settings.strategy(),
                        settings.style(),
                        tokenizer.tokenizer(),
                        tokenizer.unknown(),
                        tokenizer.prefixes(),
                        tokenizer.marks());
            case FILL_MASK -> {
                if (tokenizer.mask() < 0) {
                    throw ServingException.invalidArgument(
                            "tokenizer_config.json names no mask_token of the vocabulary",
                            "copy the tokenizer_config.json that belongs to the model");
                }
                yield new MaskAnswers(tokenizer.tokenizer(), width, tokenizer.mask(), settings.top(), settings.style());
            }
            case QUESTION_ANSWERING -> {
                if (settings.style() != AnswerStyle.PIPELINE) {
                    throw ServingException.invalidArgument(
                            "KServe's Hugging Face server does not have the task question_answering",
                            "serve the model in a repository, without return_probabilities and return_raw_logits");
                }
                yield new SpanAnswers(tokenizer.first());
            }
            case TEXT_EMBEDDING -> new VectorAnswers(width, settings.style());
        };
    }

    /** As transformers' pipeline chooses it, and sentence-transformers for cross-encoders. */
    private static SequenceAnswers.Function function(EncoderConfig config) {
        String problem = config.text("problem_type", "");
        Object activation = config.value("sbert_ce_default_activation_function");
        if (config.value("sentence_transformers") instanceof Map<?, ?> own) {
            activation = own.get("activation_fn");
        }
        if (activation instanceof String name) {
            String simple = name.substring(name.lastIndexOf('.') + 1);
            if (simple.equals("Identity")) {
                return SequenceAnswers.Function.NONE;
            }
            if (simple.equals("Sigmoid")) {
                return SequenceAnswers.Function.SIGMOID;
            }
            throw ServingException.invalidArgument(
                    "config.json has the activation function '" + name + "' (expected: Identity or Sigmoid of torch)",
                    "export the model to ONNX with optimum-cli");
        }
        return switch (problem) {
            case "regression" -> SequenceAnswers.Function.NONE;
            case "multi_label_classification" -> SequenceAnswers.Function.SIGMOID;
            default ->
                config.labels().size() == 1 ? SequenceAnswers.Function.SIGMOID : SequenceAnswers.Function.SOFTMAX;
        };
    }

    private static ModelConfig complete(
            ModelConfig config,
            TaskAnswers answers,
            boolean pairs,
            String texts,
            AnswerStyle style,
            int rows,
            BackendContext context) {
        List<TensorSpec> inputs = new ArrayList<>();
        inputs.add(new TensorSpec(TEXT, DataType.BYTES, shape(Shape.of(1), rows)));
        if (pairs) {
            inputs.add(new TensorSpec(PAIR, DataType.BYTES, shape(Shape.of(1), rows)));
        }
        List<TensorSpec> outputs = new ArrayList<>();
        for (TensorSpec spec : answers.outputs()) {
            outputs.add(new TensorSpec(spec.name(), spec.dataType(), shape(spec.shape(), rows)));
        }
        check(config, config.inputs(), inputs, "input");
        check(config, config.outputs(), outputs, "output");
        DynamicBatching batching = config.batching();
        if (batching == null && config.sequence() == null && context.autoComplete() && rows > 1) {
            batching = DynamicBatching.EAGER;
        }
        Map<String, String> parameters = new HashMap<>(config.parameters());
        if (!answers.documents().isEmpty()) {
            parameters.put(ModelMetadata.JSON_OUTPUTS, String.join(",", answers.documents()));
        }
        if (!texts.isEmpty()) {
            parameters.put(TextTasks.PROPERTY, texts);
        }
        if (style == AnswerStyle.PIPELINE) {
            parameters.remove(ModelMetadata.KSERVE_SERVER);
        }
        return config
                .completed(
                        config.platform().isEmpty() ? NAME : config.platform(),
                        NAME,
                        rows,
                        config.inputs().isEmpty() ? inputs : config.inputs(),
                        config.outputs().isEmpty() ? outputs : config.outputs(),
                        batching,
                        config.instances() > 0 ? config.instances() : Math.max(1, context.cores()))
                .toBuilder()
                .parameters(parameters)
                .build();
    }

    private static Shape shape(Shape row, int rows) {
        return rows > 0 ? row : row.prepend(-1);
    }

    /** A configuration may leave outputs out, and call inputs by its own names. */
    private static void check(ModelConfig config, List<TensorSpec> given, List<TensorSpec> own, String kind) {
        boolean input = kind.equals("input");
        if (given.isEmpty()) {
            return;
        }
        if (input && given.size() != own.size()) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has " + given.size() + " inputs (expected: " + own.size() + ")",
                    "correct its configuration, or leave out its inputs");
        }
        for (int i = 0; i < given.size(); i++) {
            TensorSpec spec = given.get(i);
            TensorSpec expected = input ? own.get(i) : find(own, spec.name());
            boolean same = expected != null && spec.dataType() == expected.dataType() && !spec.optional();
            if (expected == null || !same) {
                throw ServingException.invalidArgument(
                        "model '" + config.name() + "' has " + kind + " '" + spec.name() + "' " + spec.dataType()
                                + " (expected: "
                                + String.join(
                                        ", ",
                                        own.stream()
                                                .map(s -> s.name() + " " + s.dataType())
                                                .toList())
                                + ")",
                        "correct its configuration, or leave out its " + kind + "s");
            }
        }
    }

    private static @Nullable TensorSpec find(List<TensorSpec> specs, String name) {
        for (TensorSpec spec : specs) {
            if (spec.name().equals(name)) {
                return spec;
            }
        }
        return null;
    }

    private static int rows(BackendContext context) {
        String text = context.settings().getOrDefault(ROWS_SETTING, String.valueOf(ROWS));
        try {
            int rows = Integer.parseInt(text.strip());
            if (rows >= 0) {
                return rows;
            }
        } catch (NumberFormatException e) {
            // Rejected below.
        }
        throw ServingException.invalidArgument(
                "setting '" + ROWS_SETTING + "' is '" + text + "' (expected: a whole number >= 0)");
    }
}
