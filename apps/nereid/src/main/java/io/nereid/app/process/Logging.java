// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpReply;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/**
 * Writes the log to standard error or to a file, one line per record. Levels and format can be changed while the server
 * runs. Thread-safe.
 */
public final class Logging {
    /** The format of a log record. */
    public enum Format {
        /** {@code 2026-01-31T12:00:00.123Z INFO  logger - message}. */
        TEXT,
        /** One JSON object per line. */
        JSON,
        /** Triton's default format: {@code I0131 12:00:00.123456 4711 logger] "message"}. */
        DEFAULT,
        /** Triton's ISO8601 format: {@code 2026-01-31T12:00:00Z I 4711 logger] "message"}. */
        ISO8601
    }

    /** The settings; replaced as a whole. */
    private record Settings(Format format, boolean info, boolean warning, boolean error, long verbose) {
        boolean wants(Level level) {
            int value = level.intValue();
            if (value >= Level.SEVERE.intValue()) {
                return error;
            }
            if (value >= Level.WARNING.intValue()) {
                return warning;
            }
            return value >= Level.INFO.intValue() ? info : verbose > 0;
        }

        /** The lowest level that is enabled. */
        Level least() {
            return verbose > 1 ? Level.FINEST : verbose == 1 ? Level.FINE : Level.INFO;
        }
    }

    private final String file;
    private volatile Settings settings;
    private @Nullable Lines lines;

    private Logging(String file, Settings settings) {
        this.file = file;
        this.settings = settings;
    }

    /** Logs records of at least a level to standard error. */
    public static Logging configure(Format format, Level level) {
        return configure(format, level, null);
    }

    /**
     * Logs records of at least a level.
     *
     * @param file the log file; null for standard error
     */
    public static Logging configure(Format format, Level level, @Nullable Path file) {
        int least = level.intValue();
        Settings settings = new Settings(
                format,
                least <= Level.INFO.intValue(),
                least <= Level.WARNING.intValue(),
                least <= Level.SEVERE.intValue(),
                least <= Level.FINEST.intValue() ? 2 : least < Level.INFO.intValue() ? 1 : 0);
        Logging logging = new Logging(file == null ? "" : file.toString(), settings);
        LogManager.getLogManager().reset();
        Lines lines = logging.new Lines(file == null ? System.err : open(file));
        logging.lines = lines;
        Logger.getLogger("").addHandler(lines);
        logging.apply();
        return logging;
    }

    private static PrintStream open(Path file) {
        try {
            return new PrintStream(
                    Files.newOutputStream(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND),
                    true,
                    StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw ServingException.invalidArgument(
                    "--log-file '" + file + "' cannot be written: " + e, "give a file in a directory that exists");
        }
    }

    /** Whether lines are JSON objects. */
    public boolean isJson() {
        return settings.format == Format.JSON;
    }

    /** Opens the log file again, after a rotation has moved it. */
    public void reopen() {
        Lines open = lines;
        if (!file.isEmpty() && open != null) {
            open.to(open(Path.of(file)));
        }
    }

    private void apply() {
        Logger.getLogger("").setLevel(settings.least());
        // Netty logs its own options at INFO level, which does not help the operator of a model server.
        Logger.getLogger("io.netty").setLevel(settings.verbose > 1 ? Level.FINEST : Level.WARNING);
    }

    /** Returns the settings by the names of Triton's logging extension. */
    public Map<String, Object> settings() {
        Settings s = settings;
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("log_file", file);
        shown.put("log_info", s.info);
        shown.put("log_warning", s.warning);
        shown.put("log_error", s.error);
        shown.put("log_verbose_level", s.verbose);
        shown.put(
                "log_format",
                s.format == Format.DEFAULT
                        ? "default"
                        : s.format == Format.ISO8601
                                ? "ISO8601"
                                : s.format.name().toLowerCase(Locale.ROOT));
        return shown;
    }

    /** Applies all changes, or none of them when one is invalid. */
    public synchronized Map<String, Object> update(Map<String, Object> changes) {
        Settings s = settings;
        for (Map.Entry<String, Object> e : changes.entrySet()) {
            String name = e.getKey();
            Object value = e.getValue();
            s = switch (name) {
                case "log_info" -> new Settings(s.format, flag(name, value), s.warning, s.error, s.verbose);
                case "log_warning" -> new Settings(s.format, s.info, flag(name, value), s.error, s.verbose);
                case "log_error" -> new Settings(s.format, s.info, s.warning, flag(name, value), s.verbose);
                case "log_verbose_level" -> new Settings(s.format, s.info, s.warning, s.error, number(name, value));
                case "log_format" -> new Settings(format(value), s.info, s.warning, s.error, s.verbose);
                case "log_file" ->
                    throw ServingException.of(
                            ErrorCode.UNIMPLEMENTED,
                            "log file location can not be updated through network protocol",
                            "start the server with --log-file");
                default ->
                    throw ServingException.invalidArgument(
                            "unknown log setting '" + name + "'",
                            NameSuggestions.didYouMean(name, names(), "expected one of " + names()));
            };
        }
        settings = s;
        apply();
        return settings();
    }

    private static List<String> names() {
        return List.of("log_info", "log_warning", "log_error", "log_verbose_level", "log_format");
    }

    private static boolean flag(String name, Object value) {
        if (value instanceof Boolean b) {
            return b;
        }
        throw ServingException.invalidArgument(
                "log setting '" + name + "' is '" + value + "' (expected: true or false)");
    }

    private static long number(String name, Object value) {
        if (value instanceof Long n && n >= 0) {
            return n;
        }
        throw ServingException.invalidArgument(
                "log setting '" + name + "' is '" + value + "' (expected: a whole number from 0)");
    }

    private static Format format(Object value) {
        return switch (String.valueOf(value)) {
            case "default" -> Format.DEFAULT;
            case "ISO8601" -> Format.ISO8601;
            case "text" -> Format.TEXT;
            case "json" -> Format.JSON;
            default ->
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "Log format '" + value + "' is unknown",
                        "expected default, ISO8601, text or json");
        };
    }

    private final class Lines extends Handler {
        private volatile PrintStream to;
        private final Formatter text = new TextFormatter();
        private final Formatter json = new JsonFormatter();
        private final Formatter triton = new TritonFormatter(false);
        private final Formatter iso = new TritonFormatter(true);

        Lines(PrintStream to) {
            this.to = to;
        }

        /** Writes to another stream from now on. */
        void to(PrintStream next) {
            PrintStream before = to;
            to = next;
            before.close();
        }

        @Override
        public void publish(LogRecord entry) {
            Settings s = settings;
            if (s.wants(entry.getLevel())) {
                Formatter formatter = switch (s.format) {
                    case TEXT -> text;
                    case JSON -> json;
                    case DEFAULT -> triton;
                    case ISO8601 -> iso;
                };
                to.print(formatter.format(entry));
            }
        }

        @Override
        public void flush() {
            to.flush();
        }

        @Override
        public void close() {
            flush();
        }
    }

    private static String level(LogRecord entry) {
        int value = entry.getLevel().intValue();
        return value >= Level.SEVERE.intValue()
                ? "ERROR"
                : value >= Level.WARNING.intValue() ? "WARN" : value >= Level.INFO.intValue() ? "INFO" : "DEBUG";
    }

    private static String trace(@Nullable Throwable thrown) {
        if (thrown == null) {
            return "";
        }
        StringWriter text = new StringWriter();
        thrown.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    /** The lines of a stack trace, none of which looks like an entry of its own. */
    private static String traceLines(@Nullable Throwable thrown) {
        return thrown == null ? "" : "    " + indented(trace(thrown).stripTrailing()) + "\n";
    }

    /**
     * Indents the lines after the first one and escapes control characters, so that a text that a client sent
     * neither looks like an entry of its own nor controls the terminal that shows the log.
     */
    private static String indented(String text) {
        StringBuilder safe = new StringBuilder(text.length() + 16);
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '\n') {
                safe.append("\n    ");
            } else if (Character.isISOControl(c) && c != '\t') {
                safe.append(c == '\r' ? "\\r" : String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                safe.append(c);
            }
        }
        return safe.toString();
    }

    private static final class TextFormatter extends Formatter {
        @Override
        public String format(LogRecord entry) {
            return Instant.ofEpochMilli(entry.getMillis()) + " " + String.format(Locale.ROOT, "%-5s", level(entry))
                    + " " + entry.getLoggerName() + " - " + indented(formatMessage(entry)) + "\n"
                    + traceLines(entry.getThrown());
        }
    }

    private static final class JsonFormatter extends Formatter {
        private static final String ACCESS = "access";

        @Override
        public String format(LogRecord entry) {
            StringBuilder line = new StringBuilder("{\"time\":\"")
                    .append(Instant.ofEpochMilli(entry.getMillis()))
                    .append("\",\"level\":\"")
                    .append(level(entry))
                    .append("\",\"logger\":")
                    .append(HttpReply.quote(String.valueOf(entry.getLoggerName())));
            String message = String.valueOf(formatMessage(entry));
            if (ACCESS.equals(entry.getLoggerName()) && message.startsWith("{")) {
                // the access log gives an object: its fields stand beside time and level, where a log store finds them
                return line.append(',')
                        .append(message, 1, message.length())
                        .append('\n')
                        .toString();
            }
            line.append(",\"message\":").append(HttpReply.quote(message));
            if (entry.getThrown() != null) {
                line.append(",\"exception\":").append(HttpReply.quote(trace(entry.getThrown())));
            }
            return line.append("}\n").toString();
        }
    }

    /** Triton's line formats, for tools that parse them. */
    private static final class TritonFormatter extends Formatter {
        private static final DateTimeFormatter SHORT =
                DateTimeFormatter.ofPattern("MMdd HH:mm:ss.SSSSSS", Locale.ROOT).withZone(ZoneOffset.UTC);
        private static final DateTimeFormatter LONG = DateTimeFormatter.ofPattern(
                        "yyyy-MM-dd'T'HH:mm:ss'Z'", Locale.ROOT)
                .withZone(ZoneOffset.UTC);

        private final boolean iso;
        private final long pid = ProcessHandle.current().pid();

        TritonFormatter(boolean iso) {
            this.iso = iso;
        }

        @Override
        public String format(LogRecord entry) {
            char letter = level(entry).charAt(0);
            String head = iso
                    ? LONG.format(entry.getInstant()) + " " + letter + " "
                    : letter + SHORT.format(entry.getInstant()) + " ";
            return head + pid + " " + entry.getLoggerName() + "] " + HttpReply.quote(formatMessage(entry)) + "\n"
                    + traceLines(entry.getThrown());
        }
    }
}
