// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.io.IOException;
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
import org.jspecify.annotations.Nullable;

/**
 * Reads background rows from files: JSON, CSV with or without a header, or an array in NumPy's npy format. Stateless.
 */
final class BackgroundReader {
    private static final long MOST_BYTES = 256L << 20;
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
                return csv(file, Files.readString(file, StandardCharsets.UTF_8));
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

    private static List<?> csv(Path file, String text) {
        List<Object> rows = new ArrayList<>();
        String[] header = null;
        int width = -1;
        int number = 0;
        for (String line : text.split("\r?\n", -1)) {
            number++;
            if (line.isBlank()) {
                continue;
            }
            String[] cells = line.split(",", -1);
            if (width < 0) {
                width = cells.length;
                if (values(cells) == null) {
                    header = cells;
                    continue;
                }
            }
            double[] values = values(cells);
            if (values == null && header != null) {
                values = some(cells);
            }
            if (values == null || values.length != width) {
                throw bad(
                        file,
                        "line " + number + " has " + cells.length + " cells, or some that are not numbers (expected: "
                                + width + " numbers)");
            }
            rows.add(header == null ? values : named(header, values));
        }
        if (rows.isEmpty()) {
            throw bad(file, "it does not contain any rows");
        }
        return rows;
    }

    private static Map<String, Object> named(String[] header, double[] values) {
        Map<String, Object> row = new LinkedHashMap<>();
        for (int i = 0; i < header.length; i++) {
            String name = header[i].strip();
            row.put(
                    name.startsWith("\"") && name.endsWith("\"") && name.length() > 1
                            ? name.substring(1, name.length() - 1)
                            : name,
                    values[i]);
        }
        return row;
    }

    private static double @Nullable [] values(String[] cells) {
        double[] values = some(cells);
        for (int i = 0; i < cells.length; i++) {
            String cell = cells[i].strip();
            if (Double.isNaN(values[i]) && !cell.isEmpty() && !cell.equalsIgnoreCase("nan")) {
                return null;
            }
        }
        return values;
    }

    /** The cells as numbers; NaN for other cells, such as a column of strings that is not a feature. */
    private static double[] some(String[] cells) {
        double[] values = new double[cells.length];
        for (int i = 0; i < cells.length; i++) {
            try {
                values[i] = Double.parseDouble(cells[i].strip());
            } catch (NumberFormatException e) {
                values[i] = Double.NaN;
            }
        }
        return values;
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
