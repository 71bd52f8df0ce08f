"""Plan clusters that serve large language models: layouts, replicas, nodes and their reasons, from closed forms."""

__version__ = "0.1.0"
