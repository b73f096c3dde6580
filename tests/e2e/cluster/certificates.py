"""A certificate authority of one run: who the control plane's parts, its admin and the webhooks are."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = datetime.timedelta(days=30)
_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """`<name>.crt` and `<name>.key` in the folder; the key is its owner's alone."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        return certificate, key


@dataclass(frozen=True)
class Authority:
    """Issues certificates that live and die with the run."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls) -> Self:
        """A new one."""
        key = _new_key()
        return cls(_sign("topolab-e2e", (), (), key.public_key(), None, key), key)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """The one that `pair.write` left in the folder, for another process of the run."""
        key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes()), key)

    @property
    def pair(self) -> Certificate:
        """Its own certificate and key."""
        return Certificate(_pem(self.certificate), _key_pem(self.key))

    def issue(self, name: str, *, organisations: Sequence[str] = (), hosts: Sequence[str] = ()) -> Certificate:
        """A certificate for a user (name, groups) or a server (hosts: names and addresses)."""
        key = _new_key()
        issued = _sign(name, organisations, hosts, key.public_key(), self.certificate, self.key)
        return Certificate(_pem(issued), _key_pem(key))


def signing_key() -> tuple[bytes, bytes]:
    """A private key and its public key, as PEM: for service account tokens."""
    key = _new_key()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _key_pem(key), public


def _new_key() -> ec.EllipticCurvePrivateKey:
    # Milliseconds, where RSA takes up to a second of the start.
    return ec.generate_private_key(ec.SECP256R1())


def _sign(
    name: str,
    organisations: Sequence[str],
    hosts: Sequence[str],
    public_key: ec.EllipticCurvePublicKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organisations),
        ]
    )
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + VALID)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
