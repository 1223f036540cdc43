"""The commands of `kubectl disque`: each module has `options(parser)` and `run(kubectl, options)`."""
