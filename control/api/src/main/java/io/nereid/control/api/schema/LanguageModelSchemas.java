// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.schema;

import static io.nereid.control.api.schema.StructuralSchema.ANY;
import static io.nereid.control.api.schema.StructuralSchema.FLAG;
import static io.nereid.control.api.schema.StructuralSchema.INT;
import static io.nereid.control.api.schema.StructuralSchema.PORT;
import static io.nereid.control.api.schema.StructuralSchema.QUANTITY;
import static io.nereid.control.api.schema.StructuralSchema.TEXT;
import static io.nereid.control.api.schema.StructuralSchema.TEXTS;
import static io.nereid.control.api.schema.StructuralSchema.TREE;
import static io.nereid.control.api.schema.StructuralSchema.enumOf;
import static io.nereid.control.api.schema.StructuralSchema.integer;
import static io.nereid.control.api.schema.StructuralSchema.list;
import static io.nereid.control.api.schema.StructuralSchema.object;

import io.nereid.control.api.schema.StructuralSchema.Shape;

/**
 * The structural schemas of KServe's LLMInferenceService and LLMInferenceServiceConfig. One schema serves both versions,
 * {@code v1alpha1} and {@code v1alpha2}: it has the fields of both. Pods are folded: five of them with all their fields
 * would make the definition larger than an annotation can be. Immutable.
 */
final class LanguageModelSchemas {
    private static final StructuralSchema POSITIVE = integer(1, Integer.MAX_VALUE);
    private static final StructuralSchema COUNT = integer(0, Integer.MAX_VALUE);

    private static final Shape POD = PodSchemas.POD.folded();

    private static final Shape REF = object().with(TEXT, "name");

    private static final Shape OBJECT_REF = object().with(TEXT, "name", "namespace");

    private static final Shape MODEL = object().with(TEXT, "uri", "name")
            .with(object().with(ANY, "adapters").with(POSITIVE, "maxRank", "maxAdapters", "maxCpuAdapters"), "lora")
            .with(object().with(FLAG, "enabled").with(TEXT, "resourceId").required("enabled"), "confidential")
            .with(enumOf("Critical", "Standard", "Sheddable"), "criticality")
            .required("uri");

    private static final Shape SCALING = object().with(POSITIVE, "minReplicas", "maxReplicas")
            .with(
                    object().with(TEXT, "variantCost")
                            .with(object().with(TREE, "behavior"), "hpa")
                            .with(
                                    object().with(POSITIVE, "pollingInterval", "idleReplicaCount")
                                            .with(COUNT, "cooldownPeriod", "initialCooldownPeriod")
                                            .with(TREE, "fallback", "advanced"),
                                    "keda"),
                    "wva")
            .required("maxReplicas");

    private static final Shape PARALLELISM = object().with(POSITIVE, "tensor", "pipeline", "data", "dataLocal")
            .with(PORT, "dataRPCPort")
            .with(FLAG, "expert");

    private static final Shape OFFLOADING = object().with(QUANTITY, "cpu")
            .with(enumOf("lru", "arc"), "evictionPolicy")
            .with(
                    list(object().with(
                                    object().with(
                                                    object().with(QUANTITY, "size")
                                                            .required("size"),
                                                    "emptyDir")
                                            .with(
                                                    object().with(TREE, "spec")
                                                            .with(
                                                                    object().with(TEXT, "name", "path")
                                                                            .required("name"),
                                                                    "ref"),
                                                    "pvc"),
                                    "fileSystem")),
                    "secondary")
            .required("cpu");

    private static final Shape WORKLOAD = object().with(COUNT, "replicas")
            .with(SCALING, "scaling")
            .with(PARALLELISM, "parallelism")
            .with(TEXTS, "labels", "annotations")
            .with(POD, "template", "worker")
            .with(OFFLOADING, "kvCacheOffloading");

    private static final Shape SCHEDULER = object().with(
                    object().with(TREE, "spec").with(REF, "ref"), "pool")
            .with(TEXTS, "labels", "annotations")
            .with(POD, "template")
            .with(
                    object().with(TREE, "inline")
                            .with(
                                    object().with(TEXT, "name", "key")
                                            .with(FLAG, "optional")
                                            .required("key"),
                                    "ref"),
                    "config")
            .with(INT, "replicas");

    private static final Shape ROUTER = object().with(
                    object().with(object().with(list(REF), "refs").with(TREE, "spec"), "http")
                            .with(TEXT, "group")
                            .with(integer(0, 1_000_000), "weight"),
                    "route")
            .with(object().with(list(OBJECT_REF.with(TEXT, "sectionName")), "refs"), "gateway")
            .with(object().with(list(OBJECT_REF), "refs"), "ingress")
            .with(SCHEDULER, "scheduler");

    private static final Shape SPEC = WORKLOAD.with(MODEL, "model")
            .with(object().with(FLAG, "enabled"), "storageInitializer")
            .with(ROUTER, "router")
            .with(WORKLOAD, "prefill")
            .with(object().with(TEXT, "exporterEndpoint", "exporter", "sampler", "samplerArg"), "tracing")
            .with(list(REF), "baseRefs")
            .hint("predictor", "a predictor belongs to an InferenceService")
            .hint("minReplicas", "write scaling: {minReplicas: ...}")
            .hint("maxReplicas", "write scaling: {maxReplicas: ...}")
            .hint("containers", "write template: {containers: [...]}");

    static final Shape SERVICE = ResourceSchemas.resource(SPEC).with(TREE, "status");

    static final Shape CONFIG = ResourceSchemas.resource(SPEC).with(TREE, "status");

    private LanguageModelSchemas() {}
}
