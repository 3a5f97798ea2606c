// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config.parameters;

import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How requests of different lengths share a batch: the inputs that are padded at the end of their variable dimension, and
 * the outputs that are cut back to each request's own length. Read from a model's parameters, for example:
 *
 * <pre>{@code
 * parameters { key: "batching_padding" value { string_value: "input_ids=0, attention_mask=0" } }
 * parameters { key: "batching_padding_buckets" value { string_value: "16, 32, 64, 128" } }
 *
 * PaddingPolicy policy = PaddingPolicy.of(config);      // null: the model pads nothing
 * int padded = policy == null ? 20 : policy.padded(20); // 32
 * }</pre>
 *
 * <p>Each padded input has exactly one variable dimension. Its size is the request's <em>length</em>, the same for all
 * padded inputs of the request. Immutable.
 *
 * @param values the padding value of each padded input by its name, as written; not empty
 * @param outputs the names of the outputs whose variable dimensions have the padded length, and are cut back
 * @param buckets the lengths to which batches are padded, ascending; a longer batch has its own length. Empty: every
 *     batch has the length of its longest request
 * @param powers whether batches are padded to the next power of two, in place of {@code buckets}
 * @param byArrival whether batches are formed in order of arrival, as without padding, and not by length
 */
public record PaddingPolicy(
        Map<String, String> values, List<String> outputs, List<Integer> buckets, boolean powers, boolean byArrival) {
    /** The parameter with the padded inputs and their values: {@code input_ids=0,attention_mask=0}. */
    public static final String INPUTS = "batching_padding";

    /** The parameter with the outputs that are cut back; without it all outputs with a variable dimension. */
    public static final String OUTPUTS = "batching_padding_outputs";

    /** The parameter with the padded lengths: {@code none}, {@code powers} or a list of lengths. */
    public static final String BUCKETS = "batching_padding_buckets";

    /** The parameter for how batches are formed: by {@code length} or in order of {@code arrival}. */
    public static final String ORDER = "batching_padding_order";

    /** All parameters of padding. */
    public static final List<String> PARAMETERS = List.of(INPUTS, OUTPUTS, BUCKETS, ORDER);

    private static final int MOST_BUCKETS = 1_000;
    private static final int LARGEST_POWER = 1 << 30;

    /** Copies the collections; the order of {@code values} is kept. */
    public PaddingPolicy {
        values = Collections.unmodifiableMap(new LinkedHashMap<>(values));
        outputs = List.copyOf(outputs);
        buckets = List.copyOf(buckets);
    }

    /**
     * Reads the policy of a complete configuration; null if the model sets no parameter of it.
     *
     * @throws ServingException INVALID_ARGUMENT when a parameter is invalid, or does not fit the configuration
     */
    public static @Nullable PaddingPolicy of(ModelConfig config) {
        PaddingPolicy policy = read(config);
        if (policy != null && config.batching() == null) {
            throw unsuitable(config, "requests are not batched", "dynamic_batching", "write dynamic_batching { }");
        }
        return policy;
    }

    /**
     * As {@link #of}, for a configuration that a backend may still complete: settings that are missing are not looked at.
     *
     * @throws ServingException INVALID_ARGUMENT as {@link #of}
     */
    public static @Nullable PaddingPolicy read(ModelConfig config) {
        Map<String, String> parameters = config.parameters();
        if (PARAMETERS.stream().noneMatch(parameters::containsKey)) {
            return null;
        }
        String text = parameters.get(INPUTS);
        if (text == null) {
            String given = PARAMETERS.stream()
                    .filter(parameters::containsKey)
                    .findFirst()
                    .orElse(OUTPUTS);
            throw invalid(
                    config,
                    given,
                    "without parameter " + INPUTS,
                    "both",
                    "write " + INPUTS + " with the padded inputs, for example input_ids=0,attention_mask=0");
        }
        suitable(config);
        Map<String, String> values = values(config, text);
        for (Map.Entry<String, String> value : values.entrySet()) {
            input(config, value.getKey(), value.getValue());
        }
        String buckets = parameters.getOrDefault(BUCKETS, "none").strip();
        return new PaddingPolicy(
                values,
                outputs(config, parameters.get(OUTPUTS)),
                buckets(config, buckets),
                buckets.equals("powers"),
                order(config, parameters.getOrDefault(ORDER, "length").strip()));
    }

    /** Returns the length to which a batch is padded whose longest request has this length. */
    public int padded(int length) {
        if (powers) {
            return length <= 1 || length > LARGEST_POWER ? length : Integer.highestOneBit(length - 1) << 1;
        }
        for (int bucket : buckets) {
            if (bucket >= length) {
                return bucket;
            }
        }
        return length;
    }

    /**
     * Returns the bytes of a padding element, in the order of tensors in memory.
     *
     * @throws ServingException INVALID_ARGUMENT when the text is not a value of the type, or the type is BYTES
     */
    public static byte[] element(DataType type, String text) {
        String expected = "a number";
        try {
            ByteBuffer to = ByteBuffer.allocate(Math.max(1, type.size())).order(ByteOrder.LITTLE_ENDIAN);
            if (type == DataType.BOOL) {
                expected = "true or false, or 1 or 0";
                switch (text) {
                    case "true", "1" -> to.put((byte) 1);
                    case "false", "0" -> to.put((byte) 0);
                    default -> throw new NumberFormatException();
                }
            } else if (type.isInteger()) {
                int bits = 8 * type.size();
                boolean signed = type.name().startsWith("I");
                BigInteger least = signed ? BigInteger.ONE.shiftLeft(bits - 1).negate() : BigInteger.ZERO;
                BigInteger most =
                        BigInteger.ONE.shiftLeft(signed ? bits - 1 : bits).subtract(BigInteger.ONE);
                expected = "an integer from " + least + " to " + most;
                BigInteger value = new BigInteger(text);
                if (value.compareTo(least) < 0 || value.compareTo(most) > 0) {
                    throw new NumberFormatException();
                }
                for (int i = 0; i < type.size(); i++) {
                    to.put(value.shiftRight(8 * i).byteValue());
                }
            } else if (type.isFloatingPoint()) {
                expected = "a number that fits the type, NaN, Infinity or -Infinity";
                double value = Double.parseDouble(text);
                double kept = switch (type) {
                    case FP16 -> SmallFloats.fp16ToFloat(SmallFloats.fp16(value));
                    case BF16 -> SmallFloats.bf16ToFloat(SmallFloats.bf16(value));
                    case FP32 -> (float) value;
                    default -> value;
                };
                if (Double.isInfinite(kept) && !text.endsWith("Infinity")) {
                    throw new NumberFormatException();
                }
                switch (type) {
                    case FP16 -> to.putShort(SmallFloats.fp16(value));
                    case BF16 -> to.putShort(SmallFloats.bf16(value));
                    case FP32 -> to.putFloat((float) value);
                    default -> to.putDouble(value);
                }
            } else {
                expected = "an input of a type of fixed size";
                throw new NumberFormatException();
            }
            return to.array();
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument("'" + text + "' for type " + type + " (expected: " + expected + ")");
        }
    }

    private static void suitable(ModelConfig config) {
        if (config.ensemble() != null) {
            throw unsuitable(
                    config, "it is an ensemble", "a model of its own", "set the parameter for the model of the step");
        }
        if (config.sequence() != null) {
            throw unsuitable(
                    config,
                    "it has sequence_batching",
                    "dynamic_batching",
                    "remove the parameter, or sequence_batching");
        }
        if (config.maxBatchSize() == 0) {
            throw unsuitable(
                    config, "max_batch_size is 0", "at least 1", "set max_batch_size, or remove the parameter");
        }
    }

    private static Map<String, String> values(ModelConfig config, String text) {
        Map<String, String> values = new LinkedHashMap<>();
        for (String part : text.split(",", -1)) {
            int equals = part.lastIndexOf('=');
            String name = equals < 0 ? part.strip() : part.substring(0, equals).strip();
            if (equals < 0 || name.isEmpty()) {
                throw invalid(
                        config,
                        INPUTS,
                        "'" + part.strip() + "'",
                        "NAME=VALUE, separated by commas",
                        "write for example input_ids=0,attention_mask=0");
            }
            if (values.put(name, part.substring(equals + 1).strip()) != null) {
                throw invalid(config, INPUTS, "input '" + name + "' twice", "each input once", "remove one");
            }
        }
        return values;
    }

    private static void input(ModelConfig config, String name, String value) {
        if (config.inputs().isEmpty()) {
            return;
        }
        TensorSpec spec = find(config.inputs(), name);
        String input = "input '" + name + "'";
        if (spec == null) {
            throw invalid(config, INPUTS, input, "one of " + names(config.inputs()), "correct the name, or remove it");
        }
        int variable = variable(spec);
        if (spec.ragged() || spec.reshape() != null || spec.unchecked()) {
            String why = spec.ragged()
                    ? "allow_ragged_batch"
                    : spec.reshape() != null ? "reshape" : "a shape of its own choice";
            throw invalid(config, INPUTS, input + ", which has " + why, "inputs without that", "remove one of the two");
        }
        if (variable != 1) {
            throw invalid(
                    config,
                    INPUTS,
                    input + ", which has " + variable + " variable dimensions in " + spec.shape(),
                    "exactly one, whose size is the length of the request",
                    variable == 0 ? "remove it, it needs no padding" : "give the other dimensions their sizes");
        }
        try {
            element(spec.dataType(), value);
        } catch (ServingException e) {
            throw invalid(config, INPUTS, input + ": " + e.getMessage(), "", "correct the value");
        }
    }

    private static List<String> outputs(ModelConfig config, @Nullable String text) {
        List<String> names = new ArrayList<>();
        if (text == null) {
            for (TensorSpec spec : config.outputs()) {
                if (variable(spec) > 0 && !scattered(config, spec.name())) {
                    names.add(spec.name());
                }
            }
        } else if (!text.isBlank()) {
            for (String part : text.split(",", -1)) {
                names.add(part.strip());
            }
        }
        for (String name : names) {
            output(config, name);
        }
        return names;
    }

    private static void output(ModelConfig config, String name) {
        if (config.outputs().isEmpty()) {
            return;
        }
        TensorSpec spec = find(config.outputs(), name);
        String output = "output '" + name + "'";
        if (spec == null) {
            throw invalid(
                    config, OUTPUTS, output, "one of " + names(config.outputs()), "correct the name, or remove it");
        }
        String but = variable(spec) == 0
                ? "has the fixed shape " + spec.shape()
                : scattered(config, name)
                        ? "a batch_output shapes"
                        : spec.reshape() != null
                                ? "has reshape"
                                : spec.unchecked()
                                        ? "has a shape of its own choice"
                                        : !spec.dataType().isFixedSize() ? "is of type " + spec.dataType() : "";
        if (!but.isEmpty()) {
            throw invalid(
                    config,
                    OUTPUTS,
                    output + ", which " + but,
                    "outputs of a type of fixed size with a variable dimension, which has the length of the request",
                    "list in " + OUTPUTS + " only the outputs that have a value for each position");
        }
    }

    private static List<Integer> buckets(ModelConfig config, String text) {
        if (text.equals("none") || text.equals("powers")) {
            return List.of();
        }
        List<Integer> buckets = new ArrayList<>();
        int last = 0;
        for (String part : text.split(",", -1)) {
            int length = 0;
            try {
                length = Integer.parseInt(part.strip());
            } catch (NumberFormatException e) {
                // Reported below, as 0 is not larger than the one before.
            }
            if (length <= last || buckets.size() == MOST_BUCKETS) {
                throw invalid(
                        config,
                        BUCKETS,
                        "'" + text + "'",
                        "none, powers, or at most " + MOST_BUCKETS + " ascending lengths of at least 1",
                        "write for example 16,32,64,128");
            }
            buckets.add(length);
            last = length;
        }
        return buckets;
    }

    private static boolean order(ModelConfig config, String text) {
        if (!text.equals("length") && !text.equals("arrival")) {
            throw invalid(config, ORDER, "'" + text + "'", "length or arrival", "remove it; length is the default");
        }
        return text.equals("arrival");
    }

    private static int variable(TensorSpec spec) {
        int count = 0;
        for (int i = 0; i < spec.shape().rank(); i++) {
            count += spec.shape().dim(i) < 0 ? 1 : 0;
        }
        return count;
    }

    private static boolean scattered(ModelConfig config, String output) {
        return config.batchOutputs().stream().anyMatch(b -> b.targets().contains(output));
    }

    private static @Nullable TensorSpec find(List<TensorSpec> specs, String name) {
        return specs.stream().filter(s -> s.name().equals(name)).findFirst().orElse(null);
    }

    private static List<String> names(List<TensorSpec> specs) {
        return specs.stream().map(TensorSpec::name).toList();
    }

    private static ServingException unsuitable(ModelConfig config, String why, String expected, String remedy) {
        return ServingException.invalidArgument(
                "parameter " + INPUTS + " of model '" + config.name() + "': " + why + " (expected: " + expected + ")",
                remedy);
    }

    private static ServingException invalid(
            ModelConfig config, String parameter, String got, String expected, String remedy) {
        return ServingException.invalidArgument(
                "parameter " + parameter + " of model '" + config.name() + "': " + got
                        + (expected.isEmpty() ? "" : " (expected: " + expected + ")"),
                remedy);
    }
}
