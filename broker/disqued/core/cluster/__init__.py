"""The cluster as one node sees it: its peers, the links to them, and lists of the nodes that hold a job."""
