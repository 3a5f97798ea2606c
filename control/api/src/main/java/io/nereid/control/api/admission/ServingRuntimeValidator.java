// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.Container;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ServingRuntime.SupportedFormat;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/** Validates ServingRuntimes, ClusterServingRuntimes and ClusterStorageContainers. Confined to one admission. */
final class ServingRuntimeValidator {
    private final AdmissionContext context;
    private final ValidationErrors problems;

    ServingRuntimeValidator(AdmissionContext context, ValidationErrors problems) {
        this.context = context;
        this.problems = problems;
    }

    void check(ObjectNode resource, @Nullable ObjectNode old) {
        ServingRuntime runtime = ServingRuntime.read(resource);
        Map<String, Optional<Integer>> priorities = new HashMap<>();
        for (int i = 0; i < runtime.supportedModelFormats().size(); i++) {
            SupportedFormat format = runtime.supportedModelFormats().get(i);
            String path = "spec.supportedModelFormats[" + i + "]";
            if (format.name().isBlank()) {
                problems.add(path + ".name", "empty; expected a format such as sklearn");
            }
            Optional<Integer> priority = Optional.ofNullable(format.priority());
            Optional<Integer> before = priorities.putIfAbsent(format.name(), priority);
            if (before != null && !before.equals(priority) && before.isPresent() && priority.isPresent()) {
                problems.add(
                        path + ".priority",
                        "the format \"" + ValidationErrors.clip(format.name()) + "\" is listed with the priority "
                                + before.get() + " as well; a format has one priority in a runtime, found "
                                + format.priority());
            }
        }
        if (!runtime.disabled()) {
            for (ServingRuntime other : context.runtimes(runtime.metadata().namespace())) {
                conflict(runtime, other);
            }
        }
        ObjectMetaValidator.engine(runtime.metadata(), problems);
        containers(runtime);
        InferenceServiceConfig config = context.config(runtime.metadata().namespace());
        WorkerSpecValidator workers = new WorkerSpecValidator(problems, config, runtime.metadata());
        if (runtime.workerSpec() != null) {
            workers.workers("spec.workerSpec", runtime.workerSpec());
        } else if (old != null && FieldReader.of(old).object("spec").has("workerSpec")) {
            problems.add("spec.workerSpec", "cannot be removed");
        }
        ObjectMetaValidator.labels("spec.labels", runtime.labels(), problems);
        ObjectMetaValidator.annotations("spec.annotations", runtime.annotations(), problems);
    }

    private void containers(ServingRuntime runtime) {
        List<Container> containers = runtime.pod().containers();
        if (containers.isEmpty()) {
            problems.add("spec.containers", "empty; a runtime has one container at least");
        }
        Set<String> names = new HashSet<>();
        for (int i = 0; i < containers.size(); i++) {
            String path = "spec.containers[" + i + "]";
            Container one = containers.get(i);
            if (!names.add(one.name())) {
                problems.add(
                        path + ".name",
                        "\"" + ValidationErrors.clip(one.name()) + "\" is another container's name as well");
            }
            InferenceServiceValidator.noPythonPath(path, one, problems);
        }
    }

    /**
     * Rejects a runtime that has the same priority for a format as another one, because the selection would be
     * ambiguous.
     */
    private void conflict(ServingRuntime runtime, ServingRuntime other) {
        if (other.disabled()
                || other.engine() != runtime.engine()
                || other.name().equals(runtime.name())
                || other.multiModel() != runtime.multiModel()
                || !sharesProtocol(runtime, other)) {
            return;
        }
        for (int i = 0; i < runtime.supportedModelFormats().size(); i++) {
            SupportedFormat one = runtime.supportedModelFormats().get(i);
            for (SupportedFormat another : other.supportedModelFormats()) {
                if (one.autoSelect()
                        && another.autoSelect()
                        && one.priority() != null
                        && one.priority().equals(another.priority())
                        && one.name().equals(another.name())
                        && Objects.equals(one.version(), another.version())) {
                    problems.add(
                            "spec.supportedModelFormats[" + i + "].priority",
                            "the runtime " + other.name() + " has the same priority " + one.priority()
                                    + " for the format " + one.name()
                                    + (one.version() == null ? "" : ", version " + one.version())
                                    + "; give one of the two another priority");
                }
            }
        }
    }

    /** Whether both list one protocol. As in KServe, a runtime without a list has none in common with others. */
    private static boolean sharesProtocol(ServingRuntime one, ServingRuntime other) {
        return one.protocolVersions().stream().anyMatch(other.protocolVersions()::contains);
    }

    /** Validates a ClusterStorageContainer. */
    void storageContainer(ObjectNode resource) {
        ClusterStorageContainer container = ClusterStorageContainer.read(resource);
        for (int i = 0; i < container.supportedUriFormats().size(); i++) {
            ClusterStorageContainer.UriFormat format =
                    container.supportedUriFormats().get(i);
            String path = "spec.supportedUriFormats[" + i + "]";
            boolean prefix = format.prefix() != null && !format.prefix().isEmpty();
            boolean regex = format.regex() != null && !format.regex().isEmpty();
            if (prefix == regex) {
                problems.add(path, "expected exactly one of prefix and regex");
            }
            if (format.regex() != null && regex) {
                try {
                    Pattern.compile(format.regex());
                } catch (PatternSyntaxException e) {
                    problems.add(path + ".regex", "not a regular expression: " + e.getDescription());
                }
            }
        }
        if (container.supportedUriFormats().isEmpty()) {
            problems.add("spec.supportedUriFormats", "empty; expected one prefix or regex at least");
        }
    }
}
