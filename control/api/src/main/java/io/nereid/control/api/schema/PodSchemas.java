// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.schema;

import static io.nereid.control.api.schema.StructuralSchema.ANY;
import static io.nereid.control.api.schema.StructuralSchema.FLAG;
import static io.nereid.control.api.schema.StructuralSchema.INT;
import static io.nereid.control.api.schema.StructuralSchema.INT_OR_TEXT;
import static io.nereid.control.api.schema.StructuralSchema.LONG;
import static io.nereid.control.api.schema.StructuralSchema.PORT;
import static io.nereid.control.api.schema.StructuralSchema.QUANTITIES;
import static io.nereid.control.api.schema.StructuralSchema.QUANTITY;
import static io.nereid.control.api.schema.StructuralSchema.TEXT;
import static io.nereid.control.api.schema.StructuralSchema.TEXTS;
import static io.nereid.control.api.schema.StructuralSchema.TEXT_LIST;
import static io.nereid.control.api.schema.StructuralSchema.TREE;
import static io.nereid.control.api.schema.StructuralSchema.list;
import static io.nereid.control.api.schema.StructuralSchema.listBy;
import static io.nereid.control.api.schema.StructuralSchema.object;
import static io.nereid.control.api.schema.StructuralSchema.oneOf;

import io.nereid.control.api.schema.StructuralSchema.Shape;

/** The structural schemas of the parts of Kubernetes' pods that KServe's resources embed. Immutable. */
final class PodSchemas {
    private static final Shape KEY_REF =
            object().with(TEXT, "name", "key").with(FLAG, "optional").required("key");

    static final Shape ENV = object().with(TEXT, "name", "value")
            .with(
                    object().with(KEY_REF, "secretKeyRef", "configMapKeyRef")
                            .with(object().with(TEXT, "apiVersion", "fieldPath").required("fieldPath"), "fieldRef")
                            .with(
                                    object().with(TEXT, "containerName", "resource")
                                            .with(QUANTITY, "divisor")
                                            .required("resource"),
                                    "resourceFieldRef")
                            .with(
                                    object().with(TEXT, "volumeName", "path", "key")
                                            .with(FLAG, "optional"),
                                    "fileKeyRef")
                            .folded(),
                    "valueFrom")
            .required("name");

    private static final Shape SOURCE_REF = object().with(TEXT, "name").with(FLAG, "optional");

    private static final Shape ENV_FROM = object().with(TEXT, "prefix").with(SOURCE_REF, "secretRef", "configMapRef");

    private static final StructuralSchema PROTOCOL = oneOf("TCP", "UDP", "SCTP");

    private static final Shape CONTAINER_PORT = object().with(TEXT, "name", "hostIP")
            .with(PORT, "containerPort", "hostPort")
            .with(PROTOCOL, "protocol")
            .required("containerPort");

    static final Shape RESOURCES = object().with(QUANTITIES, "limits", "requests")
            .with(listBy(object().with(TEXT, "name", "request").required("name"), "name"), "claims");

    private static final Shape HTTP_GET = object().with(TEXT, "path", "host")
            .with(INT_OR_TEXT, "port")
            .with(oneOf("HTTP", "HTTPS"), "scheme")
            .with(list(object().with(TEXT, "name", "value").required("name")), "httpHeaders")
            .required("port");

    private static final Shape TCP_SOCKET =
            object().with(INT_OR_TEXT, "port").with(TEXT, "host").required("port");

    private static final Shape EXEC = object().with(TEXT_LIST, "command");

    private static final Shape PROBE = object().with(HTTP_GET, "httpGet")
            .with(TCP_SOCKET, "tcpSocket")
            .with(EXEC, "exec")
            .with(object().with(PORT, "port").with(TEXT, "service").required("port"), "grpc")
            .with(
                    StructuralSchema.integer(0, Integer.MAX_VALUE),
                    "initialDelaySeconds",
                    "timeoutSeconds",
                    "periodSeconds",
                    "successThreshold",
                    "failureThreshold")
            .with(LONG, "terminationGracePeriodSeconds")
            .folded();

    private static final Shape HANDLER = object().with(HTTP_GET, "httpGet")
            .with(TCP_SOCKET, "tcpSocket")
            .with(EXEC, "exec")
            .with(object().with(LONG, "seconds"), "sleep")
            .folded();

    private static final Shape SECURITY_CONTEXT = object().with(
                    FLAG, "privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsNonRoot")
            .with(LONG, "runAsUser", "runAsGroup")
            .with(TEXT, "procMount")
            .with(object().with(TEXT_LIST, "add", "drop"), "capabilities")
            .with(TREE, "seccompProfile", "seLinuxOptions", "windowsOptions", "appArmorProfile")
            .folded();

    private static final Shape MOUNT = object().with(
                    TEXT, "name", "mountPath", "subPath", "subPathExpr", "mountPropagation", "recursiveReadOnly")
            .with(FLAG, "readOnly")
            .required("name", "mountPath");

    /** A container; name and image are optional. */
    static final Shape CONTAINER = object().with(TEXT, "name", "image", "workingDir", "terminationMessagePath")
            .with(TEXT_LIST, "command", "args")
            .with(listBy(ENV, "name"), "env")
            .with(list(ENV_FROM), "envFrom")
            .with(list(CONTAINER_PORT), "ports")
            .with(RESOURCES, "resources")
            .with(listBy(MOUNT, "mountPath"), "volumeMounts")
            .with(
                    listBy(object().with(TEXT, "name", "devicePath").required("name", "devicePath"), "devicePath"),
                    "volumeDevices")
            .with(PROBE, "livenessProbe", "readinessProbe", "startupProbe")
            .with(object().with(HANDLER, "postStart", "preStop").with(TEXT, "stopSignal"), "lifecycle")
            .with(oneOf("Always", "Never", "IfNotPresent"), "imagePullPolicy")
            .with(oneOf("File", "FallbackToLogsOnError"), "terminationMessagePolicy")
            .with(TEXT, "restartPolicy")
            .with(list(TREE), "resizePolicy", "restartPolicyRules")
            .with(SECURITY_CONTEXT, "securityContext")
            .with(FLAG, "stdin", "stdinOnce", "tty");

    private static final StructuralSchema ITEMS =
            list(object().with(TEXT, "key", "path").with(INT, "mode").required("key", "path"));

    private static final Shape VOLUME = object().with(TEXT, "name")
            .with(object().with(TEXT, "medium").with(QUANTITY, "sizeLimit").folded(), "emptyDir")
            .with(
                    object().with(TEXT, "secretName")
                            .with(ITEMS, "items")
                            .with(INT, "defaultMode")
                            .with(FLAG, "optional")
                            .folded(),
                    "secret")
            .with(
                    object().with(TEXT, "name")
                            .with(ITEMS, "items")
                            .with(INT, "defaultMode")
                            .with(FLAG, "optional")
                            .folded(),
                    "configMap")
            .with(
                    object().with(TEXT, "claimName").with(FLAG, "readOnly").required("claimName"),
                    "persistentVolumeClaim")
            .with(object().with(TEXT, "path", "type").required("path"), "hostPath")
            .with(
                    TREE,
                    "projected",
                    "downwardAPI",
                    "csi",
                    "ephemeral",
                    "image",
                    "nfs",
                    "awsElasticBlockStore",
                    "azureDisk",
                    "azureFile",
                    "cephfs",
                    "cinder",
                    "fc",
                    "flexVolume",
                    "flocker",
                    "gcePersistentDisk",
                    "gitRepo",
                    "glusterfs",
                    "iscsi",
                    "photonPersistentDisk",
                    "portworxVolume",
                    "quobyte",
                    "rbd",
                    "scaleIO",
                    "storageos",
                    "vsphereVolume")
            .required("name");

    static final StructuralSchema TOLERATIONS = list(object().with(TEXT, "key", "value")
            .with(oneOf("Exists", "Equal", "Lt", "Gt"), "operator")
            .with(oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"), "effect")
            .with(LONG, "tolerationSeconds"));

    static final Shape AFFINITY = object().with(TREE, "nodeAffinity", "podAffinity", "podAntiAffinity");

    private static final StructuralSchema RESOURCE_CLAIMS = listBy(
            object().with(TEXT, "name", "resourceClaimName", "resourceClaimTemplateName")
                    .required("name"),
            "name");

    /**
     * The fields of a pod that a runtime has, as in KServe. Others are those of the services: a runtime that had them
     * would be taken without an effect.
     */
    static final Shape RUNTIME_POD = object().with(list(CONTAINER), "containers")
            .with(list(VOLUME), "volumes")
            .with(TEXTS, "nodeSelector")
            .with(AFFINITY, "affinity")
            .with(TOLERATIONS, "tolerations")
            .with(list(object().with(TEXT, "name")), "imagePullSecrets")
            .with(RESOURCE_CLAIMS, "resourceClaims")
            .with(FLAG, "hostIPC")
            .with(TEXT, "schedulerName");

    /** The fields of a pod's specification. */
    static final Shape POD = object().with(list(CONTAINER.required("name")), "initContainers")
            .with(list(CONTAINER), "containers")
            .with(list(TREE), "ephemeralContainers")
            .with(list(VOLUME), "volumes")
            .with(TEXTS, "nodeSelector")
            .with(
                    TEXT,
                    "serviceAccountName",
                    "serviceAccount",
                    "nodeName",
                    "hostname",
                    "hostnameOverride",
                    "subdomain",
                    "schedulerName",
                    "priorityClassName",
                    "runtimeClassName",
                    "preemptionPolicy")
            .with(oneOf("Always", "OnFailure", "Never"), "restartPolicy")
            .with(oneOf("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"), "dnsPolicy")
            .with(
                    FLAG,
                    "automountServiceAccountToken",
                    "hostNetwork",
                    "hostPID",
                    "hostIPC",
                    "hostUsers",
                    "shareProcessNamespace",
                    "enableServiceLinks",
                    "setHostnameAsFQDN")
            .with(LONG, "terminationGracePeriodSeconds", "activeDeadlineSeconds")
            .with(INT, "priority")
            .with(AFFINITY, "affinity")
            .with(TOLERATIONS, "tolerations")
            .with(list(object().with(TEXT, "name")), "imagePullSecrets")
            .with(list(TREE), "hostAliases", "readinessGates")
            .with(
                    listBy(
                            object().with(TEXT, "topologyKey", "whenUnsatisfiable")
                                    .required("topologyKey", "whenUnsatisfiable")
                                    .open(),
                            "topologyKey",
                            "whenUnsatisfiable"),
                    "topologySpreadConstraints")
            .with(listBy(object().with(TEXT, "name").required("name"), "name"), "schedulingGates")
            .with(RESOURCE_CLAIMS, "resourceClaims")
            .with(TREE, "securityContext", "dnsConfig", "os")
            .with(QUANTITIES, "overhead")
            .with(RESOURCES, "resources");

    /** The metadata of every resource. */
    static final Shape METADATA = object().with(
                    TEXT, "name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
            .with(TEXTS, "labels", "annotations")
            .with(LONG, "generation", "deletionGracePeriodSeconds")
            .with(StructuralSchema.TIME, "creationTimestamp", "deletionTimestamp")
            .with(TEXT_LIST, "finalizers")
            .with(
                    list(object().with(TEXT, "apiVersion", "kind", "name", "uid")
                            .with(FLAG, "controller", "blockOwnerDeletion")),
                    "ownerReferences")
            .with(ANY, "managedFields");

    /** The fields that every resource has. */
    static final Shape RESOURCE = object().with(TEXT, "apiVersion", "kind")
            .with(METADATA, "metadata")
            .required("apiVersion", "kind", "metadata");

    private PodSchemas() {}
}
