// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.waiters;

import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState.Phase;
import java.util.Map;

/**
 * The result of {@code ServableManager.waitUntil}. Immutable.
 *
 * @param all whether all references have reached the phase
 * @param phases the phase of each version when it reached the goal or its end, or at the timeout
 */
public record WaitResult(boolean all, Map<ServableId, Phase> phases) {}
