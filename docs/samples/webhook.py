# webhook.py
import hashlib, hmac, http.server, json, os, re, time

SECRETS = os.environ["SWITCHBOARD_WEBHOOKS_SECRETS"].encode().split(b",")
seen = set()  # in production a table of your database, written together with the work


def verify(secrets, timestamp, signatures, body):
    """Reports whether the body was signed with one of the secrets in the last five minutes."""
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        return False
    given = [s.strip().encode() for s in signatures.split(",")]
    signed = timestamp.encode() + b"." + body
    want = ["v1=" + hmac.new(secret, signed, hashlib.sha256).hexdigest() for secret in secrets]
    return any([hmac.compare_digest(w.encode(), g) for w in want for g in given])


def handle(event):
    print(event["type"], event.get("user") or event.get("channel"), flush=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(self.receive())
        self.end_headers()

    def receive(self):
        length = int(self.headers["Content-Length"])
        if length > 2 << 20:
            return 413
        body = self.rfile.read(length)
        timestamp = self.headers.get("Switchboard-Timestamp", "")
        if not verify(SECRETS, timestamp, self.headers.get("Switchboard-Signature", ""), body):
            return 401
        for event in json.loads(body)["events"]:
            if event["id"] not in seen:  # events may arrive again
                handle(event)
                seen.add(event["id"])
        return 204


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 9000))), Receiver).serve_forever()
