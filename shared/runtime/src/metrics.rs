//! Metrics: one registry a process, every name under the process's prefix.

use prometheus::{Encoder, IntGaugeVec, Opts, Registry, TextEncoder};

/// The registry of a process. Clones share it.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// A registry whose names all begin with `prefix` and `_`, holding `<prefix>_build_info{version}`.
    ///
    /// Fails only if `prefix` is no metric name.
    pub fn new(prefix: &str, version: &str) -> prometheus::Result<Self> {
        let registry = Registry::new_custom(Some(prefix.to_owned()), None)?;
        let build_info =
            IntGaugeVec::new(Opts::new("build_info", "Always 1; the label says which version runs."), &["version"])?;
        build_info.with_label_values(&[version]).set(1);
        registry.register(Box::new(build_info))?;
        Ok(Self { registry })
    }

    /// Where the rooms of a process register what they count.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Everything in the Prometheus text format. Fails only if two collectors contradict each other.
    pub fn encode(&self) -> prometheus::Result<Vec<u8>> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_info_names_the_version_under_the_prefix() {
        let metrics = Metrics::new("some_program", "1.2.3").unwrap();
        let text = String::from_utf8(metrics.encode().unwrap()).unwrap();
        assert!(text.contains("some_program_build_info{version=\"1.2.3\"} 1\n"), "{text}");
    }
}
