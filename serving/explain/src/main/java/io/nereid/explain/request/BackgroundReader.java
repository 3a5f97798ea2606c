// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.csv.CSVException;
import org.apache.commons.csv.CSVFormat;
import org.apache.commons.csv.CSVParser;
import org.apache.commons.csv.CSVRecord;

/**
 * Reads background rows from files: JSON, CSV with or without a header, or an array in NumPy's npy format. Stateless.
 */
final class BackgroundReader {
    private static final long MOST_BYTES = 256L << 20;
    private static final CSVFormat CSV = CSVFormat.DEFAULT
            .builder()
            .setIgnoreSurroundingSpaces(true)
            .setTrailingData(true)
            .get();
    private static final Pattern DESCR = Pattern.compile("'descr': *'([^']*)'");
    private static final Pattern ORDER = Pattern.compile("'fortran_order': *(True|False)");
    private static final Pattern SHAPE = Pattern.compile("'shape': *\\(([^)]*)\\)");

    private BackgroundReader() {}

    /**
     * Reads a file.
     *
     * @return rows as {@link InstanceReader} expects them
     * @throws ServingException INVALID_ARGUMENT for a file that is none of these
     */
    static List<?> read(Path file) {
        String name = String.valueOf(file.getFileName()).toLowerCase(Locale.ROOT);
        try {
            if (Files.size(file) > MOST_BYTES) {
                throw bad(file, "it has " + Files.size(file) + " bytes (expected: at most " + MOST_BYTES + ")");
            }
            if (name.endsWith(".npy")) {
                return npy(file, Files.readAllBytes(file));
            }
            if (name.endsWith(".csv")) {
                return csv(file);
            }
            if (name.endsWith(".json")) {
                return json(file, Files.readAllBytes(file));
            }
        } catch (IOException e) {
            throw bad(file, "it cannot be read: " + e.getClass().getSimpleName());
        }
        throw bad(file, "its name has another ending (expected: .json, .csv or .npy)");
    }

    private static ServingException bad(Path file, String why) {
        return ServingException.invalidArgument(
                "background file '" + file.getFileName() + "' cannot be used: " + why,
                "save rows as [[1, 2], …] in JSON, as CSV, or with numpy.save");
    }

    private static List<?> json(Path file, byte[] text) {
        Object tree = JsonValues.readDoubles(text);
        if (tree instanceof Map<?, ?> map) {
            for (String key : List.of("background", "instances", "data")) {
                tree = map.get(key) instanceof List<?> list ? list : tree;
            }
        }
        if (tree instanceof List<?> list && !list.isEmpty()) {
            return list;
        }
        if (tree instanceof double[] values && values.length > 0) {
            List<double[]> rows = new ArrayList<>();
            for (double value : values) {
                rows.add(new double[] {value});
            }
            return rows;
        }
        throw bad(file, "it does not contain a list of rows");
    }

    private static List<?> csv(Path file) throws IOException {
        List<Object> rows = new ArrayList<>();
        List<String> header = null;
        int width = -1;
        try (CSVParser lines = CSV.parse(Files.newBufferedReader(file, StandardCharsets.UTF_8))) {
            for (CSVRecord cells : lines) {
                if (cells.size() == 1 && cells.get(0).isBlank()) {
                    continue;
                }
                double[] values = numbers(cells);
                if (width < 0) {
                    width = cells.size();
                    if (!allNumbers(cells, values)) {
                        header = cells.toList();
                        continue;
                    }
                }
                // With a header, a column of texts is allowed: its model may not have it as a feature.
                if (values.length != width || header == null && !allNumbers(cells, values)) {
                    throw bad(
                            file,
                            "line " + lines.getCurrentLineNumber() + " has " + cells.size()
                                    + " cells, or some that are not numbers (expected: " + width + " numbers)");
                }
                rows.add(header == null ? values : named(header, values));
            }
        } catch (UncheckedIOException e) {
            if (e.getCause() instanceof CSVException) {
                throw bad(file, "it ends within a quoted cell");
            }
            throw e.getCause();
        }
        if (rows.isEmpty()) {
            throw bad(file, "it does not contain any rows");
        }
        return rows;
    }

    private static Map<String, Object> named(List<String> header, double[] values) {
        Map<String, Object> row = new LinkedHashMap<>();
        for (int i = 0; i < values.length; i++) {
            row.put(header.get(i), values[i]);
        }
        return row;
    }

    /** The cells as numbers; NaN for other cells. */
    private static double[] numbers(CSVRecord cells) {
        double[] values = new double[cells.size()];
        for (int i = 0; i < values.length; i++) {
            try {
                values[i] = Double.parseDouble(cells.get(i));
            } catch (NumberFormatException e) {
                values[i] = Double.NaN;
            }
        }
        return values;
    }

    /** Whether each cell that is not a number is empty or says so. */
    private static boolean allNumbers(CSVRecord cells, double[] values) {
        for (int i = 0; i < values.length; i++) {
            if (Double.isNaN(values[i])
                    && !cells.get(i).isBlank()
                    && !cells.get(i).strip().equalsIgnoreCase("nan")) {
                return false;
            }
        }
        return true;
    }

    private static List<?> npy(Path file, byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.length < 12 || (bytes[0] & 0xff) != 0x93 || bytes[1] != 'N' || bytes[5] != 'Y') {
            throw bad(file, "it is not a NumPy array");
        }
        int major = bytes[6];
        int from = major == 1 ? 10 : 12;
        int length = major == 1 ? in.getShort(8) & 0xffff : in.getInt(8);
        if (length < 0 || length > bytes.length - from) {
            throw bad(file, "its header is cut off");
        }
        String header = new String(bytes, from, length, StandardCharsets.ISO_8859_1);
        String type = group(DESCR, header);
        String[] dims = group(SHAPE, header).strip().split(" *, *", 0);
        long rows;
        long width;
        try {
            rows = Long.parseLong(dims[0]);
            width = dims.length == 2 ? Long.parseLong(dims[1]) : 0;
        } catch (NumberFormatException e) {
            throw bad(file, "its shape is (" + group(SHAPE, header) + ") (expected: two dimensions)");
        }
        int size = switch (type) {
            case "<f8", "<i8" -> 8;
            case "<f4", "<i4" -> 4;
            case "<i2" -> 2;
            case "|u1", "|b1", "|i1" -> 1;
            default -> throw bad(file, "its type is '" + type + "' (expected: float64, float32 or whole numbers)");
        };
        long count = rows <= 0 || width <= 0 || rows > bytes.length || width > bytes.length ? -1 : rows * width;
        if (count < 0 || count * size != bytes.length - from - length) {
            throw bad(
                    file,
                    "its shape is (" + group(SHAPE, header) + "), which does not fit its size (expected: two"
                            + " dimensions)");
        }
        boolean columns = group(ORDER, header).equals("True");
        List<double[]> all = new ArrayList<>();
        for (int r = 0; r < rows; r++) {
            double[] row = new double[(int) width];
            for (int c = 0; c < row.length; c++) {
                int at = from + length + (int) (columns ? c * rows + r : r * width + c) * size;
                row[c] = switch (type) {
                    case "<f8" -> in.getDouble(at);
                    case "<f4" -> in.getFloat(at);
                    case "<i8" -> in.getLong(at);
                    case "<i4" -> in.getInt(at);
                    case "<i2" -> in.getShort(at);
                    case "|i1" -> in.get(at);
                    default -> in.get(at) & 0xff;
                };
            }
            all.add(row);
        }
        return all;
    }

    private static String group(Pattern pattern, String header) {
        Matcher found = pattern.matcher(header);
        return found.find() ? found.group(1) : "";
    }
}
