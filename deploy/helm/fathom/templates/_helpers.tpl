{{- define "fathom.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fathom.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fathom.labels" -}}
{{ include "fathom.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fathom
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "fathom.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "fathom.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "fathom.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* docs/kubernetes.md says what each is for, and what is missing without it. */}}
{{- define "fathom.capabilities" -}}
- BPF
- PERFMON
- SYS_PTRACE
- DAC_READ_SEARCH
- CHECKPOINT_RESTORE
- SYSLOG
- SETUID
- SETGID
- KILL
{{- if .Values.capabilities.sysAdmin }}
- SYS_ADMIN
{{- end }}
{{- end -}}

{{- /* Before it there was an annotation. */}}
{{- define "fathom.hasAppArmorField" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}yes{{- end -}}
{{- end -}}

{{- define "fathom.appArmorAnnotation" -}}
{{- $profile := .Values.appArmorProfile -}}
{{- if eq $profile.type "Localhost" -}}
localhost/{{ $profile.localhostProfile }}
{{- else -}}
{{ ternary "unconfined" "runtime/default" (eq $profile.type "Unconfined") }}
{{- end -}}
{{- end -}}
