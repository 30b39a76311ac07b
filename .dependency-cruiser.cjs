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
      'route-table-stands-alone',
      'what the target kit and the gateways share: of the domain only what resources, segments of patterns and change classes are',
      { path: '^src/route-table/' },
      {
        pathNot:
          '^src/route-table/|^src/domain/(resource|pattern-segment|change-class)\\.ts$|^node_modules/(zod|jose)/',
      },
    ),
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
      {
        path: '^src/',
        pathNot: '^src/(services|domain|engine|platform|auth|route-table)/|^src/storage/(store|event-stream)\\.ts$',
      },
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
      'clients know the generated code and route tables only',
      { path: '^src/clients/' },
      { path: '^src/', pathNot: '^src/(clients|gen|route-table)/' },
    ),
    forbid(
      'rehearsal-sees',
      'the rehearsal speaks to services from outside: it knows what clients know',
      { path: '^src/rehearsal/' },
      { path: '^src/', pathNot: '^src/(rehearsal|clients|gen|route-table)/' },
    ),
    forbid(
      'transports-see',
      'transports call services',
      { path: '^src/transports/' },
      { path: '^src/(storage/postgres|storage/redis|clients|cli)/' },
    ),
    forbid(
      'methods-are-neutral',
      'what gRPC and HTTP share knows neither',
      { path: '^src/transports/(methods|messages)/' },
      { path: '^src/transports/(grpc|http)/' },
    ),
    forbid(
      'contract-sees',
      'the contract as data stands beside the generated code',
      { path: '^src/contract/' },
      { path: '^src/', pathNot: '^src/(contract|gen)/' },
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
    only('pg-in-storage', 'pg', '^src/(storage/postgres|clients/target|cli/demo)/|^src/cli/doctor/database\\.ts$'),
    only('redis-in-its-rooms', 'ioredis', '^src/(storage/redis|clients/target)/'),
    only('grpc-in-transports', '@grpc/grpc-js', '^src/(transports/grpc|clients|gen|cli|rehearsal)/'),
    only('oauth-in-its-rooms', 'oauth4webapi', '^src/(auth|clients/target)/'),
    only('dpop-in-runner', 'dpop', '^src/clients/runner/'),
    only('jose-in-auth', 'jose', '^src/(auth|clients/target|route-table)/'),
    only(
      'hono-in-http',
      'hono',
      '^src/(transports/http|cli/demo)/|^src/clients/target/(gate-hono|conditional-http|idempotency-http)\\.ts$',
    ),
    only('hono-server-in-http', '@hono/node-server', '^src/(transports/http|cli/demo)/'),
  ],
  options: {
    tsPreCompilationDeps: true,
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    // It cannot read TSX; scripts/check-console-layers.mjs does.
    exclude: { path: '^src/console/' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
    },
  },
};
