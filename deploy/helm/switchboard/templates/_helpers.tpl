{{- define "switchboard.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "switchboard.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The labels that select the pods of a part: (list . "broker"). */ -}}
{{- define "switchboard.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "switchboard.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "switchboard.secret" -}}
{{ .Values.secret.existing | default (include "switchboard.name" .) }}
{{- end }}

{{- /* What no pod of this chart may do. */ -}}
{{- define "switchboard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "switchboard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* The environment with the URL of Redis. */ -}}
{{- define "switchboard.redis" -}}
- name: SWITCHBOARD_REDIS
  {{- if or .Values.secret.redis (and .Values.secret.existing (not .Values.redis.url)) }}
  valueFrom: {secretKeyRef: {name: {{ include "switchboard.secret" . }}, key: redis}}
  {{- else }}
  value: {{ .Values.redis.url | quote }}
  {{- end }}
{{- with .Values.redis.prefix }}
- name: SWITCHBOARD_PREFIX
  value: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "switchboard.mounts" -}}
- {name: config, mountPath: /etc/switchboard, readOnly: true}
- {name: secrets, mountPath: /run/secrets/switchboard, readOnly: true}
{{- end }}

{{- define "switchboard.volumes" -}}
- name: config
  configMap: {name: {{ include "switchboard.name" . }}}
- name: secrets
  secret: {secretName: {{ include "switchboard.secret" . }}, defaultMode: 0440}
{{- end }}
