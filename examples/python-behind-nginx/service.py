"""Pages: a small service that knows nothing of Writ, and does what any service with several writers should.

    python3 service.py 8081

A write says which version it was made from (If-Match; "0" of a page that is not there yet), and may be sent again by its
Idempotency-Key. Check, change and key happen together, under one lock. Who calls, the proxy says in Writ-Run-Id.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

PAGES = {"welcome": {"version": 1, "text": "Hello."}}
ANSWERS = {}  # by caller and key: what was asked, and what was answered. In memory, like the pages
LOCK = Lock()


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        page = PAGES.get(self.name())
        if page is None:
            return self.refuse(404, "There is no such page.")
        self.answer(200, page)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        condition = self.headers.get("If-Match")
        if condition is None:
            return self.refuse(428, "Say which version was read: If-Match with its ETag.")
        caller, key = self.headers.get("Writ-Run-Id", ""), self.headers.get("Idempotency-Key")
        request = (self.path, condition, body)
        with LOCK:
            asked, answered = ANSWERS.get((caller, key), (request, None))
            if asked != request:
                return self.refuse(422, "This key was used for another request.")
            if answered is None:
                answered = self.put(json.loads(body)["text"], condition, caller)
                if answered[0] == 200 and key is not None:
                    ANSWERS[caller, key] = request, answered
        self.answer(*answered)

    def put(self, text, condition, caller):
        """Writes the page if the condition holds; under the lock."""
        version = PAGES.get(self.name(), {"version": 0})["version"]
        if condition != f'"{version}"':
            return problem(412, "Another version is there.", current_version=str(version))
        PAGES[self.name()] = page = {"version": version + 1, "text": text, "by": caller}
        return 200, page

    def name(self):
        return self.path.removeprefix("/pages/")

    def refuse(self, status, detail):
        self.answer(*problem(status, detail))

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 200 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        if status == 200:
            self.send_header("ETag", f'"{body["version"]}"')
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def problem(status, detail, **more):
    """A refusal that a machine can act on (RFC 9457)."""
    what_to_do = "Read the page, and decide anew on what is there."
    return status, {"title": "Refused", "status": status, "detail": detail, "retryable": False, "next": what_to_do, **more}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Pages)
    print(server.server_address[1], flush=True)
    server.serve_forever()
