{{- /* Helpers of the templates. */ -}}

{{- /* The chart's part of names; an alias in the dependencies of another chart changes it. */ -}}
{{- define "disque-cluster.name" -}}
{{- .Values.nameOverride | default (.Chart.Name | trimSuffix "-cluster") }}
{{- end }}

{{- /* The name of the resource. 52 characters leave room for the suffixes that Kubernetes adds in labels of pods. */ -}}
{{- define "disque-cluster.fullname" -}}
{{- $name := include "disque-cluster.name" . }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default ($full | trunc 52 | trimSuffix "-") }}
{{- end }}

{{- define "disque-cluster.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" (include "disque-cluster.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
{{- merge $own (.Values.commonLabels | default dict) | toYaml }}
{{- end }}

{{- /* A value without nulls, which mean that a field is left out. Lists are not changed. */ -}}
{{- define "disque-cluster.compact" -}}
{{- if kindIs "map" . }}
{{- $result := dict }}
{{- range $name, $value := . }}
{{- if kindIs "map" $value }}
{{- $_ := set $result $name (include "disque-cluster.compact" $value | fromYaml) }}
{{- else if not (kindIs "invalid" $value) }}
{{- $_ := set $result $name $value }}
{{- end }}
{{- end }}
{{- toYaml $result }}
{{- end }}
{{- end }}

{{- /* The Secret that holds the password for clients; empty if there is no password. */ -}}
{{- define "disque-cluster.secretName" -}}
{{- $auth := .Values.auth | default dict }}
{{- if ne (toString $auth.enabled) "false" }}
{{- printf "%s-default-user" (include "disque-cluster.fullname" .) }}
{{- end }}
{{- end }}

{{- /* The ConfigMap with the authorities by which clients verify brokers; empty if clients do not use TLS. */ -}}
{{- define "disque-cluster.authorities" -}}
{{- $tls := .Values.tls | default dict }}
{{- if and $tls.enabled (ne ($tls.clients | default "Required") "Disabled") }}
{{- printf "%s-ca" (include "disque-cluster.fullname" .) }}
{{- end }}
{{- end }}

{{- /* The port of the service for clients. */ -}}
{{- define "disque-cluster.port" -}}
{{- $service := .Values.service | default dict }}
{{- if include "disque-cluster.authorities" . }}{{ $service.tlsPort | default 7712 }}{{ else }}{{ $service.port | default 7711 }}{{ end }}
{{- end }}

{{- /* The address for clients. */ -}}
{{- define "disque-cluster.endpoint" -}}
{{- printf "%s.%s.svc:%s" (include "disque-cluster.fullname" .) .Release.Namespace (include "disque-cluster.port" .) }}
{{- end }}
