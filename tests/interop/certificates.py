"""Certificates for the TLS cases, made with openssl and not by the programs that are tested."""

import subprocess

LEAF = """
basicConstraints = CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = {use}
subjectAltName = {names}
"""


class Certificates:
    """An authority with a server's and a client's certificate, in files of a folder.

    `ca`, `cert`, `key`, `client_cert` and `client_key` are their paths.
    """

    def __init__(self, folder, name):
        self.folder = folder / name
        self.folder.mkdir()
        self.ca, ca_key = self.folder / "ca.pem", self.folder / "ca.key"
        self._openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name} authority"),
            *("-addext", "keyUsage = critical, keyCertSign, cRLSign"),
            *("-keyout", ca_key, "-out", self.ca),
        )
        names = "DNS:localhost, IP:127.0.0.1, IP:::1"
        self.cert, self.key = self._leaf("server", "serverAuth", names)
        self.client_cert, self.client_key = self._leaf("client", "clientAuth", "DNS:client")

    def _leaf(self, name, use, names):
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(LEAF.format(use=use, names=names))
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", key, "-out", request),
        )
        self._openssl(
            *("x509", "-req", "-days", "2", "-in", request, "-CA", self.ca),
            *("-CAkey", self.folder / "ca.key", "-CAcreateserial"),
            *("-extfile", extensions, "-out", cert),
        )
        return cert, key

    @staticmethod
    def _openssl(*arguments):
        command = ["openssl", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
