const ADDRESS = /^https?:\/\/[^/?#]+(?:\/[^?#]*)?$/i;

/**
 * Options whose `origin`, where there is one, can stand before a request's path in the URL of a DPoP proof. Throws at
 * once: with one that is no address each proof would be refused, as if whoever made it were to blame.
 */
export function withPlainOrigin<O extends { readonly origin?: string }>(options: O): O {
  const { origin } = options;
  if (origin === undefined) return options;
  if (!ADDRESS.test(origin) || !URL.canParse(origin)) {
    const example = 'https://releases.example.com';
    throw new TypeError(`origin: how callers address the service, such as ${example}, not ${JSON.stringify(origin)}`);
  }
  return { ...options, origin: origin.replace(/\/+$/, '') };
}
