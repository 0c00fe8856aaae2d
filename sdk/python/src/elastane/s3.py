"""Checkpoints in buckets of S3.

Owns: addresses (`s3://BUCKET/KEY`), the login, signatures (version 4), and that an object is there whole
or not at all. Does not know about: when one is made. Only the standard library is needed.

The login is in the variables that others read as well: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
and perhaps `AWS_SESSION_TOKEN`, `AWS_REGION`, and `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` for a server
that is not Amazon's.
"""

import hashlib
import hmac
import http.client
import os
import re
import shutil
import tempfile
import time
import urllib.parse
import xml.etree.ElementTree

SCHEME = "s3://"
# An object appears when all of its parts are there; Amazon takes 10,000.
_PART_BYTES = 64 << 20
_PARTS_MAX = 10_000
_PATIENCE_S = 60
_ATTEMPTS = 4
_SAVED = "x-amz-meta-elastane-saved-ns"


class BucketError(OSError):
    """The server of a bucket refuses a request, or does not answer."""


def is_address(path):
    return str(path).startswith(SCHEME)


class Object:
    """An object of a bucket, or, if the key ends with a slash or is empty, a folder."""

    def __init__(self, address, environ=None):
        environ = os.environ if environ is None else environ
        bucket, _, self.key = address[len(SCHEME) :].partition("/")
        if not bucket:
            raise BucketError(f"{address} names no bucket: s3://BUCKET/KEY")
        self.address = address
        self._id, self._secret, self._session = (
            _of_login(environ, name)
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        )
        if not (self._id and self._secret):
            raise BucketError(
                f"{address}: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; have the "
                "workload get them from a credential of the kind access-key"
            )
        regions = (_of_login(environ, name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION"))
        self._region = next(filter(None, regions), "us-east-1")
        url = _server(environ, self._region)
        self._url, self._root = url, f"{url.path.rstrip('/')}/{_quoted(bucket)}"

    def saved_ns(self):
        """When its content was taken, 0 if another program made it; None if it is not there."""
        status, headers, body = self._ask("HEAD", self.key)
        if status == 404:
            return None
        self._check(status, body)
        found = headers.get(_SAVED, "")
        return int(found) if found.isdigit() else 0

    def newest(self):
        """The newest object in this folder; None if there is none."""
        objects = [one for one in self._listed() if _name(one) == "Contents"]
        found = [(_text(one, "LastModified"), _text(one, "Key")) for one in objects]
        found = [(written, key) for written, key in found if not key.endswith("/")]
        last = max(found, default=(None, None))[0]
        keys = [key for written, key in found if written == last]
        if len(keys) < 2:
            return self._beside(keys[0]) if keys else None
        # The server counts in seconds.
        return max(map(self._beside, keys), key=lambda one: (one.saved_ns() or 0, _in_order(one.key)))

    def names(self):
        """The names of objects and folders in this folder."""
        keys = [_text(one, "Key") or _text(one, "Prefix") for one in self._listed()]
        names = [key[len(self._prefix()) :].rstrip("/") for key in keys]
        return [name for name in names if name]

    def _prefix(self):
        return self.key if not self.key or self.key.endswith("/") else f"{self.key}/"

    def _listed(self):
        """Objects and folders in this folder, as the server lists them."""
        after = None
        while True:
            query = {"list-type": "2", "prefix": self._prefix(), "delimiter": "/"}
            if after:
                query["continuation-token"] = after
            status, _, body = self._ask("GET", "", query)
            self._check(status, body)
            page = _parsed(body)
            yield from (one for one in page if _name(one) in ("Contents", "CommonPrefixes"))
            after = _text(page, "NextContinuationToken")
            if not after:
                return

    def read(self, most=None):
        """Its content, or the beginning of that; None if it is not there."""
        more = {} if most is None else {"range": f"bytes=0-{most - 1}"}
        status, _, body = self._ask("GET", self.key, {}, b"", more)
        if status == 404:
            return None
        self._check(status, body)
        return body

    def write(self, parts):
        """Writes these parts as the object. It appears whole, or the one before stays."""
        status, _, body = self._ask("PUT", self.key, {}, b"".join(parts))
        self._check(status, body)

    def open(self):
        """Its content, in a temporary file; None if it is not there."""
        for attempt in range(_ATTEMPTS):
            file = tempfile.TemporaryFile()
            try:
                if self._fetch(file):
                    file.seek(0)
                    return file
                file.close()
                return None
            except (BucketError, OSError, http.client.HTTPException) as error:
                file.close()
                if isinstance(error, BucketError) or attempt == _ATTEMPTS - 1:
                    raise _told(self.address, error) from error
                time.sleep(2**attempt / 2)

    def _fetch(self, file):
        connection, answer = self._begin("GET", self.key, {}, b"", {})
        try:
            if answer.status == 404:
                return False
            if _is_busy(answer.status):
                raise ConnectionError(f"{answer.status} {answer.reason}")
            if answer.status != 200:
                self._check(answer.status, answer.read(1 << 16))
            # A connection that ends early is an error, not a shorter file.
            wanted = int(answer.headers.get("Content-Length", -1))
            shutil.copyfileobj(answer, file, 8 << 20)
            if file.tell() != wanted:
                raise ConnectionError(f"{file.tell()} of {wanted} bytes came")
            return True
        finally:
            connection.close()

    def put(self, source, size, saved_ns):
        """Writes the content of a file as the object and returns True; an object with younger
        content stays. It appears whole, or the one before stays."""
        before = self.saved_ns()
        if before is not None and before > saved_ns:
            return False
        meta = {_SAVED: str(saved_ns)}
        if size <= _PART_BYTES:
            status, _, body = self._ask("PUT", self.key, {}, source.read(size), meta)
            self._check(status, body)
            return True
        status, _, body = self._ask("POST", self.key, {"uploads": ""}, b"", meta)
        self._check(status, body)
        upload = {"uploadId": _text(_parsed(body), "UploadId")}
        try:
            self._put_parts(source, size, upload)
        except BaseException:
            # An incomplete upload would cost money.
            self._ask("DELETE", self.key, upload)
            raise
        return True

    def _put_parts(self, source, size, upload):
        part_bytes = max(_PART_BYTES, -(-size // _PARTS_MAX))
        tags = []
        for number in range(1, -(-size // part_bytes) + 1):
            query = {"partNumber": str(number), **upload}
            status, headers, body = self._ask("PUT", self.key, query, source.read(part_bytes))
            self._check(status, body)
            if "etag" not in headers:
                raise BucketError(f"{self.address}: its server answers without the ETag of a part")
            tags.append(f"<Part><PartNumber>{number}</PartNumber><ETag>{headers['etag']}</ETag></Part>")
        whole = f"<CompleteMultipartUpload>{''.join(tags)}</CompleteMultipartUpload>".encode()
        status, _, body = self._ask("POST", self.key, upload, whole)
        self._check(status, body)
        # An error can come after the status was sent.
        if _name(_parsed(body)) == "Error":
            self._check(500, body)

    def delete(self):
        """Removes it; it may be gone already."""
        status, _, body = self._ask("DELETE", self.key)
        if status != 404:
            self._check(status, body)

    def _beside(self, key):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.key = key
        bucket = self.address[len(SCHEME) :].partition("/")[0]
        other.address = f"{SCHEME}{bucket}/{key}"
        return other

    def _check(self, status, body):
        if 200 <= status < 300:
            return
        code = message = ""
        if body:
            try:
                told = _parsed(body)
                code, message = _text(told, "Code"), _text(told, "Message")
            except BucketError:
                pass  # A proxy answers so.
        raise BucketError(f"{self.address}: {code or status} {message}".rstrip())

    def _ask(self, method, key, query=None, body=b"", more=None):
        """Status, headers (lower case) and body; again if the server is busy or away for a moment."""
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            try:
                connection, answer = self._begin(method, key, query or {}, body, more or {})
                try:
                    content = answer.read()
                finally:
                    connection.close()
                if not _is_busy(answer.status) or last:
                    headers = {name.lower(): value for name, value in answer.headers.items()}
                    return answer.status, headers, content
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise _told(self.address, error) from error
            time.sleep(2**attempt / 2)
        raise AssertionError("the last attempt returns or raises")

    def _begin(self, method, key, query, body, more):
        kinds = {"https": http.client.HTTPSConnection, "http": http.client.HTTPConnection}
        connection = kinds[self._url.scheme](self._url.netloc, timeout=_PATIENCE_S)
        path = f"{self._root}/{_quoted(key)}" if key else self._root
        text = "&".join(f"{_quoted(k, '')}={_quoted(v, '')}" for k, v in sorted(query.items()))
        try:
            headers = self._signed(method, path, text, body, more)
            connection.request(method, f"{path}?{text}" if text else path, body or None, headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _signed(self, method, path, query, body, more):
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": self._url.netloc, "x-amz-content-sha256": digest, "x-amz-date": now, **more}
        if self._session:
            headers["x-amz-security-token"] = self._session
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        request = "\n".join([method, path, query, lines, names, digest])
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        to_sign = "\n".join(
            ["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()]
        )
        key = f"AWS4{self._secret}".encode()
        for part in (*scope.split("/"), to_sign):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._id}/{scope}, SignedHeaders={names}, "
            f"Signature={key.hex()}"
        )
        if not body and method in ("PUT", "POST"):
            headers["Content-Length"] = "0"
        return headers


def _quoted(text, safe="/"):
    return urllib.parse.quote(text, safe=f"{safe}-_.~")


def _of_login(environ, name):
    """A value for a header: it appears in no error."""
    value = environ.get(name, "").strip()
    if not all("!" <= letter <= "~" for letter in value):
        raise BucketError(
            f"{name} has a character that is no letter, digit or sign of ASCII, such as a space or a line "
            "break; set it to one word"
        )
    return value


def _server(environ, region):
    name = next(
        (one for one in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if environ.get(one)), None
    )
    server = environ[name].strip() if name else f"https://s3.{region}.amazonaws.com"
    try:
        url = urllib.parse.urlsplit(server)
    except ValueError:
        url = None
    if url is None or url.scheme not in ("http", "https") or not url.netloc:
        raise BucketError(f"{name} is {server}; it is https://HOST or http://HOST:PORT")
    return url


def _is_busy(status):
    return status >= 500 or status == 429


def _in_order(key):
    """`model-9` comes before `model-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", key)]


def _parsed(body):
    try:
        return xml.etree.ElementTree.fromstring(body)
    except xml.etree.ElementTree.ParseError as error:
        raise BucketError(f"a server answers with something that is no XML: {error}") from error


def _name(element):
    return element.tag.rpartition("}")[2]


def _text(element, name):
    return next((one.text or "" for one in element if _name(one) == name), "")


def _told(address, error):
    if isinstance(error, BucketError):
        return error
    return BucketError(f"{address}: its server does not answer: {error}")
