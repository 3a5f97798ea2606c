// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.component.NvidiaResources;
import io.nereid.control.local.spi.LocalGpu;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/**
 * Which service has which GPUs of this machine. A GPU belongs to one service at a time; a new revision gets GPUs of an
 * older one of its service when no others are left, since the older one ends only when the new one is ready. Confined to
 * the event loop thread.
 */
public final class GpuGrants {
    private final Supplier<List<LocalGpu>> gpus;
    private final List<Grant> grants = new ArrayList<>();

    /**
     * GPUs of one replica. Immutable.
     *
     * @param service the service as {@code namespace/name}
     * @param revision its revision
     * @param gpus the GPUs in the order of their numbers
     */
    public record Grant(String service, String revision, List<LocalGpu> gpus) {
        /** The numbers of the GPUs in this server. */
        public List<Integer> ordinals() {
            return gpus.stream().map(LocalGpu::ordinal).toList();
        }

        /** The value of {@code CUDA_VISIBLE_DEVICES} for a process that sees these GPUs alone. */
        public String visible() {
            return String.join(",", gpus.stream().map(LocalGpu::uuid).toList());
        }
    }

    /**
     * Creates the grants of a machine, none at first.
     *
     * @param gpus the GPUs that can be used now; does not block
     */
    public GpuGrants(Supplier<List<LocalGpu>> gpus) {
        this.gpus = gpus;
    }

    /**
     * Takes GPUs, which the caller gives back with {@link #release}.
     *
     * @param needed not empty
     * @throws ServingException FAILED_PRECONDITION when the machine has fewer, RESOURCE_EXHAUSTED when other services have
     *     them; nothing is taken then
     */
    public Grant take(String service, String revision, NvidiaResources needed) {
        List<LocalGpu> all = gpus.get();
        List<LocalGpu> taken = new ArrayList<>();
        for (Map.Entry<String, Integer> one : needed.counts().entrySet()) {
            String resource = one.getKey();
            List<LocalGpu> fitting = all.stream()
                    .filter(gpu -> NvidiaResources.offers(resource, gpu.name()))
                    .toList();
            if (fitting.size() < one.getValue()) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "the service needs " + one.getValue() + " of " + resource + ", and this machine has "
                                + fitting.size() + described(all),
                        all.isEmpty()
                                ? "remove the limit, or use a machine with GPUs and the plugin cuda"
                                : "lower the limit to what the machine has");
            }
            List<LocalGpu> free = new ArrayList<>(
                    fitting.stream().filter(gpu -> holders(gpu).isEmpty()).toList());
            int unused = free.size();
            fitting.stream()
                    .filter(gpu -> !holders(gpu).isEmpty()
                            && holders(gpu).stream()
                                    .allMatch(grant -> grant.service().equals(service)
                                            && !grant.revision().equals(revision)))
                    .forEach(free::add);
            if (free.size() < one.getValue()) {
                Set<String> holders = new LinkedHashSet<>();
                fitting.forEach(gpu -> holders(gpu).forEach(grant -> holders.add(grant.service())));
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "the service needs " + one.getValue() + " of " + resource + ", and " + unused + " of "
                                + fitting.size() + " are free: the others belong to " + String.join(", ", holders),
                        "remove one of these services, or lower its limit or number of replicas");
            }
            taken.addAll(free.subList(0, one.getValue()));
        }
        taken.sort((a, b) -> Integer.compare(a.ordinal(), b.ordinal()));
        Grant grant = new Grant(service, revision, List.copyOf(taken));
        grants.add(grant);
        return grant;
    }

    /** Gives GPUs back; nothing happens when they have been given back before. */
    public void release(Grant grant) {
        grants.remove(grant);
    }

    private List<Grant> holders(LocalGpu gpu) {
        return grants.stream()
                .filter(grant ->
                        grant.gpus().stream().anyMatch(one -> one.uuid().equals(gpu.uuid())))
                .toList();
    }

    private static String described(List<LocalGpu> all) {
        return all.isEmpty()
                ? ""
                : "; its GPUs are "
                        + String.join(", ", all.stream().map(LocalGpu::name).toList());
    }
}
