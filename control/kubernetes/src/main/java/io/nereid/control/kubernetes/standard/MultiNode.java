// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import io.nereid.control.core.component.ComponentPlan;
import io.nereid.control.core.component.ComponentPlan.Workers;
import io.nereid.control.core.component.PlanningContext;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodNames;
import java.util.Map;
import java.util.Set;

/**
 * Divides a model among the GPUs of several nodes: how many nodes, how many GPUs each, and the variables by which they
 * find each other. Stateless.
 *
 * @param nodes the number of nodes, the head among them
 * @param workerGpus GPUs of a worker
 * @param headGpus GPUs of the head
 */
record MultiNode(int nodes, int workerGpus, int headGpus) {
    /**
     * Divides the model.
     *
     * @throws ServingException INVALID_ARGUMENT when the nodes have fewer GPUs than the model needs
     */
    static MultiNode of(ComponentPlan plan, Workers workers, PlanningContext context) {
        if ("mp".equals(plan.runtimeAnnotations().get("multinode/executor-backend"))) {
            int size = workers.tensorParallelSize();
            return new MultiNode(workers.pipelineParallelSize(), size, size);
        }
        int total = workers.tensorParallelSize() * workers.pipelineParallelSize();
        Set<String> names = context.gpuResources();
        int head = gpus(plan.pod().tree(), names);
        int worker = gpus(workers.pod().tree(), names);
        MultiNode division;
        if (worker > 0) {
            int nodes = up(total, worker);
            int headGpus = head == 0 ? total - worker * (nodes - 1) : head;
            if (head > 0 && up(total, head) == 1) {
                nodes = 1;
            }
            division = nodes == 1 ? new MultiNode(1, 0, total) : new MultiNode(nodes, worker, headGpus);
        } else if (head > 0) {
            int rest = total - head;
            division = new MultiNode(rest > 0 ? rest + 1 : 1, 1, head);
        } else {
            return new MultiNode(total, 1, 1);
        }
        if (total > division.headGpus + division.workerGpus * (division.nodes - 1)) {
            throw ServingException.invalidArgument(plan.where() + ".workerSpec: the model needs " + total
                    + " GPUs (tensorParallelSize * pipelineParallelSize), and head and workers have "
                    + (division.headGpus + division.workerGpus * (division.nodes - 1))
                    + "; raise their resources, or lower the sizes");
        }
        return division;
    }

    /** Sets the variables and the GPUs of head and workers. */
    void apply(
            ObjectNode head,
            ObjectNode worker,
            Workers workers,
            PlanningContext context,
            Map<String, String> annotations,
            String predictor,
            String generation) {
        ObjectNode main = container(head, PodNames.MAIN);
        ObjectNode other = container(worker, PodNames.WORKER);
        for (ObjectNode one : new ObjectNode[] {main, other}) {
            Trees.setEnv(one, "PIPELINE_PARALLEL_SIZE", Integer.toString(workers.pipelineParallelSize()));
            Trees.setEnv(one, "TENSOR_PARALLEL_SIZE", Integer.toString(workers.tensorParallelSize()));
            Trees.setEnv(one, "RAY_NODE_COUNT", Integer.toString(nodes));
            Trees.setEnv(one, "REQUEST_GPU_COUNT", Integer.toString(one == main ? headGpus : workerGpus));
        }
        Trees.setEnv(main, "MODEL_NAME", context.name());
        String uri = annotations.getOrDefault(PodNames.SOURCE_URI, "");
        if (uri.startsWith("pvc://") || uri.startsWith("oci://")) {
            Trees.setEnv(main, "MODEL_DIR", PodNames.MODELS);
        }
        Trees.setEnv(other, "ISVC_NAME", context.name());
        Trees.setEnv(other, "HEAD_SVC", headService(context.name(), generation));
        Trees.setEnv(other, "WORKER_SVC", workerService(predictor, generation));
        Set<String> names = context.gpuResources();
        resources(main, headGpus, names);
        resources(other, workerGpus, names);
    }

    static String headService(String predictor, String generation) {
        return base(predictor) + "-head-" + generation;
    }

    static String workerService(String predictor, String generation) {
        return base(predictor) + "-workers-" + generation;
    }

    private static String base(String predictor) {
        return predictor.endsWith("-predictor")
                ? predictor.substring(0, predictor.length() - "-predictor".length())
                : predictor;
    }

    private static void resources(ObjectNode container, int gpus, Set<String> names) {
        ObjectNode resources = Trees.object(container, "resources");
        String resource = "nvidia.com/gpu";
        for (String name : names) {
            if (resources.path("limits").has(name) || resources.path("requests").has(name)) {
                resource = name;
                break;
            }
        }
        Trees.object(resources, "limits").put(resource, Integer.toString(gpus));
        Trees.object(resources, "requests").put(resource, Integer.toString(gpus));
    }

    private static ObjectNode container(ObjectNode pod, String name) {
        ObjectNode found = Trees.named(pod.path("containers"), name);
        if (found == null) {
            throw ServingException.invalidArgument("the runtime has no container named " + name + "; give it one");
        }
        return found;
    }

    private static int gpus(ObjectNode pod, Set<String> names) {
        JsonNode requests = pod.path("containers").path(0).path("resources").path("requests");
        for (String name : names) {
            if (requests.has(name)) {
                return (int) Quantity.parse(requests.path(name).asText()).units();
            }
        }
        return 0;
    }

    private static int up(int total, int part) {
        return (total + part - 1) / part;
    }
}
