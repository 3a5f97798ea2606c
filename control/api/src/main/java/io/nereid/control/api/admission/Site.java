// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.FieldReader;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import java.util.List;

/**
 * Where admitted resources run, which decides about the fields that have no effect. Both sites accept the same
 * resources, so that a file moves from one to the other unchanged; they differ in what they warn about, and a cluster
 * refuses what runs in the server process of one machine alone.
 */
public enum Site {
    /** One server process, without nodes, pods and images. */
    ONE_MACHINE {
        @Override
        void service(
                InferenceService service, DeploymentMode mode, InferenceServiceConfig config, List<String> warnings) {
            new UnsupportedFieldWarnings(warnings).service(service);
        }

        @Override
        void graph(InferenceGraph graph, List<String> warnings) {
            new UnsupportedFieldWarnings(warnings).graph(graph);
        }

        @Override
        void runtime(ServingRuntime runtime, List<String> warnings) {
            new UnsupportedFieldWarnings(warnings).runtime(runtime);
        }

        @Override
        void storageContainer(List<String> warnings) {
            warnings.add(
                    "spec.container has no effect on one machine: the server downloads files itself, and only from the"
                            + " schemes that it supports");
        }

        @Override
        public String languageModelsInstead() {
            return "write an InferenceService whose predictor has containers with a command that starts such a server";
        }
    },
    /** A cluster, where pods have all their fields. */
    KUBERNETES {
        @Override
        void service(
                InferenceService service, DeploymentMode mode, InferenceServiceConfig config, List<String> warnings) {
            ClusterWarnings.service(service, mode, config, warnings);
        }

        @Override
        void refused(InferenceService service, ValidationErrors problems) {
            ClusterWarnings.refused(service, problems);
        }

        @Override
        void runtime(ServingRuntime runtime, List<String> warnings) {
            ClusterWarnings.runtime(runtime, warnings);
        }

        @Override
        void graph(InferenceGraph graph, List<String> warnings) {
            ClusterWarnings.graph(FieldReader.of(graph.tree()).object("spec"), warnings);
        }

        @Override
        void storageContainer(List<String> warnings) {
            // the container runs as it is
        }

        @Override
        public String languageModelsInstead() {
            return "write an InferenceService whose predictor has a container with such a server, or let KServe's own"
                    + " controller of this kind run beside Nereid";
        }
    };

    private static final String LANGUAGE_MODELS =
            "servers of large language models, such as vLLM with the routing of" + " llm-d, are not built in";

    /** What is missing for LLMInferenceServices, without the way out. */
    public String languageModelsMissing() {
        return LANGUAGE_MODELS;
    }

    /** What to do instead of an LLMInferenceService. */
    public abstract String languageModelsInstead();

    /** The warning when an LLMInferenceService is written. */
    String languageModels() {
        return "an LLMInferenceService is checked and stored, but does not become ready: " + languageModelsMissing()
                + "; " + languageModelsInstead();
    }

    /** Warns about the fields of a service of a mode that have no effect here. */
    abstract void service(
            InferenceService service, DeploymentMode mode, InferenceServiceConfig config, List<String> warnings);

    /** Refuses what a service cannot have here. */
    void refused(InferenceService service, ValidationErrors problems) {
        // nothing, unless a site says so
    }

    /** Warns about the fields of a runtime that have no effect here. */
    abstract void runtime(ServingRuntime runtime, List<String> warnings);

    /** Warns about the fields of a storage container that have no effect here. */
    abstract void storageContainer(List<String> warnings);

    /** Warns about the fields of a graph that have no effect here. */
    abstract void graph(InferenceGraph graph, List<String> warnings);
}
