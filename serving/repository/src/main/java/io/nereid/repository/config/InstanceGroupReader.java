// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.InstanceGroup.Resource;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reads {@code instance_group} with its rate limiter resources. Confined to one thread. */
final class InstanceGroupReader {
    /** What to do about a GPU that the server does not have. */
    static final String NO_GPU = "use KIND_CPU or KIND_AUTO, or serve it on a machine with a GPU and the plugin cuda";

    private static final int MAX_INSTANCES = 1024;

    private final ConfigReadContext scope;
    private final boolean plan;

    /** @param plan whether the model is a plan of TensorRT */
    InstanceGroupReader(ConfigReadContext scope, boolean plan) {
        this.scope = scope;
        this.plan = plan;
    }

    List<InstanceGroup> read(List<Value> given) {
        List<InstanceGroup> groups = new ArrayList<>();
        for (Value v : given) {
            groups.add(group(v.message(), groups.size()));
        }
        return List.copyOf(groups);
    }

    private InstanceGroup group(TypedMessage g, int index) {
        String name = g.text("name").isEmpty() ? scope.model() + "_" + index : g.text("name");
        String who = "instance group " + name + " of model " + scope.model() + " ";
        Kind kind = g.text("kind").isEmpty()
                ? Kind.AUTO
                : Kind.valueOf(g.text("kind").substring(5));
        GpuInventory gpus = scope.gpus();
        if (kind == Kind.GPU && !gpus.supported()) {
            error(g.place("kind"), who + "has kind KIND_GPU but server does not support GPUs", NO_GPU);
        } else if (kind == Kind.GPU && gpus.checked() && gpus.usable().isEmpty()) {
            error(g.place("kind"), who + "has kind KIND_GPU but no GPUs are available", "use KIND_CPU or KIND_AUTO");
        }
        boolean processors = kind == Kind.CPU || (kind == Kind.AUTO && !gpus.supported());
        if (g.has("gpus") && (processors || kind == Kind.MODEL)) {
            error(
                    g.place("gpus"),
                    who + "has kind KIND_" + (processors ? "CPU" : "MODEL") + " but specifies one or more GPUs",
                    kind == Kind.AUTO ? "this server does not support GPUs, remove 'gpus'" : "remove 'gpus'");
        }
        if (gpus.checked() && gpus.supported() && !processors && kind != Kind.MODEL) {
            for (Value v : g.all("gpus")) {
                if (gpus.find((int) v.number()) == null) {
                    error(v.at(), who + gpus.invalid((int) v.number()), "name one of these, or none for all");
                }
            }
        }
        if (plan) {
            for (Value v : g.all("profile")) {
                if (!v.text().equals("0")) {
                    error(
                            v.at(),
                            who + "has profile '" + v.text()
                                    + "' (expected: 0), ONNX Runtime runs a plan with its first"
                                    + " optimization profile",
                            "compile the plan with the shapes of this profile as the first one");
                }
            }
        } else if (g.has("profile")) {
            error(
                    g.place("profile"),
                    who + "specifies profile field which is only supported for TensorRT models",
                    "remove 'profile'");
        }
        long count = g.number("count");
        if (count < 0 || count > MAX_INSTANCES) {
            error(g.place("count"), who + "has count " + count + " (expected: 1 to " + MAX_INSTANCES + ")", null);
        }
        TypedMessage limiter = g.message("rate_limiter");
        return new InstanceGroup(
                name,
                kind,
                (int) Math.max(1, Math.min(count, MAX_INSTANCES)),
                g.all("gpus").stream().map(v -> (int) v.number()).toList(),
                g.flag("passive"),
                g.text("host_policy"),
                resources(limiter.all("resources"), who),
                (int) Math.min(limiter.number("priority"), Integer.MAX_VALUE));
    }

    private List<Resource> resources(List<Value> given, String who) {
        List<Resource> resources = new ArrayList<>();
        for (Value v : given) {
            TypedMessage r = v.message();
            if (r.text("name").isEmpty() && !r.faulty().contains("name")) {
                error(v.at(), who + "has a rate limiter resource without 'name'", "give it a name");
            }
            resources.add(new Resource(
                    r.text("name"), r.flag("global"), (int) Math.min(r.number("count"), Integer.MAX_VALUE)));
        }
        return List.copyOf(resources);
    }

    private void error(SourcePosition at, String message, @Nullable String remedy) {
        scope.error(at, message, remedy);
    }
}
