# CONTRIBUTING.md says what each of these is for. All of them work on a fresh clone, and build what they need.

# The oldest Kubernetes that must pass. The newest is what everything runs that is not told another.
OLDEST := 1.34

CARGO := cargo --locked
CLUSTER :=
IMAGE :=
POD_IMAGE :=
RUNS :=
SEED :=
TARGET :=

.DEFAULT_GOAL := help
.PHONY: help demo image test lint unit fuzz e2e e2e-newest e2e-oldest bench-webhook bench-agent down

help:
	@echo 'make demo    a real Kubernetes on this machine, Cofferdam on it, sessions that open in a browser; make down ends it'
	@echo '             CLUSTER=current IMAGE=...: on the cluster of kubectl, which is asked first; POD_IMAGE=...: what its pods run'
	@echo 'make test    lint, unit, fuzz and e2e: all that there is'
	@echo 'make image   the image alone'
	@echo 'CONTRIBUTING.md has the rest.'

demo:
ifneq ($(CLUSTER),$(filter current,$(CLUSTER)))
	$(error CLUSTER can only be `current`: the cluster of the current kubectl context)
endif
ifeq ($(CLUSTER)$(IMAGE),current)
	$(error give IMAGE=..., the image where your cluster can pull it: `make image` makes it)
endif
	@$(CARGO) build --package cofferdam-cluster --package cofferdam-e2e --bins
	@$(CARGO) run --quiet --package cofferdam-e2e --bin cofferdam-demo --  $(if $(filter current,$(CLUSTER)),--current) $(if $(IMAGE),--image $(IMAGE)) \
		$(if $(POD_IMAGE),--pod-image $(POD_IMAGE))

image:
	@$(CARGO) run --quiet --package cofferdam-e2e --bin cofferdam-image

test: lint unit fuzz e2e

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	$(CARGO) clippy --package cofferdam-fuzz --test fuzz -- --deny warnings

unit:
	$(CARGO) test --workspace --exclude cofferdam-e2e

fuzz:
	$(if $(RUNS),COFFERDAM_FUZZ_RUNS=$(RUNS) )$(if $(SEED),COFFERDAM_FUZZ_SEED=$(SEED) )$(CARGO) test --package cofferdam-fuzz --test fuzz -- --nocapture $(TARGET)

e2e: e2e-newest e2e-oldest

e2e-newest:
	$(CARGO) test --package cofferdam-e2e -- --nocapture

# What happens when something fails does not hang on the version; what the API server takes and evaluates does.
e2e-oldest:
	COFFERDAM_KUBERNETES=$(OLDEST) $(CARGO) test --package cofferdam-e2e --test manifests --test hardening --test routing -- --nocapture
	COFFERDAM_KUBERNETES=$(OLDEST) $(CARGO) test --package cofferdam-e2e --test disturbing -- --nocapture admission_policies

# All programs in one build, so that none of them is built another way than those that it is held against.
bench-webhook:
	$(CARGO) build --release --package cofferdam-webhook --package cofferdam-cluster --package cofferdam-bench
	@$(CARGO) run --release --quiet --package cofferdam-bench

# As released, so the agent too is built as it ships.
bench-agent:
	$(CARGO) build --release --package cofferdam-agent --package cofferdam-cluster --package cofferdam-bench
	@$(CARGO) run --release --quiet --package cofferdam-bench -- agent address

down:
	@$(CARGO) run --quiet --package cofferdam-cluster -- --name demo down
