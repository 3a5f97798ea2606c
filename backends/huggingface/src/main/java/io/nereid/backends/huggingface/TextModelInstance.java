// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.backends.huggingface.graph.EncoderHeads;
import io.nereid.backends.huggingface.task.TextRow;
import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
import io.nereid.base.ServingException;
import io.nereid.spi.TextTasks;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * Runs batches of requests: tokenises the texts, runs those of similar length together, and makes the answers of each request.
 * Confined as its own instance of ONNX Runtime.
 */
final class TextModelInstance implements ModelInstance {
    /** Rows whose lengths are in one bucket run together; above the last one the buckets are multiples of it. */
    private static final int[] BUCKETS = {8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};

    /** A run has at most so many tokens, unless one row has more, so that the memory for hidden states has a bound. */
    private static final int MOST_TOKENS = 1 << 14;

    private final TextModel model;
    private final ModelInstance inside;
    private final List<TensorSpec> feeds;

    TextModelInstance(TextModel model, ModelInstance inside) {
        this.model = model;
        this.inside = inside;
        this.feeds = model.config().modelInputs();
    }

    private record Work(ModelRequest request, List<TextRow> rows) {}

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        List<TextRow> rows = rows(inputs, Map.of());
        compute(rows);
        return model.answers().answer(outputs, rows, Map.of());
    }

    @Override
    public void execute(List<ModelRequest> requests) {
        List<Work> works = new ArrayList<>();
        List<TextRow> all = new ArrayList<>();
        for (ModelRequest request : requests) {
            try {
                List<TextRow> rows =
                        rows(request.request().inputs(), request.request().parameters());
                works.add(new Work(request, rows));
                all.addAll(rows);
            } catch (ServingException e) {
                request.fail(e);
            }
        }
        try {
            compute(all);
        } catch (ServingException e) {
            works.forEach(w -> w.request.fail(e));
            return;
        }
        for (Work work : works) {
            List<Tensor> outputs;
            try {
                outputs = model.answers()
                        .answer(
                                work.request.outputs(),
                                work.rows,
                                work.request.request().parameters());
            } catch (ServingException e) {
                work.request.fail(e);
                continue;
            }
            boolean counts =
                    Boolean.TRUE.equals(work.request.request().parameters().get(TextTasks.COUNT_TOKENS));
            work.request.complete(outputs, counts ? Map.of(TextTasks.TOKENS, count(work.rows)) : Map.of());
        }
    }

    private static Long count(List<TextRow> rows) {
        long n = 0;
        for (TextRow row : rows) {
            n += row.tokens();
        }
        return n;
    }

    private List<TextRow> rows(List<Tensor> inputs, Map<String, Object> parameters) {
        List<String> texts = texts(inputs, feeds.get(0).name());
        List<String> pairs = feeds.size() > 1 ? texts(inputs, feeds.get(1).name()) : null;
        if (pairs != null && pairs.size() != texts.size()) {
            throw ServingException.invalidArgument("there are " + texts.size() + " first and " + pairs.size()
                    + " second texts (expected: the same number)");
        }
        boolean tokens = Boolean.TRUE.equals(parameters.get(TextTasks.TOKEN_IDS));
        if (tokens && !model.takesTokens()) {
            throw ServingException.invalidArgument(
                    "the parameter " + TextTasks.TOKEN_IDS + " is for models of embeddings", "send the text itself");
        }
        List<List<Encoding>> encodings = new ArrayList<>();
        List<String> prepared = new ArrayList<>();
        int longest = 0;
        for (int i = 0; i < texts.size(); i++) {
            String text = tokens ? texts.get(i) : model.tokenizer().prepared(texts.get(i));
            List<Encoding> windows;
            if (tokens) {
                windows = List.of(model.tokenizer().tokens(text));
            } else if (model.windows() && pairs != null) {
                windows = model.tokenizer().windows(text, pairs.get(i));
            } else {
                windows = List.of(model.tokenizer().encode(text, pairs == null ? null : pairs.get(i)));
            }
            check(i, windows.get(0));
            prepared.add(text);
            encodings.add(windows);
            longest = Math.max(longest, windows.get(0).ids().length);
        }
        List<TextRow> rows = new ArrayList<>();
        for (int i = 0; i < encodings.size(); i++) {
            List<Encoding> windows = encodings.get(i);
            String text = prepared.get(i);
            String pair = pairs == null ? null : pairs.get(i);
            List<TextRow> further = new ArrayList<>();
            for (Encoding window : windows.subList(1, windows.size())) {
                further.add(new TextRow(text, pair, window, longest));
            }
            rows.add(new TextRow(text, pair, windows.get(0), longest, further));
        }
        return rows;
    }

    private void check(int index, Encoding encoding) {
        if (model.masks() && places(encoding.ids()) == 0) {
            throw ServingException.invalidArgument(
                    "text " + index + " has no mask token"
                            + (encoding.ids().length == 0
                                    ? ""
                                    : " within its first " + encoding.ids().length + " tokens"),
                    "put the mask token of the model's tokenizer, such as [MASK] or <mask>, in the place to fill");
        }
        if (encoding.ids().length == 0) {
            throw ServingException.invalidArgument(
                    "text " + index + " has no tokens",
                    "send a text that is not empty, or set add_special_tokens to true");
        }
    }

    private static List<String> texts(List<Tensor> inputs, String name) {
        Tensor input = Tensor.find(inputs, name);
        if (input == null) {
            throw ServingException.invalidArgument("input '" + name + "' is missing");
        }
        int count = (int) input.shape().elementCount();
        if (input.shape().rank() > 1 && input.shape().dim(1) != 1) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is of shape " + input.shape() + " (expected: one text in each row, [-1,1])");
        }
        ByteBuffer bytes = input.buffer();
        List<String> texts = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            int length = bytes.remaining() < Integer.BYTES ? -1 : bytes.getInt();
            if (length < 0 || length > bytes.remaining()) {
                throw ServingException.invalidArgument("input '" + name + "' of " + input.byteLength()
                        + " bytes does not hold the " + count + " length-prefixed elements of shape " + input.shape());
            }
            try {
                texts.add(StandardCharsets.UTF_8
                        .newDecoder()
                        .decode(bytes.slice(bytes.position(), length))
                        .toString());
            } catch (CharacterCodingException e) {
                throw ServingException.invalidArgument(
                        "element " + i + " of input '" + name + "' is not text in UTF-8");
            }
            bytes.position(bytes.position() + length);
        }
        return texts;
    }

    private int length(TextRow row) {
        return model.answers().keepsPadding() ? row.padded() : row.tokens();
    }

    private static int bucket(int length) {
        for (int bucket : BUCKETS) {
            if (length <= bucket) {
                return bucket;
            }
        }
        int last = BUCKETS[BUCKETS.length - 1];
        return (length + last - 1) / last * last;
    }

    private void compute(List<TextRow> rows) {
        List<TextRow> sorted = new ArrayList<>(rows);
        rows.forEach(row -> sorted.addAll(row.further()));
        sorted.sort(Comparator.comparingInt(this::length));
        int at = 0;
        while (at < sorted.size()) {
            int bucket = bucket(length(sorted.get(at)));
            int end = at + 1;
            while (end < sorted.size()
                    && bucket(length(sorted.get(end))) == bucket
                    && (long) (end - at + 1) * bucket <= MOST_TOKENS) {
                end++;
            }
            compute(sorted.subList(at, end), length(sorted.get(end - 1)));
            at = end;
        }
    }

    private int places(long[] ids) {
        int n = 0;
        for (long id : ids) {
            n += id == model.tokenizer().mask() ? 1 : 0;
        }
        return n;
    }

    /** Runs rows that are padded to one length. */
    private void compute(List<TextRow> rows, int length) {
        List<Tensor> results;
        try (TensorScope feed = new TensorScope()) {
            List<Tensor> tensors = new ArrayList<>();
            for (String name : model.inputs()) {
                tensors.add(feed.add(name.equals(EncoderHeads.PLACES) ? places(rows) : tokens(name, rows, length)));
            }
            results = inside.run(tensors, List.of(model.output()));
        }
        try {
            split(rows, results.get(0), length);
        } finally {
            Tensor.closeAll(results);
        }
    }

    private Tensor tokens(String name, List<TextRow> rows, int length) {
        Tensor tensor = Tensor.allocate(name, DataType.INT64, Shape.of(rows.size(), length));
        ByteBuffer to = tensor.buffer();
        for (TextRow row : rows) {
            Encoding encoding = row.encoding();
            for (int i = 0; i < length; i++) {
                boolean within = i < encoding.ids().length;
                to.putLong(
                        switch (name) {
                            case "input_ids" ->
                                within ? encoding.ids()[i] : model.tokenizer().padding();
                            case "attention_mask" -> within ? 1 : 0;
                            default -> within ? encoding.types()[i] : 0;
                        });
            }
        }
        return tensor;
    }

    private Tensor places(List<TextRow> rows) {
        int count = 0;
        for (TextRow row : rows) {
            count += places(row.encoding().ids());
        }
        Tensor tensor = Tensor.allocate(EncoderHeads.PLACES, DataType.INT64, Shape.of(count, 2));
        ByteBuffer to = tensor.buffer();
        for (int i = 0; i < rows.size(); i++) {
            long[] ids = rows.get(i).encoding().ids();
            for (int j = 0; j < ids.length; j++) {
                if (ids[j] == model.tokenizer().mask()) {
                    to.putLong(i).putLong(j);
                }
            }
        }
        return tensor;
    }

    private void split(List<TextRow> rows, Tensor result, int length) {
        ByteBuffer from = result.buffer();
        int rank = result.shape().rank();
        for (TextRow row : rows) {
            int width = (int) result.shape().dim(rank - 1);
            int kept = width;
            int all = width;
            if (model.masks()) {
                kept = width * places(row.encoding().ids());
                all = kept;
            } else if (rank == 3) {
                kept = width * length(row);
                all = width * length;
            }
            float[] numbers = new float[kept];
            for (int i = 0; i < kept; i++) {
                numbers[i] = from.getFloat();
            }
            from.position(from.position() + (all - kept) * Float.BYTES);
            row.result(numbers);
        }
    }

    @Override
    public void cancel() {
        inside.cancel();
    }

    @Override
    public void close() {
        inside.close();
    }
}
