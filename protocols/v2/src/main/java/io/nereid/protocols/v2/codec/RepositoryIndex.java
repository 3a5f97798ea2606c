// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;

/** The repository index, versions and extensions that REST and gRPC report alike. Holds no state. */
public final class RepositoryIndex {
    private static final List<String> EXTENSIONS = List.of(
            "classification",
            "sequence",
            "model_repository",
            "model_repository(unload_dependents)",
            "schedule_policy",
            "model_configuration",
            "system_shared_memory",
            "cuda_shared_memory",
            "binary_tensor_data",
            "parameters",
            "statistics",
            "trace",
            "logging");

    private RepositoryIndex() {}

    /** The names of the supported extensions, as Triton names and orders them. */
    public static List<String> extensions(CodecContext context) {
        return EXTENSIONS.stream()
                .filter(name -> !name.equals("system_shared_memory") || context.sharedMemory.enabled())
                .filter(name -> !name.equals("cuda_shared_memory") || context.sharedMemory.cudaEnabled())
                .toList();
    }

    /** The available versions of a model, highest first. */
    public static List<String> versions(ModelControl control, String model) {
        List<String> versions = new ArrayList<>();
        for (ModelStatus status : control.index()) {
            if (status.model().equals(model)) {
                for (ServableState state : status.versions()) {
                    if (state.phase() == Phase.AVAILABLE
                            && !ModelReferences.unversioned(state.id().version())) {
                        versions.add(Long.toString(state.id().version()));
                    }
                }
            }
        }
        return versions;
    }

    /** One entry of the repository index; unknown values are empty. Immutable. */
    public record IndexEntry(String model, String version, String state, String reason) {}

    /** Those of the statistics whose models a caller may observe. */
    public static List<ModelStatisticsSnapshot> visible(List<ModelStatisticsSnapshot> reports, Caller caller) {
        return reports.stream()
                .filter(report -> caller.may(Permission.OBSERVE, report.model()))
                .toList();
    }

    /** The repository index, in the order of {@link ModelControl#index}; models that the caller may see. */
    public static List<IndexEntry> index(ModelControl control, boolean readyOnly, Caller caller) {
        List<IndexEntry> entries = new ArrayList<>();
        for (ModelStatus status : control.index()) {
            if (!caller.may(Permission.METADATA, status.model())) {
                continue;
            }
            if (status.versions().isEmpty() && !readyOnly) {
                entries.add(new IndexEntry(status.model(), "", "", ""));
            }
            for (ServableState state : status.versions()) {
                if (!readyOnly || state.phase() == Phase.AVAILABLE) {
                    long version = state.id().version();
                    String reason = state.reason();
                    entries.add(new IndexEntry(
                            status.model(),
                            ModelReferences.unversioned(version) ? "" : Long.toString(version),
                            stateName(state.phase()),
                            reason != null ? reason : state.phase() == Phase.GONE ? "unloaded" : ""));
                }
            }
        }
        return entries;
    }

    private static String stateName(Phase phase) {
        return switch (phase) {
            case TRACKED, LOADING, WARMING -> "LOADING";
            case AVAILABLE -> "READY";
            case DRAINING, UNLOADING -> "UNLOADING";
            case GONE, FAILED -> "UNAVAILABLE";
        };
    }

    public static ServingException repositoryName() {
        return ServingException.of(ErrorCode.UNIMPLEMENTED, "'repository_name' specification is not supported");
    }

    public static String notReady(String model) {
        return "Model with name " + model + " is not ready.";
    }

    /** The exception of a failed stage as a ServingException. */
    public static ServingException failure(Throwable t) {
        return ServingException.from(t instanceof CompletionException && t.getCause() != null ? t.getCause() : t);
    }
}
