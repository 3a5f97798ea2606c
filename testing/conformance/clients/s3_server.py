# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""A minimal S3 server for fetching models, which rejects requests with a wrong signature."""
import hashlib
import hmac
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape


class S3:
    """Buckets are the subdirectories of a directory. `down` makes it answer 503, `cut` truncates the next bodies."""

    def __init__(self, folder, key, secret):
        store = self
        self.folder = folder
        self.down = False
        self.cut = 0
        self.refused = 0
        self.asked = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body, **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if store.cut > 0 and status in (200, 206) and len(body) > 1000:
                    store.cut -= 1
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    self.connection.close()
                    self.close_connection = True
                    return
                self.wfile.write(body)

            def error(self, status, code):
                self.reply(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

            def do_GET(self):
                path, _, query = self.path.partition("?")
                store.asked.append(f"{self.command} {self.path}")
                if store.down:
                    return self.error(503, "SlowDown")
                if not signed(self, path, query, key, secret):
                    store.refused += 1
                    return self.error(403, "SignatureDoesNotMatch")
                bucket, _, name = urllib.parse.unquote(path).lstrip("/").partition("/")
                root = store.folder / bucket
                if not root.is_dir():
                    return self.error(404, "NoSuchBucket")
                if not name:
                    return self.listing(root, dict(urllib.parse.parse_qsl(query)).get("prefix", ""))
                if not (root / name).is_file():
                    return self.error(404, "NoSuchKey")
                body = (root / name).read_bytes()
                tag = f'"{hashlib.md5(body).hexdigest()}"'
                asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                if not asked:
                    return self.reply(200, body, ETag=tag, Accept_Ranges="bytes")
                start, end = int(asked.group(1)), int(asked.group(2) or len(body) - 1)
                part = body[start : end + 1]
                reported = f"bytes {start}-{start + len(part) - 1}/{len(body)}"
                return self.reply(206, part, ETag=tag, Content_Range=reported)

            do_HEAD = do_GET

            def listing(self, root, prefix):
                found = sorted(f for f in root.rglob("*") if f.is_file())
                found = [f for f in found if str(f.relative_to(root)).startswith(prefix)]
                inner = "".join(
                    f"<Contents><Key>{escape(str(f.relative_to(root)))}</Key><Size>{f.stat().st_size}</Size>"
                    f"<ETag>&quot;{hashlib.md5(f.read_bytes()).hexdigest()}&quot;</ETag>"
                    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>" for f in found)
                self.reply(200, (
                    '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
                    f"<KeyCount>{len(found)}</KeyCount>{inner}</ListBucketResult>").encode(), Content_Type="application/xml")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()


def signed(request, path, query, key, secret):
    """Whether the request has a valid signature (version 4) of the key."""
    given = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)",
        request.headers.get("Authorization", ""))
    if not given or given.group(1) != key:
        return False
    _, day, region, names, signature = given.groups()
    pairs = sorted(
        (urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~"))
        for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([
        request.command, path, "&".join(f"{k}={v}" for k, v in pairs),
        "".join(f"{n}:{' '.join(request.headers[n].split())}\n" for n in names.split(";")), names,
        request.headers["x-amz-content-sha256"]])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join([
        "AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    made = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        made = hmac.new(made, part.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(hmac.new(made, text.encode(), hashlib.sha256).hexdigest(), signature)
