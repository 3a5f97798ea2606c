{{/* The image of all programs. */}}
{{- define "nereid.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Whether there are rights on the whole cluster; empty for no. */}}
{{- define "nereid.wholeCluster" -}}
{{- if not .Values.watchNamespaces }}true{{ end -}}
{{- end -}}

{{/* The watched namespaces, each once, in the order of the alphabet. */}}
{{- define "nereid.watched" -}}
{{- .Values.watchNamespaces | uniq | sortAlpha | join "," -}}
{{- end -}}

{{/* Whether there is a webhook, which belongs to the cluster; empty for no. */}}
{{- define "nereid.webhook" -}}
{{- if and .Values.webhook.enabled (include "nereid.wholeCluster" .) }}true{{ end -}}
{{- end -}}

{{/* Which services are called with tokens of the cluster: off, annotated or all. Their reviews are resources of the cluster. */}}
{{- define "nereid.kubernetesAuth" -}}
{{- .Values.gateway.access.kubernetesAuth.mode | default (ternary "annotated" "off" (eq (include "nereid.wholeCluster" .) "true")) -}}
{{- end -}}

{{/* The mode of services that do not say theirs. */}}
{{- define "nereid.deploymentMode" -}}
{{- .Values.config.deploymentMode | default (ternary "Knative" "Standard" .Values.gateway.enabled) -}}
{{- end -}}

{{/* The name of objects of the cluster, of which there is one for each installation. */}}
{{- define "nereid.clusterName" -}}
{{- if eq .Release.Namespace "nereid" }}nereid{{ else }}nereid-{{ .Release.Namespace }}{{ end -}}
{{- end -}}

{{/* The name of the priority class of pods; empty for the cluster's default. */}}
{{- define "nereid.priorityClass" -}}
{{- if .Values.priorityClass.name -}}
{{ .Values.priorityClass.name }}
{{- else if and .Values.priorityClass.create (include "nereid.wholeCluster" .) -}}
{{ include "nereid.clusterName" . }}
{{- end -}}
{{- end -}}

{{/* Metadata of an object of a program: a list of the context and the name of the program. */}}
{{- define "nereid.metadata" -}}
{{- $program := index . 1 -}}
name: {{ $program }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  app.kubernetes.io/name: {{ $program }}
  app.kubernetes.io/part-of: nereid
{{- end -}}

{{/* What the pods of both programs have: a list of the context, the name of the program and its values. */}}
{{- define "nereid.pod" -}}
{{- $root := index . 0 -}}
{{- $program := index . 1 -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ $program }}
{{- with include "nereid.priorityClass" $root }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
topologySpreadConstraints:
{{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        app.kubernetes.io/name: {{ $program }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Metadata of the pods: a list of the name of the program and its values. */}}
{{- define "nereid.podMetadata" -}}
{{- $program := index . 0 -}}
{{- $values := index . 1 -}}
{{- with $values.podAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{ end -}}
labels:
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  app.kubernetes.io/name: {{ $program }}
  app.kubernetes.io/part-of: nereid
{{- end -}}

{{/*
What the containers of both programs have: a list of the context, the values, the period of the readiness probe, and variables.
*/}}
{{- define "nereid.container" -}}
{{- $root := index . 0 -}}
{{- $values := index . 1 -}}
image: {{ include "nereid.image" $root }}
{{- with $root.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
command:
- nereid
{{- with concat (index . 3) $values.env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
startupProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: {{ index . 2 }}
  timeoutSeconds: 5
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
    - ALL
{{- end -}}

{{/* A role and its binding: a dictionary of root, kind, name, namespace (empty for the cluster), account and rules. */}}
{{- define "nereid.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    app.kubernetes.io/part-of: nereid
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    app.kubernetes.io/part-of: nereid
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* The Secrets that the gateway reads, by the folder below /etc/nereid where each lies. */}}
{{- define "nereid.gatewaySecrets" -}}
{{- with .Values.gateway.tls.secretName }}
tls: {{ . }}
{{- if $.Values.gateway.tls.clientCaSecretName }}
client-ca: {{ $.Values.gateway.tls.clientCaSecretName }}
{{- end }}
{{- end }}
{{- with .Values.gateway.access.apiKeysSecretName }}
api-keys: {{ . }}
{{- end }}
{{- with .Values.gateway.access.configSecretName }}
access: {{ . }}
{{- end }}
{{- end -}}

{{/* The variables of the gateway besides those of its values. Without the label, as before Kubernetes 1.35, there is no zone. */}}
{{- define "nereid.gatewayVariables" -}}
{{- if .Values.gateway.zone.fromPodLabel -}}
- name: NEREID_ZONE
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['topology.kubernetes.io/zone']
{{- end -}}
{{- end -}}
