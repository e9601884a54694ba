# push.py
import http.client, json, os, random, sys, time, urllib.error, urllib.request, uuid

URL = os.environ.get("SWITCHBOARD_URL", "http://127.0.0.1:8080") + "/v1/push"
KEY = os.environ.get("SWITCHBOARD_KEY", "")


def push(target, name, data):
    """Pushes to a channel, a user or a client, and returns the results."""
    # With a key, a repeated push is stored once.
    body = json.dumps({"key": str(uuid.uuid4()), target: name, "data": data}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + KEY}
    for _ in range(5):
        try:
            with urllib.request.urlopen(urllib.request.Request(URL, body, headers), timeout=10) as answer:
                return json.load(answer)["results"]
        except urllib.error.HTTPError as e:
            problem, after = e.read().decode(), e.headers.get("Retry-After", "1")
            if e.code < 500 and e.code != 429:
                raise RuntimeError(f"refused: {problem}")  # a repetition would be refused, too
        except (OSError, http.client.HTTPException, ValueError) as e:  # no answer, or a part of one
            problem, after = e, "1"
        time.sleep(float(after) * (1 + random.random()))
    raise RuntimeError(f"not known whether it is stored: {problem}")


if __name__ == "__main__":
    print(json.dumps(push(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
