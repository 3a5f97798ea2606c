// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.backends.trees.TreeConfig.Output;
import io.nereid.backends.trees.forest.Forest;
import io.nereid.backends.trees.forest.ForestBuilder;
import io.nereid.backends.trees.forest.ForestBuilder.Flavor;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** A loaded model, shared by all its instances. Immutable. */
final class TreeModel implements BackendModel {
    /** The number of steps through trees that takes a few tens of microseconds at most. */
    private static final long TINY = 10_000;

    private final ParsedModel facts;
    private final TreeConfig config;
    private final @Nullable Forest forest;
    private final ShapExplainer explanations;
    private final ModelTraits traits;
    /** Steps through trees for a row. */
    private final long steps;

    private final List<Port> ports;
    private final @Nullable Turned turned;

    /**
     * The signature in which {@code predict} is the margin, or, for a model configured to return margins, the
     * prediction. Immutable.
     *
     * @param name the signature's name
     */
    private record Turned(String name, Signature signature, List<Port> ports) {}

    /**
     * An output, resolved for runs. Immutable.
     *
     * @param wide whether its shape has a dimension for the values of a row
     * @param width values per row
     */
    record Port(String name, Output output, DataType type, boolean wide, int width) {}

    TreeModel(ParsedModel parsed, TreeConfig config, ShapExplainer explanations) {
        this.config = config;
        this.explanations = explanations;
        DataType input = config.config().modelInputs().get(0).dataType();
        Flavor flavor = parsed.format().equals(ParsedModel.XGBOOST)
                ? Flavor.LESS
                : input == DataType.FP32 ? Flavor.LESS_OR_EQUAL : Flavor.LESS_OR_EQUAL_DOUBLE;
        this.forest = parsed.weights() == null ? new ForestBuilder(parsed.trees(), flavor).build() : null;
        // Parsed trees are released here; only the explainer of a small model keeps its own.
        this.facts = parsed.withoutTrees();
        this.steps = forest == null
                ? parsed.features()
                : forest.steps() + forest.slots().size();
        int rows = Math.max(1, config.config().maxBatchSize());
        boolean bounded = config.config().batched() || config.rowVector();
        this.ports = ports(config.config().modelOutputs(), config.margin());
        List<TensorSpec> others = config.turned(parsed);
        this.turned = others.isEmpty()
                ? null
                : new Turned(
                        config.margin() ? TreeConfig.ANSWER : TreeConfig.MARGIN,
                        new Signature(Signature.PREDICT, config.config().inputs(), others, Map.of()),
                        ports(others, !config.margin()));
        this.traits = ModelTraits.builder()
                .cancellable(true)
                .inline(bounded && tiny(rows))
                .takesTables(true)
                .build();
    }

    private boolean tiny(int rows) {
        return steps * rows <= TINY && explanations.atHand();
    }

    private List<Port> ports(List<TensorSpec> specs, boolean margin) {
        List<Port> found = new ArrayList<>();
        int outer = config.config().batched() || config.rowVector() ? 0 : 1;
        for (TensorSpec spec : specs) {
            Output named = Objects.requireNonNull(Output.of(spec.name()));
            Output output = named == Output.PREDICT && margin ? Output.MARGIN : named;
            boolean wide = spec.modelShape().rank() > outer;
            found.add(new Port(spec.name(), output, spec.dataType(), wide, TreeConfig.width(output, facts, margin)));
        }
        return List.copyOf(found);
    }

    ParsedModel facts() {
        return facts;
    }

    TreeConfig settings() {
        return config;
    }

    @Nullable Forest forest() {
        return forest;
    }

    @Override
    public ModelConfig config() {
        return config.config();
    }

    @Override
    public ModelTraits traits() {
        return traits;
    }

    /** {@inheritDoc} Unless runs become too long for the thread of the request, or short enough. */
    @Override
    public boolean acceptsMaxBatchSize(int rows) {
        return tiny(rows) == traits.inline();
    }

    @Override
    public ModelInstance newInstance() {
        return new TreeModelInstance(this, ports);
    }

    @Override
    public Map<String, Signature> signatures() {
        if (turned == null) {
            return explanations.signatures();
        }
        Map<String, Signature> all = new TreeMap<>(explanations.signatures());
        all.put(turned.name(), turned.signature());
        return all;
    }

    /** Selects the signature by the request parameter {@code output_margin}, or LightGBM's {@code raw_score}. */
    @Override
    public String signature(Map<String, Object> parameters) {
        Boolean margin = TreeConfig.margin(parameters);
        if (margin == null || margin == config.margin()) {
            return "";
        }
        if (turned == null) {
            throw ServingException.invalidArgument(
                    "model '" + config.config().name() + "' has no output 'predict', the only one that the parameter "
                            + TreeConfig.OUTPUT_MARGIN + " changes",
                    "omit the parameter, or request the output margin");
        }
        return turned.name();
    }

    @Override
    public ModelInstance newInstance(String signature) {
        if (turned != null && signature.equals(turned.name())) {
            return new TreeModelInstance(this, turned.ports());
        }
        if (!signature.equals(ShapExplainer.SIGNATURE)) {
            throw ServingException.invalidArgument(
                    "model '" + config.config().name() + "' has no signature '" + signature + "' (expected: "
                            + String.join(", ", signatures().keySet()) + ")");
        }
        return explanations.newInstance(this);
    }

    /** Returns 0: all memory is on the heap. */
    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public void close() {}
}
