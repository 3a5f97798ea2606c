// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.QueuePolicy;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Reads {@code dynamic_batching} and its queue policies. Confined to one thread. */
final class DynamicBatchingReader {
    private final ConfigReadContext scope;

    DynamicBatchingReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    DynamicBatching batching(TypedMessage b, int maxBatchSize) {
        long levels = b.number("priority_levels");
        long defaultLevel = b.number("default_priority_level");
        Map<Long, QueuePolicy> queues = new LinkedHashMap<>();
        for (Value v : b.all("priority_queue_policy")) {
            long level = level(v.entry().key());
            if (levels > 0 && (level < 1 || level > levels)) {
                error(v.at(), "priority queue policy must have priority level in range [1, " + levels + "]");
            }
            if (v.entry().value() instanceof TypedMessage policy) {
                queues.put(level, policy(policy));
            }
        }
        if (levels > 0 && (defaultLevel < 1 || defaultLevel > levels)) {
            error(
                    b.place(b.has("default_priority_level") ? "default_priority_level" : "priority_levels"),
                    "default priority level must be in range [1, " + levels + "]");
        }
        if (levels == 0 && (b.has("priority_queue_policy") || defaultLevel > 0)) {
            scope.warning(
                    b.place(b.has("priority_queue_policy") ? "priority_queue_policy" : "default_priority_level"),
                    "priority settings have no effect without 'priority_levels'" + scope.forModel(),
                    "write priority_levels: 2, or however many there are");
        }
        if (b.flag("preserve_ordering")) {
            ordering(b, levels);
        }
        return new DynamicBatching(
                preferred(b, maxBatchSize, "dynamic batching preferred size"),
                ConfigReadContext.micros(b.number("max_queue_delay_microseconds")),
                b.flag("preserve_ordering"),
                levels,
                levels == 0 ? 0 : Math.max(1, Math.min(defaultLevel, levels)),
                levels == 0 ? Map.of() : Collections.unmodifiableMap(queues));
    }

    private static long level(String key) {
        try {
            return Long.parseLong(key);
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    private void ordering(TypedMessage b, long levels) {
        if (levels > 1) {
            error(b.place("priority_levels"), "Only one priority level is allowed when 'preserve_ordering' is true");
        }
        delay(b.message("default_queue_policy"));
        for (Value v : b.all("priority_queue_policy")) {
            if (v.entry().value() instanceof TypedMessage policy) {
                delay(policy);
            }
        }
    }

    private void delay(TypedMessage policy) {
        if (policy.text("timeout_action").equals("DELAY") && policy.number("default_timeout_microseconds") != 0) {
            error(
                    policy.place("timeout_action"),
                    "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true");
        }
    }

    private void error(SourcePosition at, String message) {
        scope.error(at, message + scope.forModel(), null);
    }

    /** Reads the preferred batch sizes, ascending. The maximum is checked only if it is known. */
    List<Integer> preferred(TypedMessage b, int maxBatchSize, String what) {
        TreeSet<Integer> preferred = new TreeSet<>();
        for (Value v : b.all("preferred_batch_size")) {
            if (v.number() <= 0) {
                error(v.at(), what + " must be positive");
            } else if (maxBatchSize >= 0 && v.number() > maxBatchSize) {
                scope.error(
                        v.at(),
                        what + " must be <= max batch size" + scope.forModel(),
                        "max_batch_size is " + maxBatchSize);
            } else {
                preferred.add((int) v.number());
            }
        }
        return List.copyOf(preferred);
    }

    /** Reads the queue policy. Fields that a given policy leaves out have Triton's defaults. */
    QueuePolicy queue(@Nullable Value given) {
        return given == null ? QueuePolicy.DEFAULT : policy(given.message());
    }

    private static QueuePolicy policy(TypedMessage q) {
        return new QueuePolicy(
                (int) Math.min(q.number("max_queue_size"), Integer.MAX_VALUE),
                ConfigReadContext.micros(q.number("default_timeout_microseconds")),
                q.flag("allow_timeout_override"),
                q.text("timeout_action").equals("DELAY")
                        ? QueuePolicy.TimeoutAction.DELAY
                        : QueuePolicy.TimeoutAction.REJECT);
    }
}
