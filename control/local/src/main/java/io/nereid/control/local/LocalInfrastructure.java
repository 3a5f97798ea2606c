// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.Clock;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.Observed;
import io.nereid.control.core.Plan;
import io.nereid.spi.ServableState;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/** Makes plans true on this machine. Thread-safe. */
public final class LocalInfrastructure implements Infrastructure {
    /** Starts nothing yet. */
    public LocalInfrastructure(
            LocalSettings settings, Models models, Artifacts artifacts, BuiltIns builtIns, Front front, Clock clock) {}

    /** Ends what an earlier server left running, and begins to scale. */
    public void start() {}

    /** To be told every state of the engine's models. Returns at once. */
    public void modelState(ServableState state) {}

    @Override
    public void apply(String namespace, String service, Plan plan) {}

    @Override
    public Map<String, Observed.State> observe(String namespace, String service) {
        return Map.of();
    }

    @Override
    public void onChange(BiConsumer<String, String> listener) {}

    @Override
    public List<String> logs(String namespace, String revision, int most) {
        return List.of();
    }

    @Override
    public void close() {}
}
