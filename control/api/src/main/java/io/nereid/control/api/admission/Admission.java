// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.api.schema.ResourceSchemas;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * Admission of resources, as the webhooks of KServe and the API server of Kubernetes do it: defaulting, schema
 * validation, validation of the values, and warnings for fields without an effect. Thread-safe if its {@link
 * AdmissionContext} are.
 *
 * <pre>{@code
 * Admission admission = new Admission(AdmissionContext.NONE);
 * Admission.Admitted admitted = admission.admit(ResourceKinds.INFERENCE_SERVICE, resource, null);
 * admitted.warnings().forEach(System.err::println);
 * }</pre>
 */
public final class Admission {
    /** The characters of generated names; without vowels, so that they do not form words. */
    private static final String LETTERS = "bcdfghjklmnpqrstvwxz2456789";

    private final AdmissionContext context;
    private final Site site;

    /**
     * Creates an admission for one machine, that validates against these configurations, runtimes and storage
     * containers.
     */
    public Admission(AdmissionContext context) {
        this(context, Site.ONE_MACHINE);
    }

    /** Creates an admission that validates against these resources, and warns about what has no effect at the site. */
    public Admission(AdmissionContext context, Site site) {
        this.context = context;
        this.site = site;
    }

    /**
     * Defaults and validates a resource.
     *
     * @param kind its kind, in the version in which it is submitted; the admitted resource has the stored version
     * @param resource the resource as submitted; not modified
     * @param old the stored resource; null on creation
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT with all validation errors, a line each
     */
    public Admitted admit(ResourceKind kind, ObjectNode resource, @Nullable ObjectNode old) {
        ResourceKind stored = ResourceKinds.byPlural(kind.group(), kind.plural());
        return admitStored(stored == null ? kind : stored, resource, old);
    }

    private Admitted admitStored(ResourceKind kind, ObjectNode resource, @Nullable ObjectNode old) {
        ObjectNode admitted = resource.deepCopy();
        List<String> warnings = new ArrayList<>();
        ValidationErrors problems = new ValidationErrors();
        FieldReader.prune(admitted);
        identity(kind, admitted, problems);
        metadata(kind, admitted, warnings);
        ResourceSchemas.of(kind).check(admitted, "", problems);
        String what = kind.kind() + " " + ValidationErrors.clip(nameOf(admitted));
        // Records can only be read from a resource whose types are right; further validation needs records.
        boolean readable = !problems.misshapen();
        if (readable) {
            ObjectMetaValidator.check(kind, ObjectMeta.read(admitted), problems);
            rules(kind, admitted, old, problems, warnings);
        }
        problems.throwIfAny(what);
        return new Admitted(admitted, List.copyOf(warnings));
    }

    private void rules(
            ResourceKind kind,
            ObjectNode admitted,
            @Nullable ObjectNode old,
            ValidationErrors problems,
            List<String> warnings) {
        if (kind.equals(ResourceKinds.INFERENCE_SERVICE)) {
            String namespace = ObjectMeta.read(admitted).namespace();
            InferenceServiceConfig config = context.config(namespace);
            InferenceServiceDefaulter.shadowedModels(admitted, old, warnings);
            ObjectNode before = InferenceServiceDefaulter.comparable(old);
            new InferenceServiceDefaulter(config).apply(admitted, before);
            DeploymentMode mode = new InferenceServiceValidator(context, problems).check(admitted, before);
            InferenceService service = InferenceService.read(admitted);
            site.refused(service, problems);
            site.service(service, mode, config, warnings);
        } else if (kind.equals(ResourceKinds.SERVING_RUNTIME) || kind.equals(ResourceKinds.CLUSTER_SERVING_RUNTIME)) {
            new ServingRuntimeValidator(context, problems).check(admitted, old);
            site.runtime(ServingRuntime.read(admitted), warnings);
        } else if (kind.equals(ResourceKinds.CLUSTER_STORAGE_CONTAINER)) {
            new ServingRuntimeValidator(context, problems).storageContainer(admitted);
            site.storageContainer(warnings);
        } else if (kind.equals(ResourceKinds.INFERENCE_GRAPH)) {
            new InferenceGraphValidator(context, problems, warnings).check(admitted);
            site.graph(InferenceGraph.read(admitted), warnings);
        } else if (kind.equals(ResourceKinds.LLM_INFERENCE_SERVICE)) {
            LanguageModelDefaulter.apply(admitted);
            new LanguageModelValidator(problems, warnings).service(admitted, old);
            warnings.add(site.languageModels());
        } else if (kind.equals(ResourceKinds.LLM_INFERENCE_SERVICE_CONFIG)) {
            new LanguageModelValidator(problems, warnings).config(admitted);
        } else if (kind.equals(ResourceKinds.TRAINED_MODEL)) {
            if (problems.lines().isEmpty()) {
                new TrainedModelValidator(site, problems).check(admitted, old);
            }
        } else if (ResourceKinds.isLocalModel(kind)) {
            // A quantity that cannot be parsed is a problem already.
            if (problems.lines().isEmpty()) {
                new LocalModelValidator(site, problems, warnings).check(kind, admitted, old);
            }
        } else {
            CoreKindAdmission.defaults(kind, admitted);
            CoreKindAdmission.check(kind, admitted, old, problems, warnings);
        }
    }

    private static void identity(ResourceKind kind, ObjectNode resource, ValidationErrors problems) {
        String version = resource.path("apiVersion").asText(kind.apiVersion());
        String name = resource.path("kind").asText(kind.kind());
        boolean alternate = kind.alternates().stream().anyMatch(one -> version.equals(kind.group() + "/" + one));
        if (!version.equals(kind.apiVersion()) && !alternate) {
            problems.add(
                    "apiVersion",
                    "expected " + kind.apiVersion() + ", found \"" + ValidationErrors.clip(version) + "\"");
        }
        if (!name.equals(kind.kind())) {
            problems.add("kind", "expected " + kind.kind() + ", found \"" + ValidationErrors.clip(name) + "\"");
        }
        resource.put("apiVersion", kind.apiVersion());
        resource.put("kind", kind.kind());
    }

    /** Defaults the namespace, and generates a name when {@code generateName} is given instead of one. */
    private static void metadata(ResourceKind kind, ObjectNode resource, List<String> warnings) {
        if (!(resource.get("metadata") instanceof ObjectNode meta)) {
            return;
        }
        if (kind.namespaced()) {
            if (meta.path("namespace").asText("").isEmpty()) {
                meta.put("namespace", "default");
            }
        } else if (meta.has("namespace")) {
            warnings.add("metadata.namespace has no effect: a " + kind.kind() + " is not namespaced");
            meta.remove("namespace");
        }
        String prefix = meta.path("generateName").asText("");
        if (!prefix.isEmpty() && meta.path("name").asText("").isEmpty()) {
            StringBuilder name = new StringBuilder(prefix);
            for (int i = 0; i < 5; i++) {
                name.append(LETTERS.charAt(ThreadLocalRandom.current().nextInt(LETTERS.length())));
            }
            meta.put("name", name.toString());
        }
    }

    private static String nameOf(ObjectNode resource) {
        String name = resource.path("metadata").path("name").asText("");
        return name.isEmpty() ? "without a name" : name;
    }

    /**
     * Whether anything except metadata and status differs, so that {@code metadata.generation} must be incremented.
     */
    public static boolean specChanged(ObjectNode before, ObjectNode after) {
        ObjectNode one = before.deepCopy();
        ObjectNode other = after.deepCopy();
        List<String> outside = List.of("metadata", "status", "apiVersion", "kind");
        return !one.remove(outside).equals(other.remove(outside));
    }

    /**
     * An admitted resource.
     *
     * @param resource the resource with defaults
     * @param warnings warnings for the user, such as fields that have no effect on one machine, a sentence each
     */
    public record Admitted(ObjectNode resource, List<String> warnings) {}
}
