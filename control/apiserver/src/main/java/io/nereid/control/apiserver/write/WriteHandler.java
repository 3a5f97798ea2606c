// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.write;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.ErrorResponseException;
import io.nereid.control.apiserver.http.ResourceAddress;
import io.nereid.control.apiserver.patch.FieldManager;
import io.nereid.control.apiserver.patch.FieldManager.Applied;
import io.nereid.control.apiserver.patch.FieldManager.Author;
import io.nereid.control.apiserver.patch.FieldManager.Conflict;
import io.nereid.control.apiserver.patch.ResourcePatcher;
import io.nereid.control.apiserver.read.ResourceSelector;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Serves create, update, patch, apply and delete: checks the request against the path, runs admission, updates the
 * managed fields and the generation, and stores the result. Thread-safe: it has no state of its own.
 */
public final class WriteHandler {
    private static final Pattern NAME = Pattern.compile("[a-z0-9]([-a-z0-9.]*[a-z0-9])?");
    private static final Pattern HEAD = Pattern.compile("^[^\\n:]{1,400}? is invalid(: |, \\d+ problems:\\n)");
    private static final int MOST_NAME = 253;
    private static final int TRIES = 8;
    private static final String LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

    private final ResourceStore store;
    private final Admission admission;
    private final Function<ObjectNode, List<String>> advice;
    private final NamespaceLifecycle namespaces;
    private final Clock clock;

    /** @param advice names what of an admitted InferenceService has no effect, a sentence each */
    public WriteHandler(
            ResourceStore store,
            Admission admission,
            Function<ObjectNode, List<String>> advice,
            NamespaceLifecycle namespaces,
            Clock clock) {
        this.store = store;
        this.admission = admission;
        this.advice = advice;
        this.namespaces = namespaces;
        this.clock = clock;
    }

    public ApiResponse create(ResourceAddress collection, ApiRequest request) {
        ObjectNode resource = request.resource();
        List<String> warnings = new ArrayList<>();
        ResourceAddress target = identified(collection, resource);
        try {
            return ApiResponse.of(201, create(target, resource, request, "Update", warnings), warnings);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ALREADY_EXISTS) {
                throw new ErrorResponseException(ApiResponse.ofStatus(
                        ApiResponse.about(ApiResponse.failureStatus(e), target.kind(), target.name())));
            }
            throw e;
        }
    }

    /** Checks kind, name and namespace of the resource in the body against the path, and completes its metadata. */
    private ResourceAddress identified(ResourceAddress target, ObjectNode resource) {
        ResourceKind kind = target.kind();
        if (kind.group().isEmpty()) {
            // As in Kubernetes, the path says of which kind and version an object of its own groups is.
            for (String field : List.of("apiVersion", "kind")) {
                if (resource.path(field).asText("").isEmpty()) {
                    resource.put(field, field.equals("kind") ? kind.kind() : kind.apiVersion());
                }
            }
        }
        String apiVersion = resource.path("apiVersion").asText("");
        String kindName = resource.path("kind").asText("");
        if (!apiVersion.equals(kind.apiVersion()) || !kindName.equals(kind.kind())) {
            throw ServingException.invalidArgument("the object in the body is a '" + kindName + "' of '" + apiVersion
                    + "', where the path expects a '" + kind.kind() + "' of '" + kind.apiVersion() + "'");
        }
        if (!resource.path("metadata").isObject()) {
            resource.putObject("metadata");
        }
        ObjectNode metadata = resource.withObject("/metadata");
        String name = metadata.path("name").asText("");
        String prefix = metadata.path("generateName").asText("");
        if (name.isEmpty() && target.name().isEmpty() && !prefix.isEmpty()) {
            name = prefix + UUID.randomUUID().toString().substring(0, 5);
        }
        if (name.isEmpty()) {
            name = target.name();
        }
        if (!target.name().isEmpty() && !name.equals(target.name())) {
            throw ServingException.invalidArgument(
                    "the name of the object (" + name + ") does not match the name on the URL (" + target.name() + ")");
        }
        if (name.isEmpty()) {
            throw new ErrorResponseException(
                    ApiResponse.invalid(kind, "", "metadata.name: Required value: name or generateName is required"));
        }
        if (!NAME.matcher(name).matches() || name.length() > MOST_NAME) {
            throw new ErrorResponseException(ApiResponse.invalid(
                    kind,
                    name,
                    "metadata.name: Invalid value: \"" + name
                            + "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters,"
                            + " '-' or '.', and must start and end with an alphanumeric character"));
        }
        metadata.put("name", name);
        String namespace = metadata.path("namespace").asText("");
        String problem = GarbageCollector.problem(metadata);
        if (problem != null) {
            throw new ErrorResponseException(ApiResponse.invalid(kind, name, problem));
        }
        if (kind.namespaced()) {
            if (!namespace.isEmpty() && !namespace.equals(target.namespace())) {
                throw ServingException.invalidArgument(
                        "the namespace of the provided object does not match the namespace" + " sent on the request: "
                                + namespace + " and " + target.namespace());
            }
            metadata.put("namespace", target.namespace());
        } else {
            metadata.remove("namespace");
        }
        return target.named(name);
    }

    private ObjectNode create(
            ResourceAddress target, ObjectNode resource, ApiRequest request, String operation, List<String> warnings) {
        if (target.isStatus()) {
            throw target.notFound();
        }
        ObjectNode metadata = resource.withObject("/metadata");
        if (metadata.hasNonNull("resourceVersion")
                && !metadata.path("resourceVersion").asText().isEmpty()) {
            throw ServingException.invalidArgument("resourceVersion should not be set on objects to be created");
        }
        JsonNode managers = metadata.get("managedFields");
        metadata.remove(List.of(
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "deletionTimestamp",
                "generation",
                "selfLink",
                "managedFields"));
        if (target.kind().hasStatus()) {
            resource.remove("status");
        }
        ObjectNode admitted = admit(target, resource, null, warnings);
        ObjectNode admittedMetadata = admitted.withObject("/metadata");
        if (!target.kind().group().isEmpty()) {
            admittedMetadata.put("generation", 1);
        }
        ArrayNode entries = operation.equals("Apply") && managers instanceof ArrayNode given
                ? given
                : FieldManager.afterUpdate(
                        null, admitted, ApiResponse.JSON.createArrayNode(), author(target, request, operation));
        admittedMetadata.set("managedFields", entries);
        if (target.kind().kind().equals("Namespace")) {
            NamespaceLifecycle.complete(admitted);
        }
        if (target.kind().namespaced()) {
            namespaces.require(target.namespace(), request.dryRun(), warnings);
        }
        if (request.dryRun()) {
            if (store.get(target.key()) != null) {
                throw ServingException.of(
                        ErrorCode.ALREADY_EXISTS,
                        target.qualifiedPlural() + " \"" + target.name() + "\" already exists");
            }
            admittedMetadata.put("uid", UUID.randomUUID().toString()).put("creationTimestamp", now());
            return admitted;
        }
        return ResourceAddress.complete(target.kind(), store.create(target.type(), admitted));
    }

    public ApiResponse replace(ResourceAddress path, ApiRequest request) {
        ObjectNode resource = request.resource();
        ResourceAddress target = identified(path, resource);
        ObjectNode old = store.get(target.key());
        if (old == null) {
            throw target.notFound();
        }
        List<String> warnings = new ArrayList<>();
        String version = resource.path("metadata").path("resourceVersion").asText("");
        ObjectNode updated =
                update(target, old, resource, version.isEmpty() ? null : version, request, false, warnings);
        return ApiResponse.of(200, updated, warnings);
    }

    public ApiResponse patch(ResourceAddress target, ApiRequest request) {
        String type = request.contentType();
        boolean apply = type.equals("application/apply-patch+yaml") || type.equals("application/apply-patch+json");
        boolean strategic = type.equals("application/strategic-merge-patch+json");
        if (strategic && !target.kind().group().isEmpty()) {
            throw ErrorResponseException.unsupportedMediaType(
                    type, "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
        }
        if (!apply
                && !strategic
                && !type.equals("application/json-patch+json")
                && !type.equals("application/merge-patch+json")) {
            throw ErrorResponseException.unsupportedMediaType(
                    type,
                    "application/json-patch+json, application/merge-patch+json,"
                            + " application/strategic-merge-patch+json, application/apply-patch+yaml");
        }
        for (int attempt = 1; ; attempt++) {
            try {
                return apply ? apply(target, request) : patch(target, type, request);
            } catch (ServingException e) {
                boolean raced = e.code() == ErrorCode.ABORTED || apply && e.code() == ErrorCode.ALREADY_EXISTS;
                if (!raced || attempt == TRIES || e.remedy() != null) {
                    throw e;
                }
            }
        }
    }

    private ApiResponse patch(ResourceAddress target, String type, ApiRequest request) {
        ObjectNode old = store.get(target.key());
        if (old == null) {
            throw target.notFound();
        }
        old = ResourceAddress.complete(target.kind(), old);
        JsonNode patch = request.json();
        JsonNode patched = switch (type) {
            case "application/json-patch+json" -> ResourcePatcher.json(old, patch);
            case "application/merge-patch+json" -> ResourcePatcher.merge(old, patch);
            default -> ResourcePatcher.strategic(old, patch);
        };
        if (!(patched instanceof ObjectNode resource)) {
            throw ServingException.invalidArgument("the result of the patch is not an object");
        }
        String stored = old.path("metadata").path("resourceVersion").asText();
        String named = resource.path("metadata").path("resourceVersion").asText("");
        if (!named.isEmpty() && !named.equals(stored)) {
            throw modified(target);
        }
        identified(target, resource);
        List<String> warnings = new ArrayList<>();
        return ApiResponse.of(200, update(target, old, resource, stored, request, false, warnings), warnings);
    }

    private ApiResponse apply(ResourceAddress path, ApiRequest request) {
        String manager = request.query("fieldManager");
        if (manager == null || manager.isEmpty()) {
            throw ServingException.invalidArgument("fieldManager: Required value: is required for apply patch");
        }
        List<ObjectNode> all = ManifestReader.parse(request.body(), "the body");
        if (all.size() != 1) {
            throw ServingException.invalidArgument("the body has " + all.size() + " resources, where one is expected");
        }
        ObjectNode config = all.get(0);
        if (!config.path("metadata").path("managedFields").isEmpty()) {
            throw ServingException.invalidArgument("metadata.managedFields must be nil");
        }
        ResourceAddress target = identified(path, config);
        stringData(target.kind(), config);
        String version = config.path("metadata").path("resourceVersion").asText("");
        ObjectNode old = store.get(target.key());
        Author author = author(target, request, "Apply");
        List<String> warnings = new ArrayList<>();
        if (old == null) {
            if (!version.isEmpty()) {
                throw modified(target);
            }
            ObjectNode nothing = ApiResponse.JSON.createObjectNode();
            ObjectNode fresh = config.deepCopy();
            if (target.kind().hasStatus()) {
                fresh.remove("status");
            }
            ObjectNode resource = FieldManager.apply(
                            nothing,
                            fresh,
                            ApiResponse.JSON.createArrayNode(),
                            author,
                            true,
                            ApiResponse.JSON.createObjectNode())
                    .resource();
            return ApiResponse.of(201, create(target, resource, request, "Apply", warnings), warnings);
        }
        old = ResourceAddress.complete(target.kind(), old);
        String stored = old.path("metadata").path("resourceVersion").asText();
        if (!version.isEmpty() && !version.equals(stored)) {
            throw modified(target);
        }
        ObjectNode live = old.deepCopy();
        if (target.isStatus()) {
            ObjectNode status = ApiResponse.JSON.createObjectNode();
            status.set("apiVersion", config.get("apiVersion"));
            status.set("kind", config.get("kind"));
            status.set("metadata", live.path("metadata").deepCopy());
            status.withObject("/metadata").retain("name", "namespace");
            status.set("status", config.path("status"));
            config = status;
        } else if (target.kind().hasStatus()) {
            config.remove("status");
        }
        Applied applied = FieldManager.apply(
                live,
                config,
                managers(live),
                author,
                request.flag("force"),
                manager.equals("kubectl") ? lastApplied(live) : ApiResponse.JSON.createObjectNode());
        if (!applied.conflicts().isEmpty()) {
            throw new ErrorResponseException(conflict(target, applied.conflicts()));
        }
        ObjectNode resource = applied.resource();
        return ApiResponse.of(200, update(target, old, resource, stored, request, true, warnings), warnings);
    }

    /**
     * The configuration that a client-side {@code kubectl apply} recorded in an annotation. When the user switches to
     * server-side apply, these fields belong to kubectl even if another manager is recorded for them.
     */
    private static ObjectNode lastApplied(ObjectNode live) {
        String text =
                live.path("metadata").path("annotations").path(LAST_APPLIED).asText("");
        try {
            if (ApiResponse.JSON.readTree(text) instanceof ObjectNode config) {
                return config;
            }
        } catch (JsonProcessingException e) {
            // A damaged annotation is treated as absent.
        }
        return ApiResponse.JSON.createObjectNode();
    }

    private static ApiResponse conflict(ResourceAddress target, List<Conflict> conflicts) {
        StringBuilder text = new StringBuilder(
                "Apply failed with " + conflicts.size() + " conflict" + (conflicts.size() == 1 ? ": " : "s: "));
        ObjectNode status = ApiResponse.failureStatus(409, "Conflict", "");
        ArrayNode causes = ApiResponse.about(status, target.kind(), target.name())
                .withObject("/details")
                .putArray("causes");
        for (int i = 0; i < conflicts.size(); i++) {
            Conflict one = conflicts.get(i);
            String with = "conflict with \"" + one.manager() + "\" using " + one.apiVersion();
            text.append(i == 0 ? "" : ", ").append(with).append(": ").append(one.field());
            causes.addObject()
                    .put("reason", "FieldManagerConflict")
                    .put("message", with)
                    .put("field", one.field());
        }
        return ApiResponse.ofStatus(status.put("message", text.toString()));
    }

    private ObjectNode update(
            ResourceAddress target,
            ObjectNode old,
            ObjectNode resource,
            @Nullable String expected,
            ApiRequest request,
            boolean applied,
            List<String> warnings) {
        ResourceKind kind = target.kind();
        String uid = resource.path("metadata").path("uid").asText("");
        JsonNode before = old.path("metadata");
        if (!uid.isEmpty() && !uid.equals(before.path("uid").asText())) {
            throw ServingException.of(
                    ErrorCode.ABORTED,
                    "Precondition failed: UID in precondition: " + uid + ", UID in object meta: "
                            + before.path("uid").asText(),
                    "the resource was deleted and created again; read it again");
        }
        ObjectNode desired;
        if (target.isStatus()) {
            desired = old.deepCopy();
            if (resource.has("status")) {
                desired.set("status", resource.get("status"));
            } else {
                desired.remove("status");
            }
            if (resource.path("metadata").has("managedFields")) {
                desired.withObject("/metadata")
                        .set("managedFields", resource.path("metadata").get("managedFields"));
            }
        } else {
            desired = resource;
            if (kind.hasStatus()) {
                desired.remove("status");
                if (old.has("status")) {
                    desired.set("status", old.get("status"));
                }
            }
            // A resource that is being deleted is not validated, so that its finalizers can always be removed.
            if (!before.has("deletionTimestamp")) {
                desired = admit(target, desired, old, warnings);
            }
        }
        ObjectNode metadata = desired.withObject("/metadata");
        for (String name : List.of(
                "uid",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "resourceVersion",
                "generation")) {
            if (before.has(name)) {
                metadata.set(name, before.get(name));
            } else {
                metadata.remove(name);
            }
        }
        metadata.remove("selfLink");
        if (!kind.group().isEmpty() && !target.isStatus() && Admission.specChanged(old, desired)) {
            metadata.put("generation", before.path("generation").asLong(0) + 1);
        }
        if (!applied) {
            ArrayNode entries = resource.path("metadata").get("managedFields") instanceof ArrayNode given
                    ? withoutEmpty(given)
                    : managers(old);
            entries = FieldManager.afterUpdate(old, desired, entries, author(target, request, "Update"));
            if (entries.isEmpty()) {
                metadata.remove("managedFields");
            } else {
                metadata.set("managedFields", entries);
            }
        }
        if (expected != null && !expected.equals(before.path("resourceVersion").asText())) {
            throw modified(target);
        }
        if (request.dryRun()) {
            return desired;
        }
        ObjectNode stored = ResourceAddress.complete(kind, store.update(target.type(), desired, expected));
        if (before.has("deletionTimestamp")) {
            namespaces.mayHaveEmptied(target.namespace());
        }
        return stored;
    }

    private static ArrayNode withoutEmpty(ArrayNode entries) {
        ArrayNode kept = ApiResponse.JSON.createArrayNode();
        for (JsonNode entry : entries) {
            if (!entry.isEmpty()) {
                kept.add(entry);
            }
        }
        return kept;
    }

    private static ArrayNode managers(ObjectNode resource) {
        return resource.path("metadata").get("managedFields") instanceof ArrayNode entries
                ? entries
                : ApiResponse.JSON.createArrayNode();
    }

    private ObjectNode admit(
            ResourceAddress target, ObjectNode resource, @Nullable ObjectNode old, List<String> warnings) {
        stringData(target.kind(), resource);
        try {
            Admission.Admitted admitted = admission.admit(target.kind(), resource, old);
            warnings.addAll(admitted.warnings());
            if (target.kind().equals(ResourceKinds.INFERENCE_SERVICE)) {
                WriteWarnings.add(warnings, advice.apply(admitted.resource()));
            }
            return admitted.resource().deepCopy();
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INVALID_ARGUMENT) {
                // The response names the invalid resource itself, so cut off the head of the message.
                String problems = HEAD.matcher(e.describe()).replaceFirst("");
                throw new ErrorResponseException(ApiResponse.invalid(target.kind(), target.name(), problems));
            }
            throw e;
        }
    }

    /** Converts a secret's {@code stringData} to {@code data}, whose values are in base64. */
    private static void stringData(ResourceKind kind, ObjectNode resource) {
        if (kind.kind().equals("Secret") && resource.get("stringData") instanceof ObjectNode texts) {
            ObjectNode data = resource.withObject("/data");
            texts.properties()
                    .forEach(text -> data.put(
                            text.getKey(),
                            Base64.getEncoder()
                                    .encodeToString(text.getValue()
                                            .asText()
                                            .getBytes(java.nio.charset.StandardCharsets.UTF_8))));
            resource.remove("stringData");
        }
        if (kind.kind().equals("Secret") && !resource.has("type")) {
            resource.put("type", "Opaque");
        }
    }

    public ApiResponse delete(ResourceAddress target, ApiRequest request) {
        ObjectNode old = target.read(store);
        JsonNode options = request.hasBody() ? request.json() : ApiResponse.JSON.createObjectNode();
        boolean dryRun =
                request.dryRun() || options.path("dryRun").path(0).asText("").equals("All");
        JsonNode conditions = options.path("preconditions");
        String uid = conditions.path("uid").asText("");
        if (!uid.isEmpty() && !uid.equals(old.path("metadata").path("uid").asText())) {
            throw ServingException.of(
                    ErrorCode.ABORTED,
                    "Precondition failed: UID in precondition: " + uid + ", UID in object meta: "
                            + old.path("metadata").path("uid").asText());
        }
        String version = conditions.path("resourceVersion").asText("");
        ObjectNode deleted = old;
        String policy = options.path("propagationPolicy").asText("");
        if (policy.isEmpty()) {
            String requested = request.query("propagationPolicy");
            policy = requested == null ? "" : requested;
        }
        if (!List.of("", "Orphan", "Background", "Foreground").contains(policy)) {
            throw ServingException.invalidArgument(
                    "propagationPolicy is '" + policy + "' (expected Background, Foreground or Orphan)");
        }
        if (!dryRun
                && (policy.equals("Orphan") || options.path("orphanDependents").asBoolean(false))) {
            GarbageCollector.orphan(
                    store, target, old.path("metadata").path("uid").asText());
        }
        if (target.kind().kind().equals("Namespace")) {
            deleted = namespaces.delete(target, dryRun);
        } else if (!dryRun) {
            deleted = ResourceAddress.complete(
                    target.kind(), store.delete(target.key(), version.isEmpty() ? null : version));
            namespaces.mayHaveEmptied(target.namespace());
        }
        if (deleted.path("metadata").has("deletionTimestamp")) {
            return ApiResponse.ok(deleted);
        }
        ObjectNode status = ApiResponse.JSON.createObjectNode();
        status.put("kind", "Status").put("apiVersion", "v1");
        status.putObject("metadata");
        status.put("status", "Success");
        ApiResponse.about(status, target.kind(), target.name())
                .withObject("/details")
                .put("uid", old.path("metadata").path("uid").asText());
        return ApiResponse.ok(status);
    }

    /** Deletes a resource for the garbage collector. */
    void collect(ResourceAddress target, String version) {
        if (target.kind().kind().equals("Namespace")) {
            namespaces.delete(target, false);
            return;
        }
        store.delete(target.key(), version);
        namespaces.mayHaveEmptied(target.namespace());
    }

    public ApiResponse deleteAll(ResourceAddress collection, ResourceSelector selectors, boolean dryRun) {
        ObjectNode list = ApiResponse.JSON.createObjectNode();
        list.put("kind", collection.kind().listKind())
                .put("apiVersion", collection.kind().apiVersion());
        ObjectNode metadata = list.putObject("metadata");
        ArrayNode items = list.putArray("items");
        String namespace =
                collection.kind().namespaced() && !collection.namespace().isEmpty() ? collection.namespace() : null;
        for (ObjectNode item : store.list(collection.type(), namespace).items()) {
            if (!selectors.matches(item)) {
                continue;
            }
            String where = item.path("metadata").path("namespace").asText("");
            ResourceAddress target = new ResourceAddress(
                    collection.kind(), where, item.path("metadata").path("name").asText(), "");
            try {
                if (target.kind().kind().equals("Namespace")) {
                    items.add(namespaces.delete(target, dryRun));
                } else {
                    items.add(dryRun ? item : store.delete(target.key(), null));
                    namespaces.mayHaveEmptied(where);
                }
            } catch (ServingException e) {
                if (e.code() != ErrorCode.NOT_FOUND) {
                    throw e;
                }
            }
        }
        metadata.put(
                "resourceVersion",
                Long.toString(store.list(collection.type(), null).version()));
        return ApiResponse.ok(list);
    }

    private Author author(ResourceAddress target, ApiRequest request, String operation) {
        return new Author(
                request.fieldManager(),
                operation,
                target.subresource(),
                target.kind().apiVersion(),
                now());
    }

    private String now() {
        return Instant.ofEpochMilli(clock.millis())
                .truncatedTo(ChronoUnit.SECONDS)
                .toString();
    }

    private static ServingException modified(ResourceAddress target) {
        return ServingException.of(
                ErrorCode.ABORTED,
                "Operation cannot be fulfilled on " + target.qualifiedPlural() + " \"" + target.name()
                        + "\": the object has been modified; please apply your changes to the latest version and try"
                        + " again",
                "read the resource again");
    }
}
