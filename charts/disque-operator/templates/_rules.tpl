{{- /* What the operator may do, the same as in manifests/operator (a test compares). */ -}}

{{- /* In each namespace that it looks after. */ -}}
{{- define "disque-operator.rules" -}}
- apiGroups: [disque.dev]
  resources: [disqueclusters]
  verbs: [get, list, watch]
- apiGroups: [disque.dev]
  resources: [disqueclusters/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps, secrets, serviceaccounts, services]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end }}

{{- /* In its own namespace: the Lease that sees that one acts. */ -}}
{{- define "disque-operator.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}
