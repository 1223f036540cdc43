{{- /* Helpers of the templates. */ -}}

{{- define "disque-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default ($full | trunc 53 | trimSuffix "-") }}
{{- end }}

{{- /* Labels that select the pods. The network policies of clusters admit this name, so it must not change. */ -}}
{{- define "disque-operator.selector" -}}
app.kubernetes.io/name: disque-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "disque-operator.labels" -}}
{{- $own := dict
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/component" "operator"
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_")) }}
{{- merge (include "disque-operator.selector" . | fromYaml) $own (.Values.commonLabels | default dict) | toYaml }}
{{- end }}

{{- define "disque-operator.serviceAccountName" -}}
{{- $account := .Values.serviceAccount | default dict }}
{{- $account.name | default (ternary (include "disque-operator.fullname" .) "default" ($account.create | default false)) }}
{{- end }}

{{- /* The name of an image. */ -}}
{{- define "disque-operator.imageName" -}}
{{- $name := .image.repository }}
{{- with .registry }}
{{- $name = printf "%s/%s" . $name }}
{{- end }}
{{- if .image.digest }}
{{- printf "%s@%s" $name .image.digest }}
{{- else }}
{{- printf "%s:%s" $name (.image.tag | default .version) }}
{{- end }}
{{- end }}

{{- define "disque-operator.image" -}}
{{- include "disque-operator.imageName" (dict "image" .Values.image "registry" .Values.image.registry "version" .Chart.AppVersion) }}
{{- end }}

{{- define "disque-operator.brokerImage" -}}
{{- $registry := .Values.brokerImage.registry | default .Values.image.registry }}
{{- include "disque-operator.imageName" (dict "image" .Values.brokerImage "registry" $registry "version" .Chart.AppVersion) }}
{{- end }}

{{- /* The watched namespaces, which get a role each; empty if all are watched. */ -}}
{{- define "disque-operator.namespaces" -}}
{{- .Values.watch.namespaces | default list | uniq | sortAlpha | toJson }}
{{- end }}

{{- /* Fails if the Kubernetes cluster does not have a required kind. */ -}}
{{- define "disque-operator.needs" -}}
{{- $kind := .kind }}
{{- if not (.root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind)) }}
{{- fail (printf "%s.enabled is true, but the Kubernetes cluster has no %s (monitoring.coreos.com/v1): install the Prometheus Operator first, or set %s.enabled=false. With `helm template`, add --api-versions monitoring.coreos.com/v1/%s." .key $kind .key $kind) }}
{{- end }}
{{- end }}
