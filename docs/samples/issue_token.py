# issue_token.py
import base64, hashlib, hmac, json, os, sys, time

SECRET = os.environ["SWITCHBOARD_AUTH_HS256_SECRET"].encode()


def issue_token(user, **claims):
    """Returns a token that lets a client connect as the user within an hour."""
    claims = {"sub": user, "exp": int(time.time()) + 3600, **claims}
    signed = encode({"alg": "HS256", "typ": "JWT"}) + b"." + encode(claims)
    return (signed + b"." + base64url(hmac.new(SECRET, signed, hashlib.sha256).digest())).decode()


def encode(value):
    return base64url(json.dumps(value).encode())


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


if __name__ == "__main__":
    print(issue_token(sys.argv[1], channels={"chat:42": "sub pub"}))
