import type { Authenticator } from '../../src/auth/authenticator.js';
import { createLogger } from '../../src/platform/log.js';
import { SignIn, type SignInOptions } from '../../src/transports/http/sign-in.js';

/** Sessions of browsers as a coordinator in plain text on loopback has them, with the same key in every test. */
export function testSignIn(authenticator: Authenticator, more: Partial<SignInOptions> = {}): SignIn {
  return new SignIn({
    authenticator,
    secret: new Uint8Array(32).fill(9),
    embedded: null,
    oidc: null,
    consoleUrl: null,
    secure: false,
    refused: () => undefined,
    log: createLogger('silent'),
    ...more,
  });
}
