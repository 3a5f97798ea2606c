// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.text;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.repository.layout.ModelServerConfig;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.repository.tfserving.MonitoringConfig;
import io.nereid.repository.tfserving.SslConfig;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The text files of TensorFlow Serving; the first character chooses which. Confined to one thread. */
public final class TfServingFilesTarget implements FuzzTarget {
    @Override
    public void read(byte[] input) {
        String text = new String(input, StandardCharsets.UTF_8);
        if (text.isEmpty()) {
            return;
        }
        String rest = text.substring(1);
        switch (text.charAt(0) % 4) {
            case 0 -> ModelServerConfig.parse(rest, "models.config");
            case 1 -> BatchingParameters.parse(rest, "batching").batchSizePolicy();
            case 2 -> MonitoringConfig.parse(rest, "monitoring");
            default -> SslConfig.parse(rest, "ssl");
        }
    }

    @Override
    public List<byte[]> seeds() {
        return FuzzTargets.texts(
                "dmodel_config_list { config { name: 'a' base_path: '/m/a' model_platform: 'tensorflow' "
                        + "model_version_policy { specific { versions: 1 versions: 2 } } "
                        + "version_labels { key: 'stable' value: 1 } logging_config { sampling_config { sampling_rate: 0.1 } } } }",
                "emax_batch_size { value: 8 } batch_timeout_micros { value: 1000 } max_enqueued_batches { value: 9 } "
                        + "num_batch_threads { value: 2 } allowed_batch_sizes: 4 allowed_batch_sizes: 8",
                "fprometheus_config { enable: true path: \"/metrics\" }",
                "gserver_key: \"k\" server_cert: \"c\" custom_ca: \"\" client_verify: false");
    }

    @Override
    public long allocationLimit(int length) {
        return (8L << 20) + 4_000L * length;
    }
}
