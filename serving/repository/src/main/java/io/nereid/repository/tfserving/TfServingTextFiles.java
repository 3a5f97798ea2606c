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
 * Reads the text files that configure a server in TensorFlow Serving's formats: all problems are told together, each with
 * its place. Immutable.
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
     * A text with its fields.
     *
     * @param root what was read
     * @param file where it comes from, for messages
     * @param problems receives what is wrong
     */
    public record Read(TypedMessage root, Path file, ProblemCollector problems) {
        public void error(SourcePosition at, String message, @Nullable String remedy) {
            problems.error(file, at, message, remedy);
        }

        /** Throws what was found wrong, if anything. */
        public void check() {
            if (problems.hasErrors()) {
                throw ProblemCollector.refusal(problems.list());
            }
        }
    }

    public static Read read(ConfigSchema schema, String text, String where) {
        ProblemCollector problems = new ProblemCollector();
        Path file = path(where);
        List<TextFormatNode.Field> fields = new ArrayList<>();
        SourcePosition refused = refused(schema, text);
        if (refused != null) {
            // Its value is an Any, which the parser would call a mistake of grammar.
            problems.error(
                    file,
                    refused,
                    "field 'custom_model_config' is not supported, it is read by code that is compiled into another"
                            + " server",
                    "write model_config_list { config { … } }, or give the server a source of its own");
            return new Read(new TypedMessage(new SourcePosition(1, 1)), file, problems);
        }
        try {
            TextFormatParser.parse(text, fields);
        } catch (TextFormatException e) {
            problems.error(file, e.at(), e.message(), e.remedy());
        }
        return new Read(new ConfigBinder(schema, file, problems).bind(fields), file, problems);
    }

    /** Where a list of models has its custom part; null where there is none. */
    private static @Nullable SourcePosition refused(ConfigSchema schema, String text) {
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

    /** The file's text; the refusal names the file. */
    public static String text(Path file) {
        try {
            return TextFiles.read(file, TextFiles.MAX_LIST);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(file + ": " + e.getMessage(), e.remedy());
        }
    }

    /** What a wrapper message holds; the other number where it is not given, or empty. */
    static long wrapped(TypedMessage message, String field, long otherwise) {
        Value value = message.message(field).first("value");
        return value == null ? message.has(field) ? 0 : otherwise : value.number();
    }

    public static double real(TypedMessage message, String field) {
        Value value = message.first(field);
        return value != null && value.value() instanceof Double d ? d : 0;
    }
}
