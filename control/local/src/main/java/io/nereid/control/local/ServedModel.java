// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Workload;
import io.nereid.control.local.inprocess.ManagedModelBuilder;
import io.nereid.repository.ManagedModel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The model of a process that serves nothing else, such as the container of a pod. What its folder and its arguments mean
 * is decided as for a model of a service on one machine. Immutable.
 *
 * <pre>{@code
 * ServedModel served = ServedModel.of(workload, Path.of("/mnt/models"));
 * source.place(List.of(served.model()));
 * }</pre>
 *
 * @param model the model, whose name in the engine is the one that clients use
 * @param modelName the name that clients use; models of a repository have their own
 * @param warnings settings without an effect, a sentence each
 */
public record ServedModel(ManagedModel model, String modelName, List<String> warnings) {
    /**
     * Decides how a model is served. Reads its directory.
     *
     * @param workload its form is a {@link Workload.Model} with one artifact
     * @param directory the files of the artifact
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT or FAILED_PRECONDITION for what cannot be served
     */
    public static ServedModel of(Workload workload, Path directory) {
        List<String> warnings = new ArrayList<>();
        ManagedModelBuilder.Result built =
                ManagedModelBuilder.build(workload, (Workload.Model) workload.form(), List.of(directory), warnings);
        ManagedModel m = built.model();
        ManagedModel named = new ManagedModel(
                built.modelName(),
                m.directory(),
                m.repository(),
                m.backend(),
                m.modelFile(),
                m.parameters(),
                m.instances(),
                m.batching(),
                m.maxBatchSize(),
                m.config(),
                m.expectedFiles());
        return new ServedModel(named, built.modelName(), List.copyOf(warnings));
    }
}
