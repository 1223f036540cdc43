{{- /* What the operator may do, the same as in manifests/operator (a test compares). */ -}}

{{- /* In each namespace that it looks after. */ -}}
{{- define "disque-operator.rules" -}}
- apiGroups: [disque.dev]
  resources: [disqueclusters]
  verbs: [get, list, watch]
- apiGroups: [disque.dev]
  resources: [disqueclusters/status]
  verbs: [patch]
{{- end }}

{{- /* In its own namespace: the Lease that sees that one acts. */ -}}
{{- define "disque-operator.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}
