// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ModelConfigDocumentTest {
    @TempDir
    Path model;

    private ModelConfig read(String text) {
        ProblemCollector problems = new ProblemCollector();
        ModelConfig config = ModelConfigReader.read(model.resolve("config.pbtxt"), text, model, "m", true, problems)
                .config();
        assertThat(problems.list()).isEmpty();
        return config;
    }

    /** The value at a path of field names and indices. */
    private static Object at(Map<String, Object> document, Object... path) {
        Object value = document;
        for (Object step : path) {
            value = step instanceof Integer i ? ((List<?>) value).get(i) : ((Map<?, ?>) value).get(step);
        }
        return value;
    }

    @Test
    void aLazyDocumentIsEqualAndFormsNoChain() {
        ModelConfig config = read("max_batch_size: 4 optimization { priority: PRIORITY_MIN }");
        Map<String, Object> lazy = ModelConfigDocument.lazy(config);
        assertThat(lazy).isEqualTo(ModelConfigDocument.of(config)).containsEntry("max_batch_size", 4L);
        assertThat(lazy.get("optimization"))
                .isEqualTo(ModelConfigDocument.of(config).get("optimization"));
        ModelConfig completed = config.toBuilder().document(lazy).build();
        assertThat(ModelConfigDocument.lazy(completed))
                .isNotInstanceOf(LazyDocument.class)
                .isEqualTo(lazy);
    }

    @Test
    void whatTheBackendFoundStandsBesideWhatOnlyTheTextKnows() {
        ModelConfig config = read("""
            input { name: "a" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] format: FORMAT_NCHW }
            optimization { priority: PRIORITY_MIN output_pinned_memory { enable: false } }
            """).toBuilder()
                .platform("onnxruntime_onnx")
                .backend("onnxruntime")
                .maxBatchSize(4)
                .inputs(List.of(new TensorSpec("a", DataType.FP32, Shape.of(3, 224, 224))))
                .outputs(List.of(new TensorSpec("b", DataType.BYTES, Shape.of(1))))
                .batching(DynamicBatching.EAGER)
                .build();
        Map<String, Object> document = ModelConfigDocument.of(config);
        assertThat(at(document, "input", 0, "format")).isEqualTo("FORMAT_NCHW");
        assertThat(at(document, "input", 0, "dims")).isEqualTo(List.of(3L, 224L, 224L));
        assertThat(at(document, "output", 0, "data_type")).isEqualTo("TYPE_STRING");
        assertThat(at(document, "max_batch_size")).isEqualTo(4L);
        assertThat(at(document, "dynamic_batching", "preferred_batch_size")).isEqualTo(List.of(4L));
        assertThat(at(document, "optimization", "priority")).isEqualTo("PRIORITY_MIN");
        assertThat(at(document, "optimization", "input_pinned_memory", "enable"))
                .isEqualTo(true);
        assertThat(at(document, "optimization", "output_pinned_memory", "enable"))
                .isEqualTo(false);
        assertThat(at(document, "instance_group", 0, "name")).isEqualTo("m");
    }

    @Test
    void aChangeOfTheRecordShowsInANewDocument() {
        ModelConfig config = read("instance_group { count: 2 host_policy: 'left' } dynamic_batching { }");
        ModelConfig documented =
                config.toBuilder().document(ModelConfigDocument.of(config)).build();
        ModelConfig changed = documented.toBuilder()
                .instanceGroups(List.of(InstanceGroup.cpu("m_0", 5), InstanceGroup.cpu("other", 1)))
                .batching(null)
                .responseCache(true)
                .build();
        Map<String, Object> document = ModelConfigDocument.of(changed);
        assertThat(at(document, "instance_group", 0, "count")).isEqualTo(5L);
        assertThat(at(document, "instance_group", 0, "host_policy")).isEqualTo("");
        assertThat(at(document, "instance_group", 1, "name")).isEqualTo("other");
        assertThat(document).doesNotContainKey("dynamic_batching");
        assertThat(at(document, "response_cache", "enable")).isEqualTo(true);
        ModelConfig off =
                changed.toBuilder().document(document).responseCache(false).build();
        assertThat(at(ModelConfigDocument.of(off), "response_cache", "enable")).isEqualTo(false);
    }

    @Test
    void aDocumentCannotBeChanged() {
        Map<String, Object> document = ModelConfigDocument.of(read("parameters { key: 'k' value { } }"));
        assertThatThrownBy(() -> document.put("x", 1)).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> ((Map<?, ?>) at(document, "parameters")).clear())
                .isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> ((List<?>) at(document, "instance_group")).clear())
                .isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void aCompletedConfigurationIsLookedAtOnceMore() {
        ModelConfig config = read("dynamic_batching { preferred_batch_size: [ 4, 8 ] }");
        ModelConfigDocument.check(config.toBuilder().maxBatchSize(8).build(), model, GpuInventory.NONE);
        assertThatThrownBy(() -> ModelConfigDocument.check(
                        config.toBuilder().maxBatchSize(4).build(), model, GpuInventory.NONE))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("dynamic batching preferred size must be <= max batch size for m");
    }

    @Test
    void aBackendMayFindTensorsOfASingleValue() {
        ModelConfig rows = ModelConfig.builder("m")
                .backend("fake")
                .maxBatchSize(8)
                .inputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(4))))
                .outputs(List.of(new TensorSpec("y", DataType.FP32, Shape.SCALAR)))
                .build();
        ModelConfigDocument.check(rows, model, GpuInventory.NONE);
        ModelConfigDocument.check(rows.toBuilder().maxBatchSize(0).build(), model, GpuInventory.NONE);
    }
}
