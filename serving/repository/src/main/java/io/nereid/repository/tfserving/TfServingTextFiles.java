// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.tfserving;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.repository.schema.ConfigBinder;
import io.nereid.repository.schema.ConfigSchema;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.repository.textformat.TextFormatException;
import io.nereid.repository.textformat.TextFormatLexer;
import io.nereid.repository.textformat.TextFormatLexer.Kind;
import io.nereid.repository.textformat.TextFormatLexer.Token;
import io.nereid.repository.textformat.TextFormatNode;
import io.nereid.repository.textformat.TextFormatParser;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads TensorFlow Serving's configuration files in protobuf's text format. Reports all problems of a file together,
 * each with its position. Immutable.
 */
public final class TfServingTextFiles {
    private static final String TABLE = """
        ModelServerConfig
          model_config_list ModelConfigList |config
          custom_model_config Any !! |config
        Any
        ModelConfigList
          config *ModelConfig
        ModelConfig
          name string
          base_path string
          model_type ModelType
          model_platform string
          model_version_policy ServableVersionPolicy
          version_labels map<string,int64>
          weighted_labels map<string,WeightedLabel> +
          logging_config LoggingConfig
        ServableVersionPolicy
          latest Latest |policy_choice
          all All |policy_choice
          specific Specific |policy_choice
        Latest
          num_versions uint32
        All
        Specific
          versions *int64
        WeightedLabel
          targets *Share
          shadows *Share
        Share
          version int64
          weight double
        LoggingConfig
          log_collector_config LogCollectorConfig
          sampling_config SamplingConfig
        LogCollectorConfig
          type string
          filename_prefix string
        SamplingConfig
          sampling_rate double
        BatchingParameters
          max_batch_size Int64Value
          batch_timeout_micros Int64Value
          max_enqueued_batches Int64Value
          num_batch_threads Int64Value
          thread_pool_name StringValue
          allowed_batch_sizes *int64
          pad_variable_length_inputs bool
          enable_large_batch_splitting BoolValue
          max_execution_batch_size Int64Value
        Int64Value
          value int64
        StringValue
          value string
        BoolValue
          value bool
        SSLConfig
          server_key string
          server_cert string
          custom_ca string
          client_verify bool
        MonitoringConfig
          prometheus_config PrometheusConfig
        PrometheusConfig
          enable bool
          path string
        enum ModelType
          MODEL_TYPE_UNSPECIFIED TENSORFLOW OTHER
        """;

    public static final ConfigSchema MODELS = new ConfigSchema(TABLE, "ModelServerConfig", "a list of models");
    static final ConfigSchema BATCHING = new ConfigSchema(TABLE, "BatchingParameters", "batching parameters");
    static final ConfigSchema SSL = new ConfigSchema(TABLE, "SSLConfig", "an SSL configuration");
    static final ConfigSchema MONITORING = new ConfigSchema(TABLE, "MonitoringConfig", "a monitoring configuration");

    private TfServingTextFiles() {}

    /**
     * A parsed text.
     *
     * @param root the message
     * @param file the origin of the text, for messages
     * @param problems collects errors
     * @param malformed what comes before the errors of a text that is not one of its message, in the words that TensorFlow
     *     Serving's users look for; else empty
     */
    public record Read(TypedMessage root, Path file, ProblemCollector problems, String malformed) {
        public void error(SourcePosition at, String message, @Nullable String remedy) {
            problems.error(file, at, message, remedy);
        }

        /** Throws if there are errors. */
        public void check() {
            if (problems.hasErrors()) {
                ServingException refusal = ProblemCollector.refusal(problems.list());
                throw malformed.isEmpty()
                        ? refusal
                        : ServingException.of(refusal.code(), malformed + refusal.getMessage(), refusal.remedy());
            }
        }
    }

    public static Read read(ConfigSchema schema, String text, String where) {
        ProblemCollector problems = new ProblemCollector();
        Path file = path(where);
        List<TextFormatNode.Field> fields = new ArrayList<>();
        SourcePosition customConfig = customConfigPosition(schema, text);
        if (customConfig != null) {
            // Its value is an Any, which the parser would report as a syntax error.
            problems.error(
                    file,
                    customConfig,
                    "field 'custom_model_config' is not supported, it is read by code that is compiled into another"
                            + " server",
                    "write model_config_list { config { … } }, or give the server a source of its own");
            return new Read(new TypedMessage(new SourcePosition(1, 1)), file, problems, "");
        }
        try {
            TextFormatParser.parse(text, fields);
        } catch (TextFormatException e) {
            problems.error(file, e.at(), e.message(), e.remedy());
        }
        TypedMessage root = new ConfigBinder(schema, file, problems).bind(fields);
        String malformed =
                problems.hasErrors() ? "Error parsing text-format tensorflow.serving." + schema.root() + ": " : "";
        return new Read(root, file, problems, malformed);
    }

    /** The position of {@code custom_model_config} in a model list, or null. */
    private static @Nullable SourcePosition customConfigPosition(ConfigSchema schema, String text) {
        if (schema != MODELS || !text.contains("custom_model_config")) {
            return null;
        }
        TextFormatLexer lexer = new TextFormatLexer(text);
        int depth = 0;
        try {
            for (Token t = lexer.next(); t.kind() != Kind.END; t = lexer.next()) {
                if (t.is('{') || t.is('<')) {
                    depth++;
                } else if (t.is('}') || t.is('>')) {
                    depth--;
                } else if (depth == 0 && t.kind() == Kind.WORD && t.text().equals("custom_model_config")) {
                    return t.at();
                }
            }
        } catch (TextFormatException e) {
            return null;
        }
        return null;
    }

    private static Path path(String where) {
        try {
            return Path.of(where);
        } catch (InvalidPathException e) {
            return Path.of("configuration");
        }
    }

    /** Reads a file; the error names the file. */
    public static String text(Path file) {
        try {
            return TextFiles.read(file, TextFiles.MAX_LIST);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(file + ": " + e.getMessage(), e.remedy());
        }
    }

    /** The value of a wrapper message such as Int64Value: {@code otherwise} if absent, 0 if empty. */
    static long wrapperValue(TypedMessage message, String field, long otherwise) {
        Value value = message.message(field).first("value");
        return value == null ? message.has(field) ? 0 : otherwise : value.number();
    }

    public static double doubleValue(TypedMessage message, String field) {
        Value value = message.first(field);
        return value != null && value.value() instanceof Double d ? d : 0;
    }
}
