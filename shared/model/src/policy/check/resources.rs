//! cpu, memory and storage: of a container, and of all containers of a pod.

use super::{Checked, Checker, values};
use crate::{
    names::is_label_key,
    policy::{
        Ceilings, DefaultRequest, PodCeilings, Requests, Resources,
        file::{
            profile::{EachRequest, PodFile, ResourcesFile},
            value::{Amount, Given, RequestFile, RequestsFile},
        },
    },
    quantity::Quantity,
};

/// The most cores and bytes of a pod. Schedulers count thousandths of a core, and bytes, in 63 bits.
const MOST_CPU: &str = "9P";
const MOST_BYTES: &str = "9E";

/// The ceilings of a container, each with its line.
#[derive(Clone, Copy)]
pub(super) struct GivenLimits {
    cpu: Given<Quantity>,
    memory: Given<Quantity>,
    pub(super) ephemeral_storage: Given<Quantity>,
}

impl Checker<'_> {
    pub(super) fn resources(&self, file: ResourcesFile, defaults: &Resources) -> Checked<(Resources, GivenLimits)> {
        let limits_file = file.limits.unwrap_or_default();
        let limits = GivenLimits {
            cpu: self.ceiling("cpu", limits_file.cpu, defaults.limits.cpu)?,
            memory: self.ceiling("memory", limits_file.memory, defaults.limits.memory)?,
            ephemeral_storage: self.ceiling(
                "ephemeral-storage",
                limits_file.ephemeral_storage,
                defaults.limits.ephemeral_storage,
            )?,
        };
        let requests = match file.requests {
            Some(RequestsFile::Limits) => Requests {
                cpu: DefaultRequest::Limit,
                memory: DefaultRequest::Limit,
                ephemeral_storage: DefaultRequest::Limit,
            },
            Some(RequestsFile::Each(each)) => self.requests(&each, defaults.requests, limits)?,
            None => self.requests(&EachRequest::default(), defaults.requests, limits)?,
        };
        let resources = Resources {
            limits: Ceilings {
                cpu: limits.cpu.value,
                memory: limits.memory.value,
                ephemeral_storage: limits.ephemeral_storage.value,
            },
            requests,
            extended: match file.extended {
                Some(names) => self.extended(names)?,
                None => defaults.extended.clone(),
            },
            claims: file.claims.unwrap_or(defaults.claims),
        };
        Ok((resources, limits))
    }

    /// An amount that has to be more than nothing.
    pub(super) fn ceiling(
        &self,
        key: &str,
        file: Option<Given<Amount>>,
        default: Quantity,
    ) -> Checked<Given<Quantity>> {
        let ceiling = file.map_or(Given::nowhere(default), |given| Given { value: given.value.0, line: given.line });
        if ceiling.value <= Quantity::ZERO {
            return Err(self.invalid(ceiling.line, key, "must be more than 0: nothing runs within it"));
        }
        Ok(ceiling)
    }

    fn extended(&self, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        for name in &names {
            let is_huge_page = name
                .value
                .strip_prefix("hugepages-")
                .is_some_and(|size| Quantity::parse(size).is_ok_and(|size| size > Quantity::ZERO));
            let is_extended = name.value.split_once('/').is_some_and(|(domain, _)| {
                is_label_key(&name.value) && domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io")
            });
            if !is_huge_page && !is_extended {
                let problem = "holds a name that is no extended resource; write one such as example.com/gpu";
                return Err(self.invalid(name.line, "extended", problem));
            }
        }
        Ok(values(names))
    }

    fn requests(&self, file: &EachRequest, defaults: Requests, limits: GivenLimits) -> Checked<Requests> {
        Ok(Requests {
            cpu: self.request("cpu", file.cpu, defaults.cpu, limits.cpu)?,
            memory: self.request("memory", file.memory, defaults.memory, limits.memory)?,
            ephemeral_storage: self.request(
                "ephemeral-storage",
                file.ephemeral_storage,
                defaults.ephemeral_storage,
                limits.ephemeral_storage,
            )?,
        })
    }

    fn request(
        &self,
        key: &str,
        file: Option<Given<RequestFile>>,
        default: DefaultRequest,
        ceiling: Given<Quantity>,
    ) -> Checked<DefaultRequest> {
        let Some(given) = file else {
            // A default above a small ceiling is no mistake of the file's: it means as much as the limit.
            return Ok(match default {
                DefaultRequest::Amount(amount) if amount > ceiling.value => DefaultRequest::Limit,
                fitting => fitting,
            });
        };
        match given.value {
            RequestFile::Limit => Ok(DefaultRequest::Limit),
            RequestFile::Amount(amount) if amount <= Quantity::ZERO => {
                Err(self.invalid(given.line, key, "must be more than 0: a request of nothing counts as missing"))
            }
            RequestFile::Amount(amount) if amount > ceiling.value => {
                let problem = format!("requests {amount}, which is more than its limit of {}", ceiling.value);
                Err(self.invalid(given.line, key, problem))
            }
            RequestFile::Amount(amount) => Ok(DefaultRequest::Amount(amount)),
        }
    }

    pub(super) fn pod(&self, file: &PodFile, defaults: PodCeilings, limits: GivenLimits) -> Checked<PodCeilings> {
        let containers = file.containers.unwrap_or(Given::nowhere(defaults.containers));
        let sum = file.sum.unwrap_or(Given::nowhere(defaults.sum));
        if containers.value == 0 {
            return Err(self.invalid(containers.line, "containers", "must be at least 1"));
        }
        if containers.value > sum.value {
            let problem = format!(
                "does not fit: {} containers at their ceilings are more than a `sum` of {}; make `sum` at least \
                 `containers`",
                containers.value, sum.value
            );
            return Err(self.contradiction(&[("containers", containers.line), ("sum", sum.line)], problem));
        }
        for (key, limit, most) in [
            ("cpu", limits.cpu, MOST_CPU),
            ("memory", limits.memory, MOST_BYTES),
            ("ephemeral-storage", limits.ephemeral_storage, MOST_BYTES),
        ] {
            if limit.value.times(sum.value) > Quantity::constant(most) {
                let problem =
                    format!("is {}, and {} times that is more than Kubernetes counts", limit.value, sum.value);
                return Err(self.contradiction(&[(key, limit.line), ("sum", sum.line)], problem));
            }
        }
        Ok(PodCeilings { containers: containers.value, sum: sum.value })
    }
}
