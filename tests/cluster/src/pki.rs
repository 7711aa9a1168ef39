//! The cluster's certificates: two authorities, a leaf per component, the key that signs ServiceAccount tokens, and the
//! kubeconfigs that use them (the layout that kubeadm made common).

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::error::Error;
use crate::paths::Paths;

/// A certificate authority whose files lie in the cluster's folder.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes one and writes `FILE.crt` and `FILE.key`.
    pub(crate) fn create(pki: &Path, file: &str) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let params = authority(file)?;
        write(&pki.join(format!("{file}.crt")), &params.self_signed(&key)?.pem())?;
        write(&pki.join(format!("{file}.key")), &key.serialize_pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    /// The authority whose key lies in `pki` under the name `file`.
    fn open(pki: &Path, file: &str) -> Result<Self, Error> {
        let path = pki.join(format!("{file}.key"));
        let key = KeyPair::from_pem(&fs::read_to_string(&path).map_err(Error::io("read", &path))?)?;
        Ok(Self { issuer: Issuer::new(authority(file)?, key) })
    }

    /// Writes `FILE.crt` and `FILE.key`: a leaf for both sides of a connection.
    pub(crate) fn leaf(
        &self,
        pki: &Path,
        file: &str,
        common_name: &str,
        group: Option<&str>,
        names: &[&str],
    ) -> Result<(), Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
        params.distinguished_name = subject(common_name, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        write(&pki.join(format!("{file}.crt")), &params.signed_by(&key, &self.issuer)?.pem())?;
        write(&pki.join(format!("{file}.key")), &key.serialize_pem())
    }
}

/// Makes everything that the control plane needs; `api_address` is the API server's own.
pub(crate) fn create(paths: &Paths, api_address: &str, service_address: &str) -> Result<(), Error> {
    let pki = &paths.pki();
    // For root alone: these are the keys to a cluster that runs as root.
    DirBuilder::new().recursive(true).mode(0o700).create(pki).map_err(Error::io("make", pki))?;
    let cluster = Authority::create(pki, "ca")?;
    let front = Authority::create(pki, "front-ca")?;
    let names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        service_address,
        api_address,
    ];
    cluster.leaf(pki, "apiserver", "kube-apiserver", None, &names)?;
    cluster.leaf(pki, "kubelet-client", "apiserver-kubelet-client", Some("system:masters"), &[])?;
    front.leaf(pki, "front", "front-proxy-client", None, &[])?;
    cluster.leaf(pki, "admin", "admin", Some("system:masters"), &[])?;
    for component in ["controller-manager", "scheduler", "proxy"] {
        cluster.leaf(pki, component, &format!("system:kube-{component}"), None, &[])?;
    }
    let tokens = KeyPair::generate()?;
    write(&pki.join("sa.key"), &tokens.serialize_pem())?;
    write(&pki.join("sa.pub"), &tokens.public_key_pem())?;
    for user in ["admin", "controller-manager", "scheduler", "proxy"] {
        kubeconfig(paths, user, &format!("https://{api_address}:6443"), &paths.inner_kubeconfig(user))?;
    }
    Ok(())
}

/// Makes a kubelet's certificate, for serving and for the API server, and its kubeconfig.
pub(crate) fn create_kubelet(paths: &Paths, node: &str, address: &str, api_address: &str) -> Result<(), Error> {
    let user = kubelet_user(node);
    let cluster = Authority::open(&paths.pki(), "ca")?;
    cluster.leaf(&paths.pki(), &user, &format!("system:node:{node}"), Some("system:nodes"), &[node, address])?;
    kubeconfig(paths, &user, &format!("https://{api_address}:6443"), &paths.inner_kubeconfig(&user))
}

/// The name of a kubelet's files.
pub(crate) fn kubelet_user(node: &str) -> String {
    format!("kubelet-{node}")
}

/// Writes a kubeconfig for `user` that reaches the API server at `server`.
pub(crate) fn kubeconfig(paths: &Paths, user: &str, server: &str, file: &Path) -> Result<(), Error> {
    let pki = paths.pki();
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": paths.name(), "cluster": {"server": server, "certificate-authority": pki.join("ca.crt")}}],
        "users": [{"name": user, "user": {
            "client-certificate": pki.join(format!("{user}.crt")),
            "client-key": pki.join(format!("{user}.key")),
        }}],
        "contexts": [{"name": paths.name(), "context": {"cluster": paths.name(), "user": user}}],
        "current-context": paths.name(),
    });
    write(file, &config.to_string())
}

fn authority(name: &str) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name = subject(&format!("kubernetes-{name}"), None);
    Ok(params)
}

fn subject(common_name: &str, group: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io("write", path))
}
