// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.explain.method.Counterfactual;
import io.nereid.explain.method.ExplanationTask;
import io.nereid.explain.method.KernelShap;
import io.nereid.explain.method.Lime;
import io.nereid.explain.method.PermutationImportance;
import io.nereid.explain.method.ShapValues;
import io.nereid.explain.model.EngineRowModel;
import io.nereid.explain.model.PredictionBudget;
import io.nereid.explain.request.Background;
import io.nereid.explain.request.ExplainOptions;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.explain.request.FeatureColumns;
import io.nereid.explain.request.InstanceReader;
import io.nereid.json.JsonValues;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Handles a request for explanations: from its body to the values of the response. Thread-safe: stateless. */
final class ExplainHandler {
    private static final String SHAP = "shap";
    private static final String CONTRIBUTIONS = "contributions";
    private static final List<String> FIELDS =
            List.of("instances", "inputs", "parameters", "explain", "id", "signature_name");
    /** Parameters of Kernel SHAP only: a request that contains one of them selects it. */
    private static final List<String> KERNEL = List.of("background", "background_size", "nsamples", "link", "output");
    /** The default number of background rows. */
    private static final int BACKGROUND = 100;

    private final InferenceEngine engine;
    private final Executor pool;
    private final Clock clock;
    private final ExplainSettings settings;

    ExplainHandler(InferenceEngine engine, Executor pool, Clock clock, ExplainSettings settings) {
        this.engine = engine;
        this.pool = pool;
        this.clock = clock;
        this.settings = settings;
    }

    /** The error that a future failed with. */
    static ServingException fault(Throwable error) {
        Throwable t = error;
        while (t instanceof CompletionException && t.getCause() != null) {
            t = t.getCause();
        }
        return ServingException.from(t);
    }

    /**
     * Explains the instances of a request.
     *
     * @param onCancel receives the action to run when the client disconnects
     * @throws ServingException for an invalid request
     */
    CompletableFuture<Map<String, Object>> explain(ModelRef model, byte[] body, Consumer<Runnable> onCancel) {
        ModelMetadata metadata = engine.metadata(model);
        Object tree;
        try {
            tree = JsonValues.readDoubles(body);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(
                    "Unrecognized request format: " + e.getMessage(),
                    "send {\"instances\": [[…], …], \"parameters\": {…}}");
        }
        if (!(tree instanceof Map<?, ?> request)) {
            throw ServingException.invalidArgument(
                    "the request is not a JSON object", "send {\"instances\": [[…], …], \"parameters\": {…}}");
        }
        for (Object key : request.keySet()) {
            ExplainOptions.require(String.valueOf(key), FIELDS, "field");
        }
        ExplainOptions asked = options(request);
        ExplainOptions options = asked.over(settings.defaults());
        String method = options.word("method", SHAP, ExplainSettings.METHODS);
        String field = request.containsKey("inputs") ? "inputs" : "instances";
        if (!request.containsKey(field)) {
            throw ServingException.invalidArgument(
                    "there is no 'instances' in the request", "send {\"instances\": [[…], …]}, the rows to explain");
        }
        Object given = request.get(field);
        FeatureColumns columns = FeatureColumns.of(metadata, InstanceReader.width(given));
        double[][] rows = InstanceReader.read(given, columns, field);
        if (rows.length == 0 || (rows.length > settings.maxInstances() && !method.equals("permutation"))) {
            throw ServingException.invalidArgument(
                    "there are " + rows.length + " instances (expected: 1 to " + settings.maxInstances() + ")",
                    rows.length == 0 ? "send the rows to explain" : "send fewer, or raise the limit max_instances");
        }
        long timeout = options.whole("timeout_ms", settings.timeoutMillis(), 1, settings.timeoutMillis());
        PredictionBudget budget = new PredictionBudget(clock, settings.maxPredictions(), timeout);
        onCancel.accept(budget::cancel);
        Signature own = own(metadata);
        if (method.equals("tree_shap") && own == null) {
            throw ServingException.invalidArgument(
                    "model '" + model.model() + "' has no SHAP values of its own (method 'tree_shap')",
                    "use method shap or kernel_shap, or serve a model of XGBoost or LightGBM");
        }
        boolean kernel = method.equals("kernel_shap")
                || (method.equals(SHAP) && (own == null || KERNEL.stream().anyMatch(asked::has)));
        boolean trees = method.equals("tree_shap") || (method.equals(SHAP) && !kernel);
        if (method.equals("tree_shap")) {
            for (String name : KERNEL) {
                if (asked.has(name)) {
                    throw ServingException.invalidArgument(
                            "method 'tree_shap' does not take parameter '" + name + "'",
                            "leave it out, or use method kernel_shap");
                }
            }
        }
        TensorSpec output = output(metadata, options);
        EngineRowModel predictor = predictor(model, metadata, columns, "", output.name(), budget);
        Background background =
                trees || method.equals("permutation") ? null : background(asked, options, columns, rows, kernel);
        return predictor.ask(rows).thenCompose(predictions -> {
            ExplanationTask question =
                    new ExplanationTask(rows, predictions, columns, background, options, predictor, budget);
            CompletableFuture<ExplanationTask.Answer> answer;
            if (trees) {
                answer = ShapValues.own(question, predictor(model, metadata, columns, SHAP, CONTRIBUTIONS, budget));
            } else if (kernel) {
                answer = KernelShap.explain(question);
            } else {
                answer = switch (method) {
                    case "lime" -> Lime.explain(question);
                    case "permutation" -> PermutationImportance.explain(question);
                    default -> Counterfactual.explain(question);
                };
            }
            return answer.thenApply(a -> response(request, model, metadata, method, output.name(), background, a));
        });
    }

    private static ExplainOptions options(Map<?, ?> request) {
        Map<String, @Nullable Object> parameters = new LinkedHashMap<>();
        for (String place : List.of("parameters", "explain")) {
            Object given = request.get(place);
            if (given instanceof Map<?, ?> map) {
                map.forEach((name, value) -> parameters.put(String.valueOf(name), value));
            } else if (given != null) {
                throw ServingException.invalidArgument("field '" + place + "' is " + ExplainOptions.describe(given)
                        + " (expected: an object of parameters)");
            }
        }
        Object signature = request.get("signature_name");
        if (request.containsKey("signature_name")
                && !"".equals(signature)
                && !ModelMetadata.DEFAULT_SIGNATURE.equals(signature)) {
            throw ServingException.invalidArgument(
                    "signature " + ExplainOptions.describe(signature) + " cannot be explained (expected: "
                            + ModelMetadata.DEFAULT_SIGNATURE + ")",
                    "leave signature_name out");
        }
        return ExplainOptions.of(parameters).checked();
    }

    private static @Nullable Signature own(ModelMetadata metadata) {
        Signature signature = metadata.signatures().get(SHAP);
        return signature != null
                        && signature.outputs().stream().anyMatch(o -> o.name().equals(CONTRIBUTIONS))
                ? signature
                : null;
    }

    private EngineRowModel predictor(
            ModelRef model,
            ModelMetadata metadata,
            FeatureColumns columns,
            String signature,
            String output,
            PredictionBudget budget) {
        return new EngineRowModel(engine, model, columns, signature, output, metadata.maxBatchSize(), budget, pool);
    }

    /** The output to explain: the requested one, else the first of floats, else the first of numbers. */
    private static TensorSpec output(ModelMetadata metadata, ExplainOptions options) {
        List<TensorSpec> outputs = metadata.outputs();
        List<String> names = outputs.stream().map(TensorSpec::name).toList();
        if (options.has("output")) {
            String name = options.text("output", "");
            ExplainOptions.require(name, names, "output in parameter 'output':");
            TensorSpec spec = outputs.get(names.indexOf(name));
            if (spec.dataType() == DataType.BYTES) {
                throw ExplainOptions.wrong("output", name, "an output of numbers");
            }
            return spec;
        }
        TensorSpec numbers = null;
        for (TensorSpec spec : outputs) {
            if (spec.dataType() == DataType.FP32 || spec.dataType() == DataType.FP64) {
                return spec;
            }
            numbers = numbers == null && spec.dataType() != DataType.BYTES ? spec : numbers;
        }
        if (numbers == null) {
            throw ServingException.invalidArgument(
                    "model '" + metadata.id().model() + "' cannot be explained: its outputs " + names + " are texts",
                    "serve it with an output of numbers, such as predict_proba");
        }
        return numbers;
    }

    private @Nullable Background background(
            ExplainOptions asked,
            ExplainOptions options,
            FeatureColumns columns,
            double[][] instances,
            boolean kernel) {
        int size = (int) options.whole("background_size", BACKGROUND, 1, 10_000);
        double[][] rows = null;
        String origin = "";
        Object given = asked.get("background");
        if (given != null) {
            rows = InstanceReader.read(given, columns, "background");
            origin = "request";
        } else if (settings.background() != null) {
            rows = InstanceReader.read(known(settings.background(), columns), columns, "background");
            origin = settings.origin();
        }
        if (rows != null) {
            if (rows.length == 0) {
                throw ServingException.invalidArgument(
                        "parameter 'background' is empty (expected: at least one row)",
                        "send some rows of training data");
            }
            long seed = options.whole("seed", 0, Long.MIN_VALUE / 2048, Long.MAX_VALUE / 2048);
            return Background.of(rows, size, origin, new java.util.SplittableRandom(seed));
        }
        if (instances.length < Background.ENOUGH) {
            return null;
        }
        return kernel
                ? Background.median(instances)
                : new Background(instances, instances.length, "the " + instances.length + " instances");
    }

    /** Removes columns that are not features from rows by name, when all features are present. */
    private static List<?> known(List<?> rows, FeatureColumns columns) {
        if (!(rows.get(0) instanceof Map<?, ?> first)) {
            return rows;
        }
        boolean byName = first.keySet().containsAll(columns.names());
        if (!byName && first.size() != columns.count()) {
            return rows;
        }
        List<Object> kept = new ArrayList<>();
        for (Object row : rows) {
            if (!(row instanceof Map<?, ?> map)) {
                return rows;
            }
            Map<String, Object> some = new LinkedHashMap<>();
            int at = 0;
            for (Map.Entry<?, ?> cell : map.entrySet()) {
                String name = byName
                        ? String.valueOf(cell.getKey())
                        : at < columns.count() ? columns.names().get(at++) : "";
                if (columns.names().contains(name)) {
                    some.put(name, cell.getValue());
                }
            }
            kept.add(some);
        }
        return kept;
    }

    private static Map<String, Object> response(
            Map<?, ?> request,
            ModelRef model,
            ModelMetadata metadata,
            String method,
            String output,
            @Nullable Background background,
            ExplanationTask.Answer answer) {
        Map<String, Object> response = new LinkedHashMap<>();
        response.put("explanations", answer.explanations());
        response.put("model_name", model.model());
        if (metadata.id().version() > 0) {
            response.put("model_version", String.valueOf(metadata.id().version()));
        }
        if (request.get("id") instanceof String id) {
            response.put("id", id);
        }
        response.put("method", method);
        response.putAll(answer.facts());
        response.putIfAbsent("explains", output);
        if (background != null) {
            Map<String, Object> used = new LinkedHashMap<>();
            used.put("origin", background.origin());
            used.put("rows", background.rows().length);
            if (background.from() > background.rows().length) {
                used.put("drawn_from", background.from());
            }
            response.put("background", used);
        }
        return response;
    }
}
