// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.payload.PayloadSettings.Strategy;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
    private static PayloadSettings read(String url, String specification, String... annotation) throws Exception {
        return PayloadSettings.read(
                url,
                "",
                JsonDocuments.MAPPER.readTree(specification),
                annotation.length == 0 ? Map.of() : Map.of(annotation[0], annotation[1]));
    }

    @Test
    void defaultsLogEverythingToTheBroker() throws Exception {
        PayloadSettings settings = read("", "{}", "other/annotation", "x");
        assertThat(settings.url()).isEqualTo("http://default-broker");
        assertThat(settings.requests()).isTrue();
        assertThat(settings.responses()).isTrue();
        assertThat(settings.samplingRate()).isEqualTo(1);
        assertThat(settings.strategy()).isEqualTo(Strategy.IMMEDIATE);
        assertThat(settings.warnings()).isEmpty();
    }

    @Test
    void theStrategyFollowsFromSizeAndInterval() throws Exception {
        assertThat(read("file:///x", "{\"batchSize\":2}").strategy()).isEqualTo(Strategy.SIZE);
        PayloadSettings timed = read("file:///x", "{\"batchSize\":2,\"batchInterval\":7}");
        assertThat(timed.strategy()).isEqualTo(Strategy.TIMED);
        assertThat(timed.batchInterval()).isEqualTo(Duration.ofSeconds(7));
        assertThat(read("file:///x", "{\"batchSize\":2,\"batchInterval\":\"1m500ms\"}")
                        .batchInterval())
                .isEqualTo(Duration.ofMillis(60_500));
        PayloadSettings alone = read("file:///x", "{\"batchInterval\":7}");
        assertThat(alone.strategy()).isEqualTo(Strategy.IMMEDIATE);
        assertThat(alone.warnings()).singleElement().asString().contains("batchInterval");
        PayloadSettings http = read("http://x", "{\"batchSize\":2,\"marshallerUrl\":\"http://m\"}");
        assertThat(http.strategy()).isEqualTo(Strategy.IMMEDIATE);
        assertThat(http.warnings()).hasSize(2);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        http://x  | {"metadataHeader":[]}                              | logger.metadataHeader is not a setting of a logger (did you mean
        file:///x | {"storage":{"paths":"x"}}                          | logger.storage.paths is not a setting
        file:///x | {"storage":{"parameters":{"formats":"csv"}}}       | logger.storage.parameters.formats is not a setting
        file:///x | {"storage":{"parameters":{"format":"avro"}}}       | 'avro' (expected: json, csv or parquet)
        file:///x | {"storage":{"parameters":{"samplingRate":"2"}}}    | '2' (expected: a number from 0 to 1)
        file:///x | {"storage":{"parameters":{"redact":"$.a..b"}}}     | '$.a..b' is neither a path nor the name of a header
        file:///x | {"batchSize":0}                                    | logger.batchSize is '0'
        file:///x | {"batchInterval":"soon"}                           | logger.batchInterval is 'soon'
        """)
    void unknownSettingsAreRejectedByName(String url, String specification, String text) {
        assertThatThrownBy(() -> read(url, specification)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(text.strip());
        });
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        nereid.io/logger-sample      | 0.1  | the annotation nereid.io/logger-sample is not a setting
        nereid.io/logger-sampling    | NaN  | sampling rate is 'NaN'
        nereid.io/logger-redact      | a b  | 'a b' is neither a path nor the name of a header
        nereid.io/logger-queue-bytes | -1   | nereid.io/logger-queue-bytes is '-1'
        nereid.io/logger-retries     | many | nereid.io/logger-retries is 'many'
        """)
    void annotationsAreCheckedToo(String name, String value, String text) {
        assertThatThrownBy(() -> read("http://x", "{}", name, value)).hasMessageContaining(text);
    }

    @Test
    void aSettingThatIsGivenTwiceMustBeTheSame() throws Exception {
        String specification = "{\"storage\":{\"parameters\":{\"samplingRate\":\"0.5\"}}}";
        assertThat(read("file:///x", specification, "nereid.io/logger-sampling", "0.5")
                        .samplingRate())
                .isEqualTo(0.5);
        assertThatThrownBy(() -> read("file:///x", specification, "nereid.io/logger-sampling", "0.1"))
                .hasMessageContaining("samplingRate is '0.5'");
    }

    @Test
    void parametersOfAnObjectStoreAreForTheStore() throws Exception {
        PayloadSettings settings = read(
                "s3://b/x",
                "{\"storage\":{\"key\":\"k\",\"serviceAccountName\":\"sa\","
                        + "\"parameters\":{\"region\":\"eu\",\"format\":\"parquet\"}}}");
        assertThat(settings.storage().parameters()).isEqualTo(Map.of("region", "eu"));
        assertThat(settings.storage().key()).isEqualTo("k");
        assertThat(settings.format()).isEqualTo(BatchFormat.PARQUET);
        assertThat(settings.warnings()).isEmpty();
        assertThat(read("file:///x", "{\"storage\":{\"key\":\"k\"}}").warnings())
                .hasSize(1);
    }
}
