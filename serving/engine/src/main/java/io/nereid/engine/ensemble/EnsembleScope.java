// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.engine.ensemble.EnsembleGraph.Plan;
import io.nereid.engine.ensemble.EnsembleGraph.Port;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.tensor.Tensor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The tensors and steps of one scope of one request: the whole request, or one response of the decoupled step that
 * opens the scope. Guarded by the lock of its {@link EnsembleExecution}.
 */
final class EnsembleScope {
    final int scope;
    final @Nullable Tensor[] tensors;
    final byte[] states;
    final int[] pending;
    final int[] uses;
    int unsettled;
    boolean done;
    Map<String, Object> parameters = Map.of();

    /** By tensor: its sequence, where that is not the request's. Null while there is none. */
    @Nullable SequenceFlags @Nullable [] sequences;

    @Nullable EnsembleResponse answer;

    EnsembleScope(Plan plan, int scope) {
        this.scope = scope;
        this.tensors = new Tensor[plan.uses.length];
        this.states = new byte[tensors.length];
        this.pending = plan.pending.clone();
        this.uses = plan.uses.clone();
        this.unsettled = plan.scopeSteps[scope];
    }

    /** Records that one reader has read a tensor; the last reader closes it. */
    void used(int tensor) {
        if (--uses[tensor] == 0) {
            Tensor value = tensors[tensor];
            tensors[tensor] = null;
            if (value != null) {
                value.close();
            }
        }
    }

    /** Records the sequence of a step's outputs. */
    void sequence(List<Port> outputs, @Nullable SequenceFlags sequence, @Nullable SequenceFlags whole) {
        if (sequence == whole) {
            return;
        }
        @Nullable SequenceFlags[] all = sequences;
        if (all == null) {
            all = new SequenceFlags[tensors.length];
            Arrays.fill(all, whole);
            sequences = all;
        }
        for (Port output : outputs) {
            all[output.tensor()] = sequence;
        }
    }

    /** The sequence of a tensor. */
    @Nullable SequenceFlags sequence(int tensor, @Nullable SequenceFlags whole) {
        @Nullable SequenceFlags[] all = sequences;
        return all == null ? whole : all[tensor];
    }

    void take(Map<String, Object> more) {
        if (!more.isEmpty()) {
            Map<String, Object> all = new HashMap<>(parameters);
            all.putAll(more);
            parameters = all;
        }
    }

    void clear() {
        for (int i = 0; i < tensors.length; i++) {
            Tensor value = tensors[i];
            tensors[i] = null;
            if (value != null) {
                value.close();
            }
        }
    }
}
