// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.schema;

import static io.nereid.control.api.schema.StructuralSchema.QUANTITY;
import static io.nereid.control.api.schema.StructuralSchema.TEXT;
import static io.nereid.control.api.schema.StructuralSchema.TEXTS;
import static io.nereid.control.api.schema.StructuralSchema.TEXT_LIST;
import static io.nereid.control.api.schema.StructuralSchema.TREE;
import static io.nereid.control.api.schema.StructuralSchema.list;
import static io.nereid.control.api.schema.StructuralSchema.object;

import io.nereid.control.api.schema.StructuralSchema.Shape;

/** The structural schemas of KServe's kinds for models that are downloaded in advance. Immutable. */
final class LocalModelSchemas {
    private static final Shape STORAGE = object().with(TEXT, "key").with(TEXTS, "parameters");

    static final Shape CACHE = ResourceSchemas.resource(object().with(TEXT, "sourceModelUri", "serviceAccountName")
                    .with(QUANTITY, "modelSize")
                    .with(TEXT_LIST, "nodeGroups")
                    .with(STORAGE, "storage")
                    .required("sourceModelUri", "modelSize", "nodeGroups"))
            .with(TREE, "status");

    static final Shape NODE_GROUP = ResourceSchemas.resource(object().with(QUANTITY, "storageLimit")
                    .with(TREE, "persistentVolumeSpec", "persistentVolumeClaimSpec")
                    .required("storageLimit", "persistentVolumeSpec", "persistentVolumeClaimSpec"))
            .with(TREE, "status");

    static final Shape NODE = ResourceSchemas.resource(object().with(
                            list(object().with(
                                            TEXT,
                                            "sourceModelUri",
                                            "modelName",
                                            "namespace",
                                            "nodeGroup",
                                            "serviceAccountName")
                                    .with(QUANTITY, "modelSize")
                                    .with(STORAGE, "storage")
                                    .required("sourceModelUri", "modelName")),
                            "localModels")
                    .required("localModels"))
            .with(TREE, "status");

    private LocalModelSchemas() {}
}
