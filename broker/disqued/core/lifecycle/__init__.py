"""The life of a job: its states, the verbs that change them, and the events that rooms hear."""
