// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import io.nereid.app.perf.input.GeneratedInputs;
import io.nereid.app.perf.input.InputDataFile;
import io.nereid.app.perf.input.ModelSignature;
import io.nereid.app.perf.input.RecordedInputs;
import io.nereid.app.perf.input.RequestSample;
import io.nereid.base.ServingException;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The options that say what requests contain. Set by picocli; confined to one thread. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
public final class InputOptions {
    private static final long MEMORY = 64L << 20;

    @Option(
            names = {"--batch-size", "-b"},
            paramLabel = "N",
            defaultValue = "1",
            description = "Rows of a request (default: ${DEFAULT-VALUE}).")
    private int batchSize;

    @Option(
            names = "--shape",
            paramLabel = "NAME:DIMS",
            converter = ShapeConverter.class,
            description =
                    "The shape of an input whose sizes the model leaves open, as INPUT:3,224,224; without the batch"
                            + " dimension. May be repeated.")
    private List<GivenShape> shapes = new ArrayList<>();

    @Option(
            names = "--data",
            paramLabel = "DATA",
            defaultValue = "random",
            description =
                    "random, zero, or a file: inputs as JSON, as perf_analyzer's --input-data has them, or requests"
                            + " that logging_config has recorded (a name that ends with .tfrecord) (default: ${DEFAULT-VALUE}).")
    private String data;

    @Option(
            names = "--string-length",
            paramLabel = "N",
            defaultValue = "16",
            description = "Length of the texts of random inputs of type BYTES (default: ${DEFAULT-VALUE}).")
    private int stringLength;

    @Option(
            names = "--samples",
            paramLabel = "N",
            defaultValue = "8",
            description = "Number of different random requests, which are sent in turn (default: ${DEFAULT-VALUE}).")
    private int samples;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Seed of random inputs and times (default: ${DEFAULT-VALUE}).")
    private long seed;

    /** The shape of an input. */
    @SuppressWarnings("ArrayRecordComponent")
    record GivenShape(String name, long[] dims) {}

    /** Rows of a request. */
    public int batchSize() {
        return batchSize;
    }

    /** The seed of random inputs and times. */
    public long seed() {
        return seed;
    }

    /** Checks the numbers. */
    public void check(OptionChecks checks) {
        checks.within("--batch-size", batchSize, 1, 1_000_000);
        checks.within("--samples", samples, 1, 10_000);
        checks.within("--string-length", stringLength, 0, 1 << 20);
    }

    /** The requests to send. */
    List<RequestSample> samples(ModelSignature signature) {
        Map<String, long[]> given = new HashMap<>();
        shapes.forEach(shape -> given.put(shape.name(), shape.dims()));
        Map<String, Shape> elements = signature.elementShapes(given);
        if (data.endsWith(".tfrecord")) {
            if (batchSize != 1) {
                throw ServingException.invalidArgument(
                        "--batch-size " + batchSize + " with --data '" + data
                                + "': recorded requests keep the batches in which they came (expected: 1, which is the default)");
            }
            return RecordedInputs.read(Path.of(data));
        }
        signature.requireBatchSize(batchSize);
        boolean zero = data.equals("zero");
        if (!zero && !data.equals("random")) {
            return InputDataFile.read(Path.of(data), signature, elements, batchSize);
        }
        GeneratedInputs generated = new GeneratedInputs(signature, elements, stringLength, seed);
        List<RequestSample> all = new ArrayList<>();
        all.add(generated.next(batchSize, zero));
        long bytes = all.get(0).inputs().stream()
                .mapToLong(input -> input.bytes().length)
                .sum();
        long count = zero ? 1 : Math.min(samples, Math.max(1, MEMORY / Math.max(1, bytes)));
        while (all.size() < count) {
            all.add(generated.next(batchSize, false));
        }
        return all;
    }

    /** Reads the value of {@code --shape}. Stateless. */
    static final class ShapeConverter implements ITypeConverter<GivenShape> {
        private static final Pattern FORM = Pattern.compile("(.+):([0-9]{1,18}(?:,[0-9]{1,18})*)?");

        @Override
        public GivenShape convert(String text) {
            Matcher form = FORM.matcher(text);
            if (!form.matches()) {
                throw new TypeConversionException(
                        "'" + text + "' is not a shape (expected: NAME:DIMS, such as INPUT0:3,224,224)");
            }
            List<Long> dims = new ArrayList<>();
            if (form.group(2) != null) {
                for (String dim : form.group(2).split(",")) {
                    dims.add(Long.parseLong(dim));
                }
            }
            return new GivenShape(
                    form.group(1), dims.stream().mapToLong(Long::longValue).toArray());
        }
    }
}
