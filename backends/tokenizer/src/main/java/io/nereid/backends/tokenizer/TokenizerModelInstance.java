// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.backend.ModelInstance;
import io.nereid.backends.tokenizer.NativeTokenizer.Tokens;
import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** One instance of a tokenizer model: runs the shared tokenizer on batches. Stateless, therefore thread-safe. */
final class TokenizerModelInstance implements ModelInstance {
    private final TokenizerModel model;
    private final List<TensorSpec> feeds;
    private final List<TensorSpec> fetches;

    TokenizerModelInstance(TokenizerModel model) {
        this.model = model;
        this.feeds = model.config().modelInputs();
        this.fetches = model.config().modelOutputs();
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        List<String> texts = texts(inputs, feeds.get(0).name());
        List<String> pairs = feeds.size() > 1 ? texts(inputs, feeds.get(1).name()) : null;
        if (pairs != null && pairs.size() != texts.size()) {
            throw ServingException.invalidArgument("there are " + texts.size() + " first and " + pairs.size()
                    + " second texts (expected: the same number)");
        }
        Tokens[] rows = new Tokens[texts.size()];
        int longest = 0;
        for (int i = 0; i < rows.length; i++) {
            rows[i] = encode(texts.get(i), pairs == null ? null : pairs.get(i));
            int length = rows[i].ids().length;
            if (model.padding().length() < 0 && i > 0 && length != longest) {
                throw ServingException.invalidArgument(
                        "texts of " + longest + " and " + length + " tokens do not fit one tensor without padding",
                        "set the parameter padding to longest, or send one text a request");
            }
            longest = Math.max(longest, length);
        }
        int length = model.padding().of(longest);
        try (TensorScope results = new TensorScope()) {
            for (String output : outputs) {
                results.add(tensor(output, rows, length));
            }
            return results.release();
        }
    }

    private Tokens encode(String text, @Nullable String pair) {
        try {
            return model.tokenizer().encode(text, pair, model.padding().special());
        } catch (RuntimeException e) {
            throw ServingException.invalidArgument(
                    "model '" + model.config().name() + "' rejected the input: " + e.getMessage());
        }
    }

    private static List<String> texts(List<Tensor> inputs, String name) {
        Tensor input = Tensor.find(inputs, name);
        if (input == null) {
            throw ServingException.invalidArgument("input '" + name + "' is missing");
        }
        return texts(input);
    }

    private static List<String> texts(Tensor input) {
        int count = (int) input.shape().elementCount();
        if (input.shape().rank() > 1 && input.shape().dim(1) != 1) {
            throw ServingException.invalidArgument("input '" + input.name() + "' is of shape " + input.shape()
                    + " (expected: one text in each row, [-1,1])");
        }
        ByteBuffer bytes = input.buffer();
        List<String> texts = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            int length = bytes.remaining() < 4 ? -1 : bytes.getInt();
            if (length < 0 || length > bytes.remaining()) {
                throw ServingException.invalidArgument("input '" + input.name() + "' of " + input.byteLength()
                        + " bytes does not hold the " + count + " length-prefixed elements of shape " + input.shape());
            }
            try {
                texts.add(StandardCharsets.UTF_8
                        .newDecoder()
                        .decode(bytes.slice(bytes.position(), length))
                        .toString());
            } catch (CharacterCodingException e) {
                throw ServingException.invalidArgument(
                        "element " + i + " of input '" + input.name() + "' is not text in UTF-8");
            }
            bytes.position(bytes.position() + length);
        }
        return texts;
    }

    private Tensor tensor(String name, Tokens[] rows, int length) {
        TensorSpec spec = fetches.get(0);
        for (TensorSpec s : fetches) {
            spec = s.name().equals(name) ? s : spec;
        }
        boolean single = !model.config().batched() && spec.modelShape().rank() == 1;
        if (single && rows.length != 1) {
            throw ServingException.invalidArgument(
                    "there are " + rows.length + " texts (expected: 1, because model '"
                            + model.config().name() + "' has no batch dimension)",
                    "set max_batch_size, or output dims [ -1, -1 ]");
        }
        PaddingStrategy padding = model.padding();
        Tensor tensor =
                Tensor.allocate(name, spec.dataType(), single ? Shape.of(length) : Shape.of(rows.length, length));
        ByteBuffer to = tensor.buffer();
        boolean wide = spec.dataType() == DataType.INT64;
        for (Tokens row : rows) {
            long[] values = name.equals(TokenizerConfig.IDS)
                    ? row.ids()
                    : name.equals(TokenizerConfig.MASK) ? row.mask() : row.types();
            long pad = name.equals(TokenizerConfig.IDS)
                    ? padding.id()
                    : name.equals(TokenizerConfig.MASK) ? 0 : padding.type();
            int before = padding.left() ? length - values.length : 0;
            for (int i = 0; i < length; i++) {
                int at = i - before;
                long value = at >= 0 && at < values.length ? values[at] : pad;
                if (wide) {
                    to.putLong(value);
                } else {
                    to.putInt((int) value);
                }
            }
        }
        return tensor;
    }

    @Override
    public void cancel() {}

    @Override
    public void close() {}
}
