// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

import io.nereid.backends.trees.forest.LinkFunction;
import io.nereid.base.ServingException;

/** XGBoost's training objectives by name: how raw scores become predictions, and the reverse. Stateless. */
final class XgboostObjective {
    private XgboostObjective() {}

    /**
     * The raw score of a prediction: the link function. Computed in floats, as in the library.
     *
     * @throws ServingException INVALID_ARGUMENT for a prediction that the objective cannot have
     */
    static float margin(String objective, float score) {
        switch (objective) {
            case "binary:logistic":
            case "reg:logistic":
                if (!(score > 0 && score < 1)) {
                    throw XgboostReader.bad(
                            "base score " + score + " of objective " + objective + " is not between 0 and 1");
                }
                return (float) -Math.log(1f / score - 1f);
            case "count:poisson":
            case "reg:gamma":
            case "reg:tweedie":
            case "survival:cox":
            case "survival:aft":
                return (float) Math.log(score);
            default:
                return score;
        }
    }

    /**
     * The inverse of the link function.
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown objective
     */
    static LinkFunction link(String objective) {
        switch (objective) {
            case "binary:logistic":
            case "reg:logistic":
                return LinkFunction.of(LinkFunction.Kind.LOGISTIC);
            case "count:poisson":
            case "reg:gamma":
            case "reg:tweedie":
            case "survival:cox":
            case "survival:aft":
                return LinkFunction.of(LinkFunction.Kind.EXP);
            case "binary:hinge":
                return LinkFunction.of(LinkFunction.Kind.STEP);
            case "multi:softmax":
                return LinkFunction.of(LinkFunction.Kind.GREATEST);
            case "multi:softprob":
                return LinkFunction.of(LinkFunction.Kind.SOFTMAX);
            case "binary:logitraw":
            case "reg:squarederror":
            case "reg:linear":
            case "reg:squaredlogerror":
            case "reg:pseudohubererror":
            case "reg:absoluteerror":
            case "reg:quantileerror":
            case "rank:ndcg":
            case "rank:map":
            case "rank:pairwise":
                return LinkFunction.IDENTITY;
            default:
                throw ServingException.invalidArgument(
                        "objective '" + XgboostReader.shortened(objective)
                                + "' is unknown, so its predictions cannot be computed",
                        "update the server, or set the objective of the saved model to one that is known");
        }
    }
}
