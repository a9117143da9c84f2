{{/* The rules for Prometheus need a job whose name starts with pawl. */}}
{{- define "pawl.name" -}}
{{ hasPrefix "pawl" .Release.Name | ternary .Release.Name (printf "pawl-%s" .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "pawl.selector" -}}
app.kubernetes.io/name: pawl
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pawl.labels" -}}
{{ include "pawl.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The content of pawl.yaml. */}}
{{- define "pawl.config" -}}
{{- $defaults := dict }}
{{- $index := eq .component "files" | ternary (dig "files" "index" "" .config) "" }}
{{- if not (or .config.ledger $index) }}
{{- $_ := required "set ledgerSecret.name, or a ledger in each config" .root.Values.ledgerSecret.name }}
{{- $defaults = dict "ledger" "${PAWL_LEDGER}" }}
{{- else if regexMatch "^(sqlite:|memory$)" (.config.ledger | default "") }}
{{- fail (printf "%s.config.ledger: pods share no disk: use PostgreSQL or DynamoDB" .component) }}
{{- else if not (regexMatch `^$|://|\$\{` $index) }}
{{- fail "files.config.files.index: pods share no disk: use PostgreSQL or DynamoDB" }}
{{- end }}
{{- if eq .component "files" }}
{{- $_ := set $defaults "files" (dict "listen" ":8090") }}
{{- end }}
{{- mustMergeOverwrite (deepCopy .config) $defaults | toYaml }}
{{- end }}
