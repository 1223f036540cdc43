"""What tests against a real Kubernetes share: the API, clusters, brokers, load and its account; nothing is shipped."""
