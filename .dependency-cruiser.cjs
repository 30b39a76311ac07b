/** The layers of the code, as a check. A rule says who may not see whom, and why. */
const forbid = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });
const only = (name, driver, rooms) =>
  forbid(
    name,
    `the driver ${driver} lives in its rooms`,
    { path: '^src/', pathNot: rooms },
    { path: `^node_modules/${driver}/` },
  );

module.exports = {
  forbidden: [
    forbid(
      'no-cycles',
      'a cycle has no beginning to read from',
      { path: '^src/', pathNot: '^src/gen/' },
      { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    ),
    forbid('domain-is-pure', 'the domain imports only itself', { path: '^src/domain/' }, { pathNot: '^src/domain/' }),
    forbid(
      'engine-sees',
      'the engine knows the domain and the storage interface',
      { path: '^src/engine/' },
      { path: '^src/', pathNot: '^src/(engine|domain)/|^src/storage/store\\.ts$' },
    ),
    forbid(
      'storage-sees',
      'storage knows the domain',
      { path: '^src/storage/' },
      { path: '^src/', pathNot: '^src/(storage|domain)/' },
    ),
    forbid(
      'services-see',
      'services never see transports, generated code or a concrete store',
      { path: '^src/services/' },
      { path: '^src/', pathNot: '^src/(services|domain|engine|platform|auth)/|^src/storage/store\\.ts$' },
    ),
    forbid(
      'auth-sees',
      'auth knows the domain and the platform',
      { path: '^src/auth/' },
      { path: '^src/', pathNot: '^src/(auth|domain|platform)/' },
    ),
    forbid(
      'platform-sees',
      'the platform knows nobody',
      { path: '^src/platform/' },
      { path: '^src/', pathNot: '^src/platform/' },
    ),
    forbid(
      'clients-see',
      'clients know the generated code only',
      { path: '^src/clients/' },
      { path: '^src/', pathNot: '^src/(clients|gen)/' },
    ),
    forbid(
      'transports-see',
      'transports call services',
      { path: '^src/transports/' },
      { path: '^src/(storage/postgres|storage/redis|clients|cli)/' },
    ),
    forbid(
      'grpc-not-http',
      'gRPC and HTTP never import each other',
      { path: '^src/transports/grpc/' },
      { path: '^src/transports/http/' },
    ),
    forbid(
      'http-not-grpc',
      'gRPC and HTTP never import each other',
      { path: '^src/transports/http/' },
      { path: '^src/transports/grpc/' },
    ),
    only('pg-in-storage', 'pg', '^src/(storage/postgres|clients/target|cli/demo)/|^src/cli/commands/doctor\\.ts$'),
    only('grpc-in-transports', '@grpc/grpc-js', '^src/(transports/grpc|clients|gen|cli)/'),
    only('oauth-in-target', 'oauth4webapi', '^src/clients/target/'),
    only('jose-in-auth', 'jose', '^src/(auth|clients/target)/'),
    only('hono-in-http', 'hono', '^src/(transports/http|cli/demo)/'),
    only('hono-server-in-http', '@hono/node-server', '^src/(transports/http|cli/demo)/'),
  ],
  options: {
    tsPreCompilationDeps: true,
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
};
