//! Certificates for tests, with the names that nbdkit and libnbd use.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tempfile::TempDir;

/// A folder of certificates: an authority, and a server and a client that it vouches for.
pub fn certificates() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().unwrap();
    fs::write(folder.path().join("ca-cert.pem"), authority.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    for (role, usage) in
        [("server", ExtendedKeyUsagePurpose::ServerAuth), ("client", ExtendedKeyUsagePurpose::ClientAuth)]
    {
        let mut params = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(folder.path().join(format!("{role}-cert.pem")), certificate.pem()).unwrap();
        fs::write(folder.path().join(format!("{role}-key.pem")), key.serialize_pem()).unwrap();
    }
    folder
}
