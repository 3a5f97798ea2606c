// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

class VariantConfigTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static ObjectNode json(String text) throws Exception {
        return (ObjectNode) JSON.readTree(text.replace('\'', '"'));
    }

    private static VariantConfig config(String effective, String written) throws Exception {
        return VariantConfig.of(json(effective), json(written), 4);
    }

    private static final String BATCHED =
            "{'name':'m','backend':'onnxruntime','max_batch_size':8,'dynamic_batching':{'preferred_batch_size':[8]},"
                    + "'instance_group':[{'count':2,'kind':'KIND_CPU'}]}";

    @Test
    void theFirstVariantIsWhatTheModelHas() throws Exception {
        assertThat(config(BATCHED, "{}").first()).isEqualTo(new ConfigVariant(8, 0, 2, 1));
        assertThat(config(
                                "{'name':'m','backend':'onnxruntime','max_batch_size':8,"
                                        + "'dynamic_batching':{'preferred_batch_size':[2,4],'max_queue_delay_microseconds':7},"
                                        + "'parameters':{'intra_op_thread_count':{'string_value':'3'}},"
                                        + "'instance_group':[{'count':2},{'count':3}]}",
                                "{'instance_group':[{},{}]}")
                        .first())
                .isEqualTo(new ConfigVariant(4, 7, 5, 3));
        // Without dynamic batching every request is a run, whatever the model could batch.
        VariantConfig unbatched = config("{'name':'m','backend':'python','max_batch_size':8}", "{}");
        assertThat(unbatched.first()).isEqualTo(new ConfigVariant(1, 0, 1, 1));
        assertThat(unbatched.batches()).isTrue();
        assertThat(unbatched.hasThreads()).isFalse();
        assertThat(config("{'name':'m','max_batch_size':0}", "{}").batches()).isFalse();
        assertThat(config(
                                "{'name':'m','backend':'onnxruntime','parameters':{'intra_op_thread_count':{'string_value':'0'}}}",
                                "{}")
                        .first()
                        .threads())
                .isEqualTo(4);
    }

    @Test
    void aVariantChangesOnlyItsFields() throws Exception {
        VariantConfig config = config(
                BATCHED,
                "{'max_batch_size':8,'dynamic_batching':{'preserve_ordering':true},"
                        + "'instance_group':[{'count':2,'kind':'KIND_CPU','host_policy':'p'}],'parameters':{'a':{'string_value':'b'}}}");
        assertThat(config.json(config.first())).isNull();
        assertThat(json(String.valueOf(config.json(new ConfigVariant(4, 100, 3, 2)))))
                .isEqualTo(json("{'max_batch_size':8,'dynamic_batching':{'preserve_ordering':true,"
                        + "'max_queue_delay_microseconds':100,'preferred_batch_size':[4]},"
                        + "'instance_group':[{'count':3,'kind':'KIND_CPU','host_policy':'p'}],"
                        + "'parameters':{'a':{'string_value':'b'},'intra_op_thread_count':{'string_value':'2'}}}"));
        // The number of instances changes without a reload only if nothing else does.
        assertThat(json(String.valueOf(config.json(new ConfigVariant(8, 0, 5, 1)))))
                .isEqualTo(
                        json(
                                "{'max_batch_size':8,'dynamic_batching':{'preserve_ordering':true},"
                                        + "'instance_group':[{'count':5,'kind':'KIND_CPU','host_policy':'p'}],'parameters':{'a':{'string_value':'b'}}}"));
    }

    @Test
    void aSmallerBatchRefusesNoRequestAndALargerOneRaisesTheLimit() throws Exception {
        VariantConfig config = config(BATCHED, "{'max_batch_size':8}");
        assertThat(config.text("max_batch_size: 8\n", new ConfigVariant(2, 0, 2, 1)))
                .startsWith("max_batch_size: 8\n")
                .contains("preferred_batch_size: [ 2 ]");
        assertThat(config.text("max_batch_size: 8\n", new ConfigVariant(16, 0, 2, 1)))
                .startsWith("max_batch_size: 16\n")
                .doesNotContain("preferred");
        VariantConfig unlimited = config(BATCHED, "{}");
        assertThat(unlimited.text("", new ConfigVariant(2, 0, 2, 1)))
                .isEqualTo("max_batch_size: 8\ndynamic_batching {\n  max_queue_delay_microseconds: 0\n"
                        + "  preferred_batch_size: [ 2 ]\n}\n");
    }

    @Test
    void anEnsembleIsRefused() {
        assertThatThrownBy(() -> config("{'name':'e','ensemble_scheduling':{}}", "{}"))
                .hasMessageContaining("'e' is an ensemble");
    }
}
