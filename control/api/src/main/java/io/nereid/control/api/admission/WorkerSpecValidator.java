// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.PredictorSpec;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.PodSpec.WorkerSpec;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Validates the workerSpec of multi-node services and runtimes. Confined to one admission. */
final class WorkerSpecValidator {
    private static final List<String> GPUS =
            List.of("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi");

    private final ValidationErrors problems;
    private final List<String> gpus;
    private final ObjectMeta metadata;

    WorkerSpecValidator(ValidationErrors problems, InferenceServiceConfig config, ObjectMeta metadata) {
        this.problems = problems;
        this.metadata = metadata;
        this.gpus = new ArrayList<>(GPUS);
        gpus.addAll(config.gpuResourceTypes());
        String more = metadata.annotation("serving.kserve.io/gpu-resource-types");
        if (more != null) {
            for (String one : more.replaceAll("[\\[\\]\"\\s]", "").split(",")) {
                gpus.add(one);
            }
        }
    }

    void predictor(String path, PredictorSpec predictor) {
        WorkerSpec workers = predictor.workerSpec();
        if (workers == null) {
            return;
        }
        workers(path + ".workerSpec", workers);
        if (predictor.model() != null) {
            noSizes(path + ".model", predictor.model().container());
            gpus(path + ".model", predictor.model().container());
            String uri = predictor.model().storageUri();
            if (uri == null || !(uri.startsWith("pvc://") || uri.startsWith("oci://"))) {
                problems.add(
                        path + ".model.storageUri",
                        "with a workerSpec, it must be given and begin with pvc:// or oci://, found "
                                + (uri == null ? "nothing" : "\"" + ValidationErrors.clip(uri) + "\""));
            }
        }
        if (!"none".equals(metadata.annotation(ScalingValidator.CLASS_ANNOTATION))) {
            problems.add(
                    "metadata.annotations." + ScalingValidator.CLASS_ANNOTATION,
                    "must be none, because there is a workerSpec");
        }
    }

    /** Validates the workers of a service or of a runtime. */
    void workers(String path, WorkerSpec workers) {
        if (workers.pod().containers().size() > 1) {
            problems.add(
                    path + ".containers",
                    "has " + workers.pod().containers().size() + " containers; expected one at most");
        }
        size(path + ".pipelineParallelSize", workers.pipelineParallelSize());
        size(path + ".tensorParallelSize", workers.tensorParallelSize());
        for (int i = 0; i < workers.pod().containers().size(); i++) {
            Container one = workers.pod().containers().get(i);
            String at = path + ".containers[" + i + "]";
            noSizes(at, one);
            gpus(at, one);
            InferenceServiceValidator.noPythonPath(at, one, problems);
        }
    }

    private void size(String path, @Nullable Integer size) {
        if (size != null && size < 1) {
            problems.add(path, size + " is less than 1");
        }
    }

    private void noSizes(String path, Container container) {
        for (String name : List.of("PIPELINE_PARALLEL_SIZE", "TENSOR_PARALLEL_SIZE")) {
            if (container.env().stream().anyMatch(env -> env.name().equals(name))) {
                problems.add(
                        path + ".env",
                        "the variable " + name + " must not be set; write it as a field of the workerSpec");
            }
        }
    }

    private void gpus(String path, Container container) {
        List<Map<String, String>> all =
                List.of(container.resources().limits(), container.resources().requests());
        for (Map<String, String> resources : all) {
            for (String name : resources.keySet()) {
                if (name.contains("/") && !name.startsWith("hugepages-") && !gpus.contains(name)) {
                    problems.add(path + ".resources", ValidationErrors.unknownValue(name, gpus));
                }
            }
        }
    }
}
