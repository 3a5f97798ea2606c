// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Target;
import io.nereid.control.gateway.activator.ActivatorSlot;
import io.nereid.control.gateway.activator.MirrorTarget;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.transport.api.VirtualHosts.Head;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.BiFunction;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * One component of a service: the revisions that its requests are split over, by percent, tag and sticky header.
 * Immutable.
 */
final class TrafficSplit {
    private final ActivatorSlot[] slots;

    /** The cumulative percentages. */
    private final int[] upTo;

    private final List<Target> tagged;
    private final List<ActivatorSlot> taggedSlots;
    private final @Nullable String stickyHeader;
    final List<MirrorTarget> mirrors;

    TrafficSplit(String namespace, Route.Backend backend, BiFunction<String, String, ActivatorSlot> slot) {
        List<Target> targets = backend.targets();
        this.slots = new ActivatorSlot[targets.size()];
        this.upTo = new int[targets.size()];
        this.tagged = new ArrayList<>();
        this.taggedSlots = new ArrayList<>();
        int sum = 0;
        for (int i = 0; i < slots.length; i++) {
            Target target = targets.get(i);
            slots[i] = slot.apply(namespace, target.revision());
            sum += target.percent();
            upTo[i] = sum;
            tag(target, slots[i]);
        }
        List<MirrorTarget> copies = new ArrayList<>();
        for (Target mirror : backend.mirrors()) {
            ActivatorSlot to = slot.apply(namespace, mirror.revision());
            copies.add(new MirrorTarget(to, mirror.percent()));
            tag(mirror, to);
        }
        this.mirrors = List.copyOf(copies);
        String sticky = backend.stickyHeader();
        this.stickyHeader = sticky == null ? null : sticky.toLowerCase(Locale.ROOT);
    }

    private void tag(Target target, ActivatorSlot slot) {
        if (target.tag() != null) {
            tagged.add(target);
            taggedSlots.add(slot);
        }
    }

    /** The revisions with a share of the traffic. */
    List<ActivatorSlot> targets() {
        return List.of(slots);
    }

    /** The revision with a tag, or null. */
    @Nullable ActivatorSlot tagged(String tag) {
        for (int i = 0; i < tagged.size(); i++) {
            if (tag.equals(tagged.get(i).tag())) {
                return taggedSlots.get(i);
            }
        }
        return null;
    }

    /** Picks the revision for a request. A revision that cannot serve is replaced by another one that has a share. */
    ActivatorSlot pick(Head head, IntUnaryOperator chance) {
        ActivatorSlot chosen = slots.length == 1 ? slots[0] : slots[draw(head, chance)];
        RevisionActivator activator = chosen.activator();
        if (slots.length > 1 && (activator == null || !activator.accepts())) {
            int before = 0;
            for (int i = 0; i < slots.length; i++) {
                RevisionActivator other = slots[i].activator();
                if (upTo[i] > before && other != null && other.accepts()) {
                    return slots[i];
                }
                before = upTo[i];
            }
        }
        return chosen;
    }

    private int draw(Head head, IntUnaryOperator chance) {
        int all = upTo[upTo.length - 1];
        if (all <= 0) {
            return 0;
        }
        String value = stickyHeader == null ? null : head.header(stickyHeader);
        int at = value == null ? chance.applyAsInt(all) : Math.floorMod(mixed(value.hashCode()), all);
        int i = 0;
        while (at >= upTo[i]) {
            i++;
        }
        return i;
    }

    /** Mixes the bits (MurmurHash3's finaliser), so that similar header values are spread over the shares. */
    private static int mixed(int hash) {
        int h = hash;
        h = (h ^ (h >>> 16)) * 0x85ebca6b;
        h = (h ^ (h >>> 13)) * 0xc2b2ae35;
        return h ^ (h >>> 16);
    }
}
