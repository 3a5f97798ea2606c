// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.BuiltInExplainer;
import io.nereid.control.api.InferenceService.BuiltInTransformer;
import io.nereid.control.api.InferenceService.ExplainerSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.api.InferenceService.TransformerSpec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.component.BuiltInExplainers;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The container of a transformer or explainer that Nereid runs itself: {@code nereid transformer} or {@code nereid
 * explainer} of the installation's image, with the files that one machine fetches for it. Stateless.
 */
final class OwnComponent {
    private static final Pattern FILE = Pattern.compile(".*\\.(jar|py|json|csv|npy)");
    private static final String CLAIM = "pvc://";

    /** The method that needs the model itself, not its predictions. */
    private static final String TREES = "tree_shap";

    private OwnComponent() {}

    /**
     * Adds the container to the pod of a component that Nereid runs; other components stay as they are.
     *
     * @return whether it is one
     * @throws ServingException FAILED_PRECONDITION if the installation has no image for it
     */
    static boolean complete(ObjectNode pod, ComponentPlan plan, PlanningContext context) {
        BuiltInTransformer transformer = transformer(plan, context);
        if (transformer != null) {
            List<String> args = new ArrayList<>();
            option(args, "--class", transformer.className());
            option(args, "--file", transformer.file() == null ? file(plan) : transformer.file());
            option(args, "--config", config(transformer.config()));
            add(pod, plan, context, "transformer", args, null);
            return true;
        }
        ExplainerSpec spec = plan.component() == Component.EXPLAINER ? context.service.explainer() : null;
        BuiltInExplainer explainer = spec == null ? null : BuiltInExplainers.of(plan, spec);
        if (explainer != null) {
            if (explainer.method().equals(TREES)) {
                throw ServingException.invalidArgument(plan.where() + ": the method " + TREES
                        + " needs the trees of the model, which an explainer in a pod of its own does not have; use the"
                        + " method shap, or call :explain at the predictor's host");
            }
            Map<String, String> config = new TreeMap<>(explainer.config());
            String file = file(plan);
            if (file != null) {
                config.putIfAbsent("background", file);
            }
            List<String> args = new ArrayList<>();
            option(args, "--method", explainer.method());
            option(args, "--config", config(config));
            List<Container> containers = plan.pod().containers();
            add(
                    pod,
                    plan,
                    context,
                    "explainer",
                    args,
                    containers.isEmpty() ? null : BuiltInExplainers.main(containers));
        }
        return explainer != null;
    }

    private static @Nullable BuiltInTransformer transformer(ComponentPlan plan, PlanningContext context) {
        TransformerSpec spec = plan.component() == Component.TRANSFORMER ? context.service.transformer() : null;
        return spec == null ? null : spec.builtIn();
    }

    private static void add(
            ObjectNode pod,
            ComponentPlan plan,
            PlanningContext context,
            String command,
            List<String> more,
            @Nullable Container own) {
        String image = context.config.tree().path("nereid").path("image").asText("");
        if (image.isEmpty()) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    plan.where() + ": the settings name no image of Nereid, which runs this " + command,
                    "set nereid: {\"image\": …} in inferenceservice-config, or give the " + command + " as containers");
        }
        ObjectNode all = BuiltInRuntimes.pod(image);
        ObjectNode container = (ObjectNode) all.path("containers").path(0);
        List<String> args = new ArrayList<>(List.of("--host=0.0.0.0", "--grace-period=5s", "--drain-timeout=300s"));
        for (var artifact : plan.artifacts()) {
            args.add("--dir=" + artifact.mountPath() + within(plan, artifact.uri()));
        }
        args.addAll(more);
        if (command.equals("transformer")) {
            args.add("--grpc_port=8081");
            Trees.list(container, "ports")
                    .addObject()
                    .put("name", "grpc")
                    .put("containerPort", 8081)
                    .put("protocol", "TCP");
        }
        Trees.texts(container, "command", List.of("nereid", command));
        Trees.texts(container, "args", args);
        probe(container, "startupProbe", "/readyz");
        probe(container, "readinessProbe", "/readyz");
        probe(container, "livenessProbe", "/healthz");
        resources(container, context);
        if (own != null) {
            keep(container, own);
        }
        ArrayNode containers = Trees.list(pod, "containers");
        int index = index(containers, own);
        if (index < 0) {
            containers.insert(0, container);
        } else {
            containers.set(index, container);
        }
        all.path("volumes").forEach(volume -> Trees.addNamed(pod, "volumes", (ObjectNode) volume));
    }

    private static int index(ArrayNode containers, @Nullable Container own) {
        for (int i = 0; own != null && i < containers.size(); i++) {
            if (containers.get(i).path("name").asText().equals(own.name())) {
                return i;
            }
        }
        return -1;
    }

    /** What the resource says of its container stays, but for what makes it a component of Nereid. */
    private static void keep(ObjectNode container, Container own) {
        own.tree().properties().forEach(field -> {
            switch (field.getKey()) {
                case "image", "command", "args", "ports" -> {}
                case "volumeMounts", "env" ->
                    Trees.list(container, field.getKey()).addAll((ArrayNode) field.getValue());
                default -> container.set(field.getKey(), field.getValue().deepCopy());
            }
        });
    }

    private static void probe(ObjectNode container, String name, String path) {
        ((ObjectNode) container.path(name).path("httpGet")).put("path", path);
    }

    private static void resources(ObjectNode container, PlanningContext context) {
        var usual = context.config.inferenceService().defaultResources();
        ObjectNode resources = container.putObject("resources");
        Trees.map(resources, "limits", usual.limits());
        Trees.map(resources, "requests", usual.requests());
    }

    private static void option(List<String> args, String name, @Nullable String value) {
        if (value != null && !value.isEmpty()) {
            // Kubernetes would replace $(NAME) by a variable.
            args.add(name + "=" + value.replace("$(", "$$("));
        }
    }

    private static @Nullable String config(Map<String, String> config) {
        if (config.isEmpty()) {
            return null;
        }
        ObjectNode tree = Trees.object();
        new TreeMap<>(config).forEach(tree::put);
        return tree.toString();
    }

    /** The {@code storageUri} of a component that Nereid runs; empty for none. */
    private static String uri(ComponentPlan plan, PlanningContext context) {
        BuiltInTransformer transformer = transformer(plan, context);
        if (transformer != null) {
            return transformer.storageUri();
        }
        ExplainerSpec spec = plan.component() == Component.EXPLAINER ? context.service.explainer() : null;
        BuiltInExplainer explainer = spec == null ? null : spec.builtIn();
        return explainer == null || explainer.storageUri() == null ? "" : explainer.storageUri();
    }

    /**
     * The URI of the files that are fetched to, or mounted at, the usual path; empty for none, or where there are further
     * ones.
     */
    static String sourceUri(ComponentPlan plan, PlanningContext context) {
        return others(plan) ? "" : directory(uri(plan, context));
    }

    /** All files of the component and their paths, where there are several; else the given ones. */
    static List<StorageUri> storageUris(ComponentPlan plan, PlanningContext context, List<StorageUri> given) {
        String uri = uri(plan, context);
        if (given.isEmpty() || uri.isEmpty()) {
            return given;
        }
        List<StorageUri> all = new ArrayList<>();
        all.add(new StorageUri(directory(uri), PodNames.MODELS));
        all.addAll(given);
        return all;
    }

    private static boolean others(ComponentPlan plan) {
        JsonNode uris = plan.tree().path("storageUris");
        return !uris.isEmpty();
    }

    /** A file of a claim is mounted with its directory, since a mount has the name of its path. */
    private static String directory(String uri) {
        int slash = uri.lastIndexOf('/');
        return isFileOfClaim(uri) ? uri.substring(0, slash) : uri;
    }

    private static boolean isFileOfClaim(String uri) {
        return uri.startsWith(CLAIM)
                && uri.indexOf('/', CLAIM.length()) >= 0
                && FILE.matcher(uri).matches();
    }

    /** The file of a claim that the component's own URI names; null for none. */
    private static @Nullable String file(ComponentPlan plan) {
        String uri = plan.artifacts().isEmpty() ? "" : plan.artifacts().get(0).uri();
        return isFileOfClaim(uri) ? uri.substring(uri.lastIndexOf('/') + 1) : null;
    }

    /** The path within a claim that is mounted as a whole, as several claims are. */
    private static String within(ComponentPlan plan, String uri) {
        if (!others(plan) || !uri.startsWith(CLAIM)) {
            return "";
        }
        String path = directory(uri);
        int slash = path.indexOf('/', CLAIM.length());
        return slash < 0 ? "" : path.substring(slash);
    }
}
