//! A real Kubernetes on a bare machine.
