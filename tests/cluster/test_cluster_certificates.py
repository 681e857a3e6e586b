"""The certificates of a test cluster are what Kubernetes takes them for."""

from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_certificate_is_signed_by_the_authority(authority: Authority) -> None:
    certificate, _ = authority.issue("kubelet", "system:node:node-1", ("system:nodes",))
    read(certificate).verify_directly_issued_by(read(authority.certificate))


def test_a_certificate_names_its_user_and_groups(authority: Authority) -> None:
    certificate, _ = authority.issue("kubelet", "system:node:node-1", ("system:nodes", "others"))
    subject = read(certificate).subject
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:node:node-1"]
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [name.value for name in groups] == ["system:nodes", "others"]


def test_a_server_is_known_by_name_and_by_address(authority: Authority) -> None:
    certificate, _ = authority.issue("server", "server", hosts=("kubernetes.default", "10.96.0.1"))
    names = read(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.96.0.1"]


def test_keys_are_for_their_owner_alone(authority: Authority) -> None:
    _, key = authority.issue("server", "server")
    _, signing = authority.service_account_keys()
    kubeconfig = authority.kubeconfig("https://10.90.0.10:6443", "admin", "admin")
    assert [oct(path.stat().st_mode & 0o777) for path in (key, signing, kubeconfig)] == ["0o600"] * 3


def test_a_kubeconfig_file_needs_no_other_file(authority: Authority) -> None:
    content = yaml.safe_load(authority.kubeconfig("https://10.90.0.10:6443", "admin", "admin").read_text())
    assert content["clusters"][0]["cluster"].keys() == {"server", "certificate-authority-data"}
    assert content["users"][0]["user"].keys() == {"client-certificate-data", "client-key-data"}


def test_the_authority_signs_with_a_curve_that_every_client_knows(authority: Authority) -> None:
    key = read(authority.certificate).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
