// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Reports to the gateways which pods have a model. Implementations are thread-safe and do not block. */
interface PoolTables {
    /**
     * Writes the pods of a model. Calls for one service are carried out in their order.
     *
     * @param followed whether to end only when the gateways send no more requests to other pods
     */
    CompletionStage<Void> publish(PooledService service, List<Holder> holders, boolean followed);
}
