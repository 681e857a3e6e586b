"""A certificate authority of the cluster's own, its certificates, and kubeconfig files that carry them."""

import base64
import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID: Final = dt.timedelta(days=30)
CLOCK_SKEW: Final = dt.timedelta(minutes=5)


class Authority:
    """Signs certificates and writes them, with their keys, to one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("hera-specon test cluster", ())
        ca = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(ca.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, file_name: str, user: str, groups: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """Write FILE_NAME.crt and FILE_NAME.key for a user of Kubernetes, or a server at these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = _builder(_name(user, groups), self._name, key).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        path = self.folder / f"{file_name}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path, _write_key(self.folder / f"{file_name}.key", key)

    def service_account_keys(self) -> tuple[Path, Path]:
        """Write the key pair that signs the tokens of service accounts; public key first."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = self.folder / "service-accounts.pub"
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return public, _write_key(self.folder / "service-accounts.key", key)

    def kubeconfig(self, server: str, file_name: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write FILE_NAME.kubeconfig with all in it that this user needs to reach the API server."""
        certificate, key = self.issue(file_name, user, groups)
        path = self.folder / f"{file_name}.kubeconfig"
        path.write_text(_kubeconfig(server, self.certificate, certificate, key))
        path.chmod(0o600)
        return path


def _kubeconfig(server: str, authority: Path, certificate: Path, key: Path) -> str:
    """The text of a kubeconfig file with one cluster and one user, which needs no other file."""
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    user = {"client-certificate-data": _encoded(certificate), "client-key-data": _encoded(key)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "specon", "cluster": cluster}],
            "users": [{"name": "specon", "user": user}],
            "contexts": [{"name": "specon", "context": {"cluster": "specon", "user": "specon"}}],
            "current-context": "specon",
        }
    )


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _name(common: str, organizations: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALID)
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
