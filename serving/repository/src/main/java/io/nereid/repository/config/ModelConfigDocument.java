// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.schema.ConfigSchema;
import io.nereid.repository.schema.ConfigSchema.Cardinality;
import io.nereid.repository.schema.ConfigSchema.Field;
import io.nereid.repository.schema.ConfigSchema.Support;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Entry;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.parameters.PaddingPolicy;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The whole configuration of a model as Triton's {@code ModelConfig}, in the normalized form that Triton reports: with
 * all scalars, lists and maps, also at their defaults, and without absent messages. The document consists of Map, List,
 * String, Long, Double and Boolean; fields are in the order of Triton's definition, enumerations by name, and 64-bit
 * numbers are numbers. Immutable.
 */
public final class ModelConfigDocument {
    private static final ConfigSchema SCHEMA = ConfigSchema.MODEL_CONFIG;
    private static final String ROOT = "ModelConfig";

    private ModelConfigDocument() {}

    /**
     * Creates the document of a configuration. The record's values win; {@link ModelConfig#document()}, which is an
     * earlier document or the fields of the configuration's text, adds the fields that the record does not have. The
     * function is idempotent. Call it when the backend has completed the record, and after every change of it:
     *
     * <pre>{@code
     * config = config.toBuilder().document(ModelConfigDocument.of(config)).build();
     * }</pre>
     */
    public static Map<String, Object> of(ModelConfig config) {
        Map<String, Object> tree = merged(ROOT, config.document(), ModelConfigRenderer.of(config));
        if (config.ensemble() == null) {
            Map<String, Object> optimization = new LinkedHashMap<>(map(tree.get("optimization")));
            optimization.putIfAbsent("input_pinned_memory", Map.of("enable", true));
            optimization.putIfAbsent("output_pinned_memory", Map.of("enable", true));
            tree.put("optimization", optimization);
        }
        // Present in the text without effect, or disabled since.
        if (tree.containsKey("model_transaction_policy")) {
            tree.put("model_transaction_policy", Map.of("decoupled", config.decoupled()));
        }
        if (tree.containsKey("response_cache")) {
            tree.put("response_cache", Map.of("enable", config.responseCache()));
        }
        return completed(ROOT, tree);
    }

    /** As {@link #of}, but the document is made when it is read. Keeps the configuration. */
    public static Map<String, Object> lazy(ModelConfig config) {
        // A chain of documents would grow with every change of a served model.
        return config.document() instanceof LazyDocument ? of(config) : new LazyDocument(config);
    }

    /**
     * Validates a configuration again after its backend has completed it. Only now can some rules be checked, such as a
     * preferred batch size beyond the maximum that the backend found.
     *
     * @param directory the model's directory
     * @param gpus the GPUs that the configuration is checked against
     * @throws ServingException INVALID_ARGUMENT with all violated rules
     */
    public static void check(ModelConfig completed, Path directory, GpuInventory gpus) {
        ProblemCollector problems = new ProblemCollector();
        ModelConfigReader.check(spelled(completed), directory, gpus, problems);
        if (problems.hasErrors()) {
            throw ProblemCollector.refusal(problems.list());
        }
        PaddingPolicy.of(completed);
    }

    /**
     * Gives shapes without dimensions the dimension 1, since the text format cannot express a shape without dimensions.
     */
    private static ModelConfig spelled(ModelConfig completed) {
        return completed.toBuilder()
                .inputs(spelled(completed.inputs()))
                .outputs(spelled(completed.outputs()))
                .build();
    }

    private static List<TensorSpec> spelled(List<TensorSpec> specs) {
        return specs.stream()
                .map(s -> s.shape().rank() > 0
                        ? s
                        : new TensorSpec(s.name(), s.dataType(), Shape.of(1), s.optional(), s.ragged(), s.reshape()))
                .toList();
    }

    /** The fields of a text, without defaults. */
    static Map<String, Object> given(TypedMessage message) {
        return given(ROOT, message);
    }

    private static Map<String, Object> given(String type, TypedMessage message) {
        Map<String, Object> tree = new LinkedHashMap<>();
        for (Field field : fields(type)) {
            List<Value> values = message.all(field.name());
            if (values.isEmpty()) {
                continue;
            }
            tree.put(
                    field.name(),
                    switch (field.cardinality()) {
                        case ONE -> plain(field, values.get(0).value());
                        case MANY ->
                            values.stream().map(v -> plain(field, v.value())).toList();
                        case MAP -> {
                            Map<String, Object> entries = new LinkedHashMap<>();
                            for (Value v : values) {
                                Entry entry = v.entry();
                                entries.put(entry.key(), plain(field, entry.value()));
                            }
                            yield Collections.unmodifiableMap(entries);
                        }
                    });
        }
        return Collections.unmodifiableMap(tree);
    }

    private static Object plain(Field field, Object value) {
        return value instanceof TypedMessage m ? given(field.type(), m) : value;
    }

    private static Iterable<Field> fields(String type) {
        return Objects.requireNonNull(SCHEMA.fields(type)).values();
    }

    private static boolean isMessage(Field field) {
        return SCHEMA.fields(field.type()) != null;
    }

    /** Merges the given and the recorded fields; the record's values win. */
    private static Map<String, Object> merged(String type, Map<String, Object> given, Map<String, Object> recorded) {
        Map<String, Object> tree = new LinkedHashMap<>();
        for (Field field : fields(type)) {
            Object g = given.get(field.name());
            Object r = recorded.get(field.name());
            if (r == null) {
                if (g != null && !replaced(type, field, recorded)) {
                    tree.put(field.name(), g);
                }
            } else if (g == null || !isMessage(field) || field.cardinality() == Cardinality.MAP) {
                tree.put(field.name(), sameMembers(g, r) ? Objects.requireNonNull(g) : r);
            } else if (field.cardinality() == Cardinality.ONE) {
                tree.put(field.name(), merged(field.type(), map(g), map(r)));
            } else {
                tree.put(field.name(), mergedList(field.type(), list(g), list(r)));
            }
        }
        return tree;
    }

    /** Whether two lists differ only in order: the record sorts some lists, the document keeps the given order. */
    private static boolean sameMembers(@Nullable Object given, Object recorded) {
        return given instanceof List<?> g
                && recorded instanceof List<?> r
                && g.size() == r.size()
                && new HashSet<>(g).equals(new HashSet<>(r));
    }

    /** Whether a given field must be dropped, because the record has another field of its oneof, or none of it. */
    private static boolean replaced(String type, Field field, Map<String, Object> recorded) {
        if (field.oneof().isEmpty()) {
            return false;
        }
        if (type.equals(ROOT)) {
            return true;
        }
        for (Field other : fields(type)) {
            if (other.oneof().equals(field.oneof()) && recorded.containsKey(other.name())) {
                return true;
            }
        }
        return false;
    }

    /** Merges each recorded member with the given member of the same name, or at the same index if it has no name. */
    private static List<Object> mergedList(String type, List<?> given, List<?> recorded) {
        List<Object> members = new ArrayList<>();
        Map<Object, Map<String, Object>> byName = new HashMap<>();
        for (Object member : given) {
            Object name = map(member).get("name");
            if (name != null) {
                byName.putIfAbsent(name, map(member));
            }
        }
        for (int i = 0; i < recorded.size(); i++) {
            Map<String, Object> r = map(recorded.get(i));
            Map<String, Object> g = byName.get(r.getOrDefault("name", ""));
            if (g == null
                    && given.size() == recorded.size()
                    && !map(given.get(i)).containsKey("name")) {
                g = map(given.get(i));
            }
            members.add(g == null ? r : merged(type, g, r));
        }
        return members;
    }

    private static Map<String, Object> completed(String type, Map<String, Object> tree) {
        Map<String, Object> document = new LinkedHashMap<>();
        for (Field field : fields(type)) {
            Object value = tree.get(field.name());
            switch (field.cardinality()) {
                case MANY -> {
                    List<Object> members = new ArrayList<>();
                    for (Object member : list(value)) {
                        members.add(completed(field, member));
                    }
                    document.put(field.name(), Collections.unmodifiableList(members));
                }
                case MAP -> {
                    Map<String, Object> entries = new LinkedHashMap<>();
                    map(value).forEach((k, v) -> entries.put(k, completed(field, v)));
                    document.put(field.name(), Collections.unmodifiableMap(entries));
                }
                case ONE -> {
                    if (value != null) {
                        document.put(field.name(), completed(field, value));
                    } else if (!isMessage(field) && field.oneof().isEmpty() && field.support() != Support.ADDED) {
                        document.put(field.name(), byDefault(field.type()));
                    }
                }
            }
        }
        return Collections.unmodifiableMap(document);
    }

    private static Object completed(Field field, Object value) {
        return isMessage(field) ? completed(field.type(), map(value)) : value;
    }

    private static Object byDefault(String type) {
        List<String> names = SCHEMA.enumeration(type);
        if (names != null) {
            return names.get(0);
        }
        return switch (type) {
            case "string" -> "";
            case "bool" -> false;
            case "float", "double" -> 0.0;
            default -> 0L;
        };
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(@Nullable Object value) {
        return value instanceof Map ? (Map<String, Object>) value : Map.of();
    }

    private static List<?> list(@Nullable Object value) {
        return value instanceof List<?> l ? l : List.of();
    }
}
