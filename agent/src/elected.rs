//! What one agent of the cluster does for all: lost nodes, silent agents, network policies, and what belongs to nobody.
