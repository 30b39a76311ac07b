"""Verifies a credential with PyJWT: python_verify.py JWKS_URL TOKEN ISSUER AUDIENCE

Prints its claims, or the name of the error.
"""

import json
import sys

import jwt

url, token, issuer, audience = sys.argv[1:]
key = jwt.PyJWKClient(url).get_signing_key_from_jwt(token).key
try:
    claims = jwt.decode(
        token,
        key,
        algorithms=["ES256"],
        issuer=issuer,
        audience=audience,
        leeway=5,
        options={"require": ["iss", "aud", "sub", "exp", "iat", "jti"]},
    )
except jwt.PyJWTError as error:
    print(type(error).__name__)
    sys.exit(1)
print(json.dumps(claims))
