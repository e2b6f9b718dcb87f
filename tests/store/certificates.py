"""A certificate authority for tests."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """Signs certificates. Its root certificate is `NAME.crt` in the directory."""

    def __init__(self, directory, name="authority"):
        self._directory = directory
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._write(name, self._sign(self._name, self._key, is_authority=True), self._key)[0]

    def issue(self, name, host=None):
        """Make a certificate for a user or a host. Return its file and the file of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(name, self._sign(_name(name), key, host=host), key)

    def _sign(self, subject, key, *, host=None, is_authority=False):
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name, certificate, key):
        files = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        encoding = serialization.Encoding.PEM
        secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        for file, data in zip(files, (certificate.public_bytes(encoding), secret), strict=True):
            file.touch(0o600)
            file.write_bytes(data)
        return files


def _name(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
