// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A loaded model, shared by all its instances. Immutable. */
final class CatboostModel implements BackendModel {
    /** The number of steps through trees that takes a few tens of microseconds at most. */
    private static final long TINY = 10_000;

    private final ParsedModel parsed;
    private final ModelConfig config;
    private final ModelTraits traits;
    private final long steps;
    private final int[] borders;
    private final Map<String, Signature> signatures;

    CatboostModel(ParsedModel parsed, ModelConfig config) {
        this.parsed = parsed;
        this.config = config;
        Map<String, Signature> each = new TreeMap<>();
        for (PredictionType output : PredictionType.values()) {
            if (output.suits(parsed)) {
                each.put(
                        output.toString(),
                        new Signature(
                                Signature.PREDICT,
                                config.inputs(),
                                List.of(CatboostConfig.spec(output, parsed, config.batched())),
                                Map.of()));
            }
        }
        this.signatures = Collections.unmodifiableMap(each);
        this.borders = parsed.ensemble().symmetric() ? SymmetricBlock.borders(parsed.ensemble()) : new int[0];
        this.steps =
                parsed.ensemble().splitSlots().length + 8L * parsed.ensemble().slots();
        this.traits = ModelTraits.builder()
                .cancellable(true)
                .inline(config.batched() && tiny(config.maxBatchSize()))
                .takesTables(true)
                .build();
    }

    private boolean tiny(int rows) {
        return steps * rows <= TINY;
    }

    /** The borders of symmetric trees for {@link SymmetricBlock}. */
    int[] borders() {
        return borders;
    }

    ParsedModel parsed() {
        return parsed;
    }

    @Override
    public ModelConfig config() {
        return config;
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
        return new CatboostModelInstance(this, config.modelOutputs());
    }

    /** One signature for each prediction type, with the name of its output. */
    @Override
    public Map<String, Signature> signatures() {
        return signatures;
    }

    /** Selects the signature by the request parameter {@code prediction_type}, as in CatBoost's {@code predict}. */
    @Override
    public String signature(Map<String, Object> parameters) {
        if (!parameters.containsKey("prediction_type")) {
            return "";
        }
        return CatboostConfig.selected(parsed, parameters, config).toString();
    }

    /** The signature of the only requested output. */
    @Override
    public String signatureWith(List<String> outputs) {
        return outputs.size() == 1 && signatures.containsKey(outputs.get(0)) ? outputs.get(0) : "";
    }

    @Override
    public ModelInstance newInstance(String signature) {
        Signature found = signatures.get(signature);
        if (found == null) {
            throw ServingException.invalidArgument("model '" + config.name() + "' has no signature '" + signature
                    + "' (expected: " + String.join(", ", signatures.keySet()) + ")");
        }
        return new CatboostModelInstance(this, found.outputs());
    }

    /** Returns 0: all memory is on the heap. */
    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public void close() {}
}
