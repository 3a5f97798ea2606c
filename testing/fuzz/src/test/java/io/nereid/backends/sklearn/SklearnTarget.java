// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.backends.sklearn.boosting.BoosterFile;
import io.nereid.backends.sklearn.boosting.LoadedBooster;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.pickle.ModelFile;
import io.nereid.backends.sklearn.pickle.PickleMemory;
import io.nereid.base.ServingException;
import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.fuzz.StoredZip;
import io.nereid.fuzz.model.ModelRuns;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.util.List;

/**
 * A model of scikit-learn: as a file of any format, as the schema of a skops archive, or as an array in one, which a mutation of the
 * zip itself would rarely reach. Confined to one thread.
 */
public final class SklearnTarget implements FuzzTarget {
    private static final long MEMORY = 8 << 20;
    private static final long MOST_ROW_BYTES = 8L << 24;
    private static final String ARRAY_SCHEMA =
            "{\"__class__\":\"ndarray\",\"__module__\":\"numpy\",\"__loader__\":\"NdArrayNode\","
                    + "\"type\":\"numpy\",\"file\":\"1.npy\"}";

    /** What the bytes of an input are. */
    public enum Form {
        FILE,
        SCHEMA,
        ARRAY
    }

    private final Form form;
    private final InputFile file = new InputFile("model.pkl");

    public SklearnTarget(Form form) {
        this.form = form;
    }

    @Override
    public void read(byte[] input) throws IOException {
        byte[] bytes = switch (form) {
            case FILE -> input;
            case SCHEMA -> archive(input, npy());
            case ARRAY -> archive(ARRAY_SCHEMA.getBytes(java.nio.charset.StandardCharsets.UTF_8), input);
        };
        Object value = ModelFile.read(file.with(bytes), PickleMemory.of(MEMORY));
        if (form == Form.ARRAY) {
            return;
        }
        SklearnModel model;
        try {
            Estimator estimator = new EstimatorFactory(SklearnTarget::booster).build(value);
            List<String> names = FittedColumns.namesOf(value, estimator);
            model = SklearnConfig.complete(
                    estimator, names, ModelConfig.unspecified("m"), ModelRuns.context(), "false", () -> {});
            model.validate();
        } catch (IndexOutOfBoundsException
                | ArithmeticException
                | NegativeArraySizeException
                | NullPointerException
                | ClassCastException e) {
            // The backend refuses the file: its arrays do not fit each other.
            return;
        }
        ModelRuns.run(model);
    }

    /** The native models inside are those of other targets. */
    private static LoadedBooster booster(BoosterFile file) {
        throw ServingException.invalidArgument("a " + file.origin());
    }

    private static byte[] archive(byte[] schema, byte[] array) throws IOException {
        return new StoredZip().with("schema.json", schema).with("1.npy", array).bytes();
    }

    /** The schema of a StandardScaler of two columns, whose mean and scale are the array of the archive. */
    private static String scaler() {
        String flag =
                "{\"__class__\":\"str\",\"__module__\":\"builtins\",\"__loader__\":\"JsonNode\",\"content\":\"true\"}";
        return "{\"__class__\":\"StandardScaler\",\"__module__\":\"sklearn.preprocessing._data\",\"__loader__\":\"ObjectNode\","
                + "\"content\":{\"__class__\":\"dict\",\"__module__\":\"builtins\",\"__loader__\":\"DictNode\",\"content\":{"
                + "\"with_mean\":" + flag + ",\"with_std\":" + flag + ",\"copy\":" + flag + ",\"mean_\":" + ARRAY_SCHEMA
                + ",\"scale_\":" + ARRAY_SCHEMA + ",\"var_\":" + ARRAY_SCHEMA + ",\"n_features_in_\":"
                + flag.replace("true", "2")
                + "}}}";
    }

    /** Two doubles, as numpy writes them. */
    private static byte[] npy() {
        String head = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
        byte[] bytes = new byte[10 + head.length() + 16];
        bytes[0] = (byte) 0x93;
        System.arraycopy("NUMPY".getBytes(java.nio.charset.StandardCharsets.US_ASCII), 0, bytes, 1, 5);
        bytes[6] = 1;
        bytes[8] = (byte) head.length();
        System.arraycopy(head.getBytes(java.nio.charset.StandardCharsets.US_ASCII), 0, bytes, 10, head.length());
        bytes[bytes.length - 1] = 0x40;
        return bytes;
    }

    @Override
    public List<byte[]> seeds() {
        return switch (form) {
            case ARRAY -> List.of(npy());
            case SCHEMA -> List.of(scaler().getBytes(java.nio.charset.StandardCharsets.UTF_8));
            case FILE -> List.of();
        };
    }

    /** Beside what is charged: buffers, the tables of the zip reader, and rows of as many columns as a model may have. */
    @Override
    public long allocationLimit(int length) {
        return 8 * MEMORY + 3 * MOST_ROW_BYTES + 256L * length;
    }
}
