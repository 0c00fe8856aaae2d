"""Credentials by which the parts of a job know each other. Owns: the form of the token file. Does
not know about: messages and their receivers.
"""

from __future__ import annotations

import os
import ssl
from typing import Optional, Tuple

TLS_NAME = "job.elastane"
"""The name in the certificates of all jobs: a part may be at any address."""


def split(text: str) -> Tuple[str, str]:
    """The token, and the certificate of the job with its key as PEM; that is empty where the parts of
    the job do not encrypt. `text` is what the file of the token holds: the token in the first line,
    the rest below."""
    token, _, pem = text.strip().partition("\n")
    return token.strip(), pem.strip()


def context(pem: str, purpose: ssl.Purpose) -> Optional[ssl.SSLContext]:
    """TLS context of one side of a connection; None if nothing is encrypted.

    Both sides have the same certificate, and accept no other."""
    if not pem:
        return None
    is_client = purpose is ssl.Purpose.SERVER_AUTH
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if is_client else ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.load_verify_locations(cadata=pem[: pem.index("-----BEGIN PRIVATE KEY-----")])
    made.verify_mode = ssl.CERT_REQUIRED
    if not is_client:
        # Nothing is resumed, and what a client leaves unread resets the connection when it closes it.
        made.num_tickets = 0
    # The key is read from a file only, and is not to lie on a disk.
    file = os.memfd_create("identity")
    try:
        os.write(file, pem.encode())
        made.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return made
