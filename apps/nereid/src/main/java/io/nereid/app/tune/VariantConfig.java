// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a variant is in a model's configuration: {@code max_batch_size}, {@code dynamic_batching}, {@code instance_group} and the
 * backend's parameter for the threads of a run. A field that a variant does not change stays as it is written. Immutable.
 *
 * <p>A batch size up to the present {@code max_batch_size} is the {@code preferred_batch_size}, so that requests of more rows stay
 * valid; a larger one raises {@code max_batch_size}.
 */
final class VariantConfig {
    /** The parameter of each backend that has one for the threads of a run. */
    private static final Map<String, String> THREADS = Map.of(
            "onnxruntime", "intra_op_thread_count",
            "pytorch", "INTRA_OP_THREAD_COUNT",
            "tflite", "num_threads",
            "tensorflow", "TF_NUM_INTRA_THREADS");

    private final ObjectNode base;
    private final ConfigVariant first;
    private final int maxBatchSize;
    private final @Nullable String threads;
    private final boolean oneGroup;

    private VariantConfig(
            ObjectNode base, ConfigVariant first, int maxBatchSize, @Nullable String threads, boolean oneGroup) {
        this.base = base;
        this.first = first;
        this.maxBatchSize = maxBatchSize;
        this.threads = threads;
        this.oneGroup = oneGroup;
    }

    /**
     * Reads a model's configuration.
     *
     * @param effective the configuration with every default
     * @param written the fields that are stored; null where they cannot be read
     * @param cores the threads that {@code 0} stands for
     * @throws ServingException UNIMPLEMENTED for a model without batching and instances of its own
     */
    static VariantConfig of(ObjectNode effective, @Nullable ObjectNode written, int cores) {
        String name = effective.path("name").asText();
        if (effective.has("ensemble_scheduling")) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "model '" + name
                            + "' is an ensemble, whose batching and instances are those of its composing models"
                            + " (expected: a model that is not an ensemble)",
                    "tune the composing models");
        }
        int most = effective.path("max_batch_size").asInt();
        JsonNode batching = effective.path("dynamic_batching");
        int size = most > 0 ? 1 : 0;
        if (most > 0 && batching.isObject()) {
            size = most;
            JsonNode preferred = batching.path("preferred_batch_size");
            for (int i = 0; i < preferred.size(); i++) {
                size = i == 0
                        ? preferred.path(0).asInt()
                        : Math.max(size, preferred.path(i).asInt());
            }
        }
        int instances = 0;
        for (JsonNode group : effective.path("instance_group")) {
            instances += Math.max(1, group.path("count").asInt());
        }
        String parameter = THREADS.get(effective.path("backend").asText());
        int threads = 1;
        if (parameter != null) {
            String value = effective
                    .path("parameters")
                    .path(parameter)
                    .path("string_value")
                    .asText("1");
            threads = value.matches("[1-9][0-9]{0,3}") ? Integer.parseInt(value) : value.equals("0") ? cores : 1;
        }
        return new VariantConfig(
                written == null ? effective : written,
                new ConfigVariant(
                        size, batching.path("max_queue_delay_microseconds").asLong(), Math.max(1, instances), threads),
                most,
                parameter,
                effective.path("instance_group").size() <= 1
                        && (written == null || written.path("instance_group").size() <= 1));
    }

    /** The variant that the model has now. */
    ConfigVariant first() {
        return first;
    }

    /** Whether the model batches, or can. */
    boolean batches() {
        return maxBatchSize > 0;
    }

    /** Whether the number of instances is one number: a model may have several groups of them. */
    boolean hasInstances() {
        return oneGroup;
    }

    /** Whether the threads of a run are a parameter of the model. */
    boolean hasThreads() {
        return threads != null;
    }

    /** The limit of rows of the variant's requests. */
    int maxBatchSize(ConfigVariant variant) {
        return Math.max(maxBatchSize, variant.batchSize());
    }

    /** Whether the stored configuration limits the rows of a request, so that larger ones are refused already. */
    boolean limitsRows() {
        return base.has("max_batch_size");
    }

    private boolean batchesOtherwise(ConfigVariant variant) {
        return variant.batchSize() != first.batchSize() || variant.delayMicros() != first.delayMicros();
    }

    /** The whole configuration for a load request; null for the stored one. */
    @Nullable String json(ConfigVariant variant) {
        if (variant.equals(first)) {
            return null;
        }
        ObjectNode config = base.deepCopy();
        if (batchesOtherwise(variant)) {
            if (maxBatchSize(variant) > maxBatchSize || config.has("max_batch_size")) {
                config.put("max_batch_size", maxBatchSize(variant));
            }
            ObjectNode batching = config.withObjectProperty("dynamic_batching");
            batching.put("max_queue_delay_microseconds", variant.delayMicros());
            batching.remove("preferred_batch_size");
            if (variant.batchSize() < maxBatchSize(variant)) {
                batching.putArray("preferred_batch_size").add(variant.batchSize());
            }
        }
        if (variant.instances() != first.instances()) {
            ObjectNode group = config.path("instance_group").path(0) instanceof ObjectNode one
                    ? one.deepCopy()
                    : config.objectNode().put("kind", "KIND_CPU");
            group.put("count", variant.instances());
            config.putArray("instance_group").add(group);
        }
        if (threads != null && variant.threads() != first.threads()) {
            config.withObjectProperty("parameters")
                    .withObjectProperty(threads)
                    .put("string_value", Integer.toString(variant.threads()));
        }
        return config.toString();
    }

    /**
     * The text of a {@code config.pbtxt} with the variant's fields in it; everything else, comments too, stays.
     *
     * @param text the present text; empty without a file
     */
    String text(String text, ConfigVariant variant) {
        ConfigText config = new ConfigText(text);
        if (batchesOtherwise(variant)) {
            if (!limitsRows() || maxBatchSize(variant) > maxBatchSize) {
                config.set("max_batch_size", Integer.toString(maxBatchSize(variant)));
            }
            ConfigText batching = new ConfigText(config.body("dynamic_batching"));
            batching.set("max_queue_delay_microseconds", Long.toString(variant.delayMicros()));
            batching.remove("preferred_batch_size");
            if (variant.batchSize() < maxBatchSize(variant)) {
                batching.set("preferred_batch_size", "[ " + variant.batchSize() + " ]");
            }
            config.setBody("dynamic_batching", batching.text());
        }
        if (variant.instances() != first.instances()) {
            if (config.body("instance_group").isEmpty()) {
                config.set("instance_group", "[ { count: " + variant.instances() + " kind: KIND_CPU } ]");
            } else {
                ConfigText group = new ConfigText(config.body("instance_group"));
                group.set("count", Integer.toString(variant.instances()));
                config.setBody("instance_group", group.text());
            }
        }
        if (threads != null && variant.threads() != first.threads()) {
            config.setEntry("parameters", threads, "{ string_value: \"" + variant.threads() + "\" }");
        }
        return config.text();
    }

    /** The fields that a variant changes, as they stand in a {@code config.pbtxt}. */
    String fields(ConfigVariant variant) {
        return text("", variant);
    }
}
