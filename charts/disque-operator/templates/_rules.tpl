{{- /* Permissions of the operator. They must equal those in manifests/operator; a test compares them. */ -}}

{{- /* Permissions in each watched namespace. */ -}}
{{- define "disque-operator.rules" -}}
- apiGroups: [disque.dev]
  resources: [disqueclusters, disqueusers, disquequeues, disqueschedules, disquebackups]
  verbs: [get, list, watch]
- apiGroups: [disque.dev]
  resources: [disqueclusters/status, disqueusers/status, disquequeues/status, disqueschedules/status, disquebackups/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps, secrets, serviceaccounts]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [list, create, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end }}

{{- /* Permissions on objects without a namespace. */ -}}
{{- define "disque-operator.nodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- end }}

{{- /* Permissions in the operator's namespace: the Lease that elects the active pod. */ -}}
{{- define "disque-operator.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "disque-operator.fullname" . }}]
  verbs: [get, update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- end }}
