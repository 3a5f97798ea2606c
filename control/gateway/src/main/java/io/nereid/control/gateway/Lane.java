// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Target;
import io.nereid.transport.api.VirtualHosts.Head;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.BiFunction;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/** One component of a service: the revisions among which its requests are shared. Immutable. */
final class Lane {
    private final GateSlot[] slots;

    /** The sum of the shares up to each revision. */
    private final int[] upTo;

    private final List<Target> tagged;
    private final List<GateSlot> taggedSlots;
    private final @Nullable String stickyHeader;
    final List<Mirror> mirrors;

    Lane(String namespace, Route.Backend backend, BiFunction<String, String, GateSlot> slot) {
        List<Target> targets = backend.targets();
        this.slots = new GateSlot[targets.size()];
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
        List<Mirror> copies = new ArrayList<>();
        for (Target mirror : backend.mirrors()) {
            GateSlot to = slot.apply(namespace, mirror.revision());
            copies.add(new Mirror(to, mirror.percent()));
            tag(mirror, to);
        }
        this.mirrors = List.copyOf(copies);
        String sticky = backend.stickyHeader();
        this.stickyHeader = sticky == null ? null : sticky.toLowerCase(Locale.ROOT);
    }

    private void tag(Target target, GateSlot slot) {
        if (target.tag() != null) {
            tagged.add(target);
            taggedSlots.add(slot);
        }
    }

    /** The revisions with a share. */
    List<GateSlot> targets() {
        return List.of(slots);
    }

    /** The revisions of a tag; null when no revision has it. */
    @Nullable
    GateSlot tagged(String tag) {
        for (int i = 0; i < tagged.size(); i++) {
            if (tag.equals(tagged.get(i).tag())) {
                return taggedSlots.get(i);
            }
        }
        return null;
    }

    /** The revision whose turn it is; one that cannot serve at all is passed over for another that has a share. */
    GateSlot pick(Head head, IntUnaryOperator chance) {
        GateSlot chosen = slots.length == 1 ? slots[0] : slots[draw(head, chance)];
        RevisionGate gate = chosen.gate();
        if (slots.length > 1 && (gate == null || !gate.usable())) {
            int before = 0;
            for (int i = 0; i < slots.length; i++) {
                RevisionGate other = slots[i].gate();
                if (upTo[i] > before && other != null && other.usable()) {
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

    /** Texts that differ a little shall not have shares that lie close together. */
    private static int mixed(int hash) {
        int h = hash;
        h = (h ^ (h >>> 16)) * 0x85ebca6b;
        h = (h ^ (h >>> 13)) * 0xc2b2ae35;
        return h ^ (h >>> 16);
    }
}
