"""Who the certificates of a run say that somebody is."""

import base64
import stat

import pytest
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from tests.e2e.cluster.api import kubeconfig
from tests.e2e.cluster.certificates import Authority


def test_a_certificate_names_user_groups_and_hosts_and_its_authority():
    authority = Authority.make()
    pair = authority.issue("admin", organisations=["system:masters"], hosts=["127.0.0.1", "*.kubeflow-system.svc"])
    issued = x509.load_pem_x509_certificate(pair.certificate)
    assert issued.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "admin"
    assert issued.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["*.kubeflow-system.svc"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    issued.verify_directly_issued_by(authority.certificate)


def test_another_authority_issued_nothing_of_it():
    issued = x509.load_pem_x509_certificate(Authority.make().issue("admin").certificate)
    with pytest.raises(InvalidSignature):
        issued.verify_directly_issued_by(Authority.make().certificate)


def test_a_key_is_its_owners_alone_and_another_process_can_issue(tmp_path):
    Authority.make().pair.write(tmp_path, "ca")
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600
    read = Authority.read(tmp_path, "ca")
    x509.load_pem_x509_certificate(read.issue("webhook").certificate).verify_directly_issued_by(read.certificate)


def test_a_kubeconfig_names_no_file():
    written = yaml.safe_load(kubeconfig("https://127.0.0.1:1", b"authority", {"token": "secret"}))
    cluster = written["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"authority"
    assert written["users"][0]["user"] == {"token": "secret"}
    assert not [
        key for key in (*cluster, *written["users"][0]["user"]) if key in ("certificate-authority", "client-key")
    ]
