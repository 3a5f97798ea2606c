// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

/**
 * Names that KServe gives to annotations, containers and volumes of pods; other programs rely on them. The annotations
 * under {@code internal.serving.kserve.io} tell KServe's pod webhook what to add.
 */
public final class PodNames {
    public static final String GROUP = "serving.kserve.io/";
    public static final String INTERNAL = "internal.serving.kserve.io/";
    public static final String SOURCE_URI = INTERNAL + "storage-initializer-sourceuri";
    public static final String STORAGE_SPEC = INTERNAL + "storage-spec";
    public static final String STORAGE_SPEC_PARAM = INTERNAL + "storage-spec-param";
    public static final String STORAGE_SPEC_KEY = INTERNAL + "storage-spec-key";
    public static final String STORAGE_CONTAINER = INTERNAL + "storage-container-name";
    public static final String LOGGER = INTERNAL + "logger";
    public static final String LOGGER_URL = INTERNAL + "logger-sink-url";
    public static final String LOGGER_MODE = INTERNAL + "logger-mode";
    public static final String LOGGER_HEADERS = INTERNAL + "logger-metadata-headers";
    public static final String LOGGER_ANNOTATIONS = INTERNAL + "logger-metadata-annotations";
    public static final String BATCHER = INTERNAL + "batcher";
    public static final String BATCHER_SIZE = INTERNAL + "batcher-max-batchsize";
    public static final String BATCHER_LATENCY = INTERNAL + "batcher-max-latency";
    public static final String AGENT = INTERNAL + "agent";
    public static final String AGENT_CONFIG_MAP = INTERNAL + "configVolumeName";
    public static final String AGENT_CONFIG_PATH = INTERNAL + "configMountPath";
    public static final String AGENT_MODEL_DIR = INTERNAL + "modelDir";
    public static final String CONFIDENTIAL = INTERNAL + "confidential-enabled";
    public static final String CONFIDENTIAL_RESOURCE = INTERNAL + "confidential-resource-id";

    public static final String SERVICE_LABEL = GROUP + "inferenceservice";
    public static final String MAIN = "kserve-container";
    public static final String TRANSFORMER = "transformer-container";
    public static final String WORKER = "worker-container";
    /** The container by which Knative limits and counts the requests of a pod. */
    public static final String QUEUE = "queue-proxy";

    public static final String INITIALIZER = "storage-initializer";

    public static final String MODELS = "/mnt/models";
    public static final String MODEL_CONFIG = "/mnt/configs";

    /** The placeholder for the scheme of a path that only an entry of the storage secret determines. */
    public static final String PLACEHOLDER = "<scheme-placeholder>://";

    /** The port that agents listen on. */
    public static final int AGENT_PORT = 9081;

    private PodNames() {}
}
