// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.upgrade;

import io.nereid.base.ServingException;

/**
 * How new pod templates of an operator reach services that run. Immutable.
 *
 * @param version the version of the operator
 * @param budget how many services get a new template at the same time; 0 for none by itself
 */
public record UpgradeOptions(String version, int budget) {
    /**
     * One service at a time: a template that does not work stops at the first service, and a roll-out needs the surge of
     * one Deployment only, which is much where pods have GPUs.
     */
    public static final int DEFAULT_BUDGET = 1;

    /**
     * Checks the budget.
     *
     * @throws ServingException INVALID_ARGUMENT when it is negative
     */
    public UpgradeOptions {
        if (budget < 0) {
            throw ServingException.invalidArgument("--upgrade-budget must be 0 or a number of services, not " + budget);
        }
    }
}
