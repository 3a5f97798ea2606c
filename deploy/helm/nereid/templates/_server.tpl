{{/* The name of the server's objects. Never "nereid": a Service of that name sets NEREID_PORT in other pods of the namespace. */}}
{{- define "nereid.server.name" -}}
{{- if .Values.server.name -}}
{{ .Values.server.name }}
{{- else if eq .Release.Name "nereid" -}}
nereid-server
{{- else if hasPrefix "nereid-" .Release.Name -}}
{{ .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else -}}
{{ printf "nereid-%s" .Release.Name | trunc 55 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* By which the server's pods are selected; it never changes. */}}
{{- define "nereid.server.selector" -}}
app.kubernetes.io/name: nereid-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nereid.server.labels" -}}
{{ include "nereid.server.selector" . }}
app.kubernetes.io/part-of: nereid
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{/* Metadata of an object: a list of the context and what follows the server's name. */}}
{{- define "nereid.server.metadata" -}}
name: {{ include "nereid.server.name" (index . 0) }}{{ index . 1 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "nereid.server.labels" (index . 0) | nindent 2 }}
{{- end -}}

{{/* Where the models come from: claim, configMap, image or fetch. Fails unless there is exactly one source. */}}
{{- define "nereid.server.source" -}}
{{- $models := .Values.server.models -}}
{{- $sources := list -}}
{{- if $models.claim }}{{ $sources = append $sources "claim" }}{{ end -}}
{{- if $models.configMap.name }}{{ $sources = append $sources "configMap" }}{{ end -}}
{{- if $models.image.reference }}{{ $sources = append $sources "image" }}{{ end -}}
{{- if $models.fetch.sources }}{{ $sources = append $sources "fetch" }}{{ end -}}
{{- if ne (len $sources) 1 -}}
{{- fail (printf "server.models: %d sources of models are set (%s), expected: exactly one of server.models.claim, server.models.configMap.name, server.models.image.reference and server.models.fetch.sources. Set one of them, such as --set server.models.claim=CLAIM" (len $sources) (join ", " $sources | default "none")) -}}
{{- end -}}
{{ first $sources }}
{{- end -}}

{{/* Fails where values contradict each other, with what to change. */}}
{{- define "nereid.server.check" -}}
{{- $values := .Values.server -}}
{{- $models := $values.models -}}
{{- $source := include "nereid.server.source" . -}}
{{- if and $models.persistence.enabled (ne $source "fetch") -}}
{{- fail (printf "server.models.persistence.enabled: the models come from %s, and a volume for each pod would stay empty. It belongs to server.models.fetch.sources: set these, or leave it off" $source) -}}
{{- end -}}
{{- if and $models.persistence.enabled $models.fetch.sizeLimit -}}
{{- fail "server.models.fetch.sizeLimit: it limits the emptyDir that there is without server.models.persistence.enabled. Set server.models.persistence.size instead" -}}
{{- end -}}
{{- if and $models.subPath (ne $source "claim") -}}
{{- fail (printf "server.models.subPath: the models come from %s, where it has no effect. It belongs to server.models.claim: leave it empty" $source) -}}
{{- end -}}
{{- if and (not $values.tls.secretName) (or $values.tls.clientCaSecretName $values.tls.clientVerify) -}}
{{- fail "server.tls.secretName is empty: clients can show certificates with TLS alone. Set it, or leave server.tls.clientCaSecretName and server.tls.clientVerify empty" -}}
{{- end -}}
{{- if and (not $values.tls.clientCaSecretName) (has $values.tls.clientVerify (list "optional" "required")) -}}
{{- fail (printf "server.tls.clientVerify is %s without authorities. Set server.tls.clientCaSecretName to a Secret whose key ca.crt has them" $values.tls.clientVerify) -}}
{{- end -}}
{{- if and $values.serviceAccountName $values.serviceAccountAnnotations -}}
{{- fail (printf "server.serviceAccountAnnotations: the ServiceAccount %s is there already, and the chart does not change it. Leave server.serviceAccountName empty, or annotate it yourself" $values.serviceAccountName) -}}
{{- end -}}
{{- if and $values.autoscaling.enabled (not $values.autoscaling.targetCPUUtilizationPercentage) (not $values.autoscaling.metrics) -}}
{{- fail "server.autoscaling has nothing to follow. Set server.autoscaling.targetCPUUtilizationPercentage, or metrics of your own in server.autoscaling.metrics" -}}
{{- end -}}
{{- if and (eq $values.service.type "ClusterIP") (or $values.service.loadBalancerClass $values.service.externalTrafficPolicy) -}}
{{- fail "server.service.type is ClusterIP, where loadBalancerClass and externalTrafficPolicy have no effect. Set it to LoadBalancer or NodePort, or leave both empty" -}}
{{- end -}}
{{- if eq (int (include "nereid.server.port" .)) (int $values.service.grpcPort) -}}
{{- fail (printf "server.service.grpcPort is %d, which is the Service's first port as well, and that takes gRPC too. Set it to 0, or to another port" (int $values.service.grpcPort)) -}}
{{- end -}}
{{- end -}}

{{/* Whether clients must present a certificate, which the kubelet has not; empty for no. */}}
{{- define "nereid.server.mutual" -}}
{{- with .Values.server.tls -}}
{{- if and .secretName .clientCaSecretName (has .clientVerify (list "" "required")) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- define "nereid.server.port" -}}
{{- .Values.server.service.port | default (ternary 443 80 (ne .Values.server.tls.secretName "")) -}}
{{- end -}}

{{/* The file of options. The schema refuses those that are set here in server.config. */}}
{{- define "nereid.server.config" -}}
{{- $values := .Values.server -}}
{{- $own := dict "host" "0.0.0.0" "port" 8080 "metrics-port" 8002 -}}
{{- $_ := set $own "grace-period" (printf "%vs" $values.gracePeriodSeconds) -}}
{{- $_ := set $own "drain-timeout" (printf "%vs" $values.drainTimeoutSeconds) -}}
{{- if not (or $values.config.model_dir $values.config.model_base_path $values.config.model_config_file (index $values.config "model-config-file")) -}}
{{- $_ := set $own "models" (list "/models") -}}
{{- end -}}
{{- if $values.tls.secretName -}}
{{- $_ := set $own "tls-cert" "/etc/nereid/tls/tls.crt" -}}
{{- $_ := set $own "tls-key" "/etc/nereid/tls/tls.key" -}}
{{- if $values.tls.clientCaSecretName -}}
{{- $_ := set $own "tls-client-ca" "/etc/nereid/client-ca/ca.crt" -}}
{{- end -}}
{{- with $values.tls.clientVerify -}}
{{- $_ := set $own "tls-client-verify" . -}}
{{- end -}}
{{- end -}}
{{- if $values.access.apiKeysSecretName -}}
{{- $_ := set $own "api-keys" (printf "/etc/nereid/api-keys/%s" $values.access.apiKeysKey) -}}
{{- end -}}
{{- if $values.access.configSecretName -}}
{{- $_ := set $own "access-config" (printf "/etc/nereid/access/%s" $values.access.configKey) -}}
{{- end -}}
{{- if include "nereid.server.mutual" . -}}
{{- /* The probes only see whether the port is open. */ -}}
{{- $_ := set $own "ports-after-models" true -}}
{{- end -}}
{{- merge $own (deepCopy $values.config) | toYaml -}}
{{- end -}}

{{/* The Secrets that the server reads, by the folder below /etc/nereid where each lies. */}}
{{- define "nereid.server.secrets" -}}
{{- $values := .Values.server -}}
{{- with $values.tls.secretName }}
tls: {{ . }}
{{- with $values.tls.clientCaSecretName }}
client-ca: {{ . }}
{{- end }}
{{- end }}
{{- with $values.access.apiKeysSecretName }}
api-keys: {{ . }}
{{- end }}
{{- with $values.access.configSecretName }}
access: {{ . }}
{{- end }}
{{- end -}}

{{/* One probe: a list of the context, its values and the path. */}}
{{- define "nereid.server.probe" -}}
{{- $root := index . 0 -}}
{{- if include "nereid.server.mutual" $root -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  path: {{ index . 2 }}
  port: http
  {{- if $root.Values.server.tls.secretName }}
  scheme: HTTPS
  {{- end }}
{{- end }}
{{ toYaml (index . 1) }}
{{- end -}}

{{/* What a container of the server's image may do. */}}
{{- define "nereid.server.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
  - ALL
{{- end -}}

{{- define "nereid.server.image" -}}
image: {{ include "nereid.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{/* What both kinds of pods have: those of the server and the one of the test. */}}
{{- define "nereid.server.podSecurity" -}}
{{- $context := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if .Values.server.models.persistence.enabled -}}
{{- $_ := set $context "fsGroup" 65532 -}}
{{- $_ := set $context "fsGroupChangePolicy" "OnRootMismatch" -}}
{{- end -}}
{{- mergeOverwrite $context (deepCopy .Values.server.podSecurityContext) | toYaml -}}
{{- end -}}

{{/* The pod, of a Deployment or a StatefulSet. */}}
{{- define "nereid.server.podTemplate" -}}
{{- $values := .Values.server -}}
{{- $source := include "nereid.server.source" . -}}
{{- $secrets := include "nereid.server.secrets" . | fromYaml -}}
metadata:
  annotations:
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    # The pods are replaced when the options change.
    nereid.io/config-checksum: {{ include "nereid.server.config" . | sha256sum }}
  labels:
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- include "nereid.server.selector" . | nindent 4 }}
    app.kubernetes.io/part-of: nereid
spec:
  serviceAccountName: {{ $values.serviceAccountName | default (include "nereid.server.name" .) }}
  automountServiceAccountToken: false
  # Variables of Services, such as NEREID_PORT of one called nereid, would be taken for options.
  enableServiceLinks: false
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "nereid.server.podSecurity" . | nindent 4 }}
  terminationGracePeriodSeconds: {{ add $values.gracePeriodSeconds $values.drainTimeoutSeconds 15 }}
  topologySpreadConstraints:
  {{- if $values.topologySpreadConstraints }}
    {{- toYaml $values.topologySpreadConstraints | nindent 4 }}
  {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "nereid.server.selector" . | nindent 10 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq $source "fetch" }}
  {{- $fetch := $values.models.fetch }}
  initContainers:
  - name: fetch
    {{- include "nereid.server.image" . | nindent 4 }}
    args:
    - fetch
    {{- with $fetch.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- range $fetch.sources }}
    - {{ .uri | quote }}
    - {{ ternary (printf "/models/%s" (.path | default "")) "/models" (not (empty .path)) | quote }}
    {{- end }}
    {{- with $fetch.env }}
    env:
      {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $fetch.envSecretName }}
    envFrom:
    - secretRef:
        name: {{ . }}
    {{- end }}
    # Its memory is that of the server, which starts when it has ended.
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    securityContext:
      {{- include "nereid.server.containerSecurity" . | nindent 6 }}
    volumeMounts:
    - name: models
      mountPath: /models
    - name: tmp
      mountPath: /tmp
    {{- if $fetch.filesSecretName }}
    - name: fetch-credentials
      mountPath: /etc/nereid/credentials
      readOnly: true
    {{- end }}
  {{- end }}
  containers:
  - name: server
    {{- include "nereid.server.image" . | nindent 4 }}
    args:
    - serve
    - --config=/etc/nereid/config/nereid.yaml
    {{- with $values.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if or $values.javaOptions $values.env }}
    env:
    {{- with $values.javaOptions }}
    - name: NEREID_JAVA_OPTS
      value: {{ . | quote }}
    {{- end }}
    {{- with $values.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
    ports:
    - name: http
      containerPort: 8080
      protocol: TCP
    - name: metrics
      containerPort: 8002
      protocol: TCP
    startupProbe:
      {{- include "nereid.server.probe" (list . $values.probes.startup "/v2/health/live") | nindent 6 }}
    livenessProbe:
      {{- include "nereid.server.probe" (list . $values.probes.liveness "/v2/health/live") | nindent 6 }}
    readinessProbe:
      {{- include "nereid.server.probe" (list . $values.probes.readiness "/v2/health/ready") | nindent 6 }}
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    securityContext:
      {{- include "nereid.server.containerSecurity" . | nindent 6 }}
    volumeMounts:
    - name: models
      mountPath: /models
      readOnly: true
      {{- with $values.models.subPath }}
      subPath: {{ . }}
      {{- end }}
    - name: config
      mountPath: /etc/nereid/config
      readOnly: true
    - name: tmp
      mountPath: /tmp
    {{- range $name, $secret := $secrets }}
    - name: {{ $name }}
      mountPath: /etc/nereid/{{ $name }}
      readOnly: true
    {{- end }}
    {{- with $values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
  {{- if not $values.models.persistence.enabled }}
  - name: models
    {{- if eq $source "claim" }}
    persistentVolumeClaim:
      claimName: {{ $values.models.claim }}
      readOnly: true
    {{- else if eq $source "configMap" }}
    configMap:
      name: {{ $values.models.configMap.name }}
      {{- with $values.models.configMap.items }}
      items:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- else if eq $source "image" }}
    image:
      reference: {{ $values.models.image.reference }}
      {{- with $values.models.image.pullPolicy }}
      pullPolicy: {{ . }}
      {{- end }}
    {{- else if $values.models.fetch.sizeLimit }}
    emptyDir:
      sizeLimit: {{ $values.models.fetch.sizeLimit }}
    {{- else }}
    emptyDir: {}
    {{- end }}
  {{- end }}
  - name: config
    configMap:
      name: {{ include "nereid.server.name" . }}
  - name: tmp
    emptyDir: {}
  {{- range $name, $secret := $secrets }}
  - name: {{ $name }}
    secret:
      secretName: {{ $secret }}
  {{- end }}
  {{- if and (eq $source "fetch") $values.models.fetch.filesSecretName }}
  - name: fetch-credentials
    secret:
      secretName: {{ $values.models.fetch.filesSecretName }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
