import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client, credentials, Metadata } from '@grpc/grpc-js';

/**
 * The client side of a measurement: the generated messages over plain grpc-js, without the retries, request ids and
 * deadlines of the SDK, so that as little as possible of what is measured is the client's.
 */

/**
 * The generated code of the build that is measured.
 * @typedef {{ lease: any, fence: any, credential: any, run: any, map: any, types: any }} Gen
 */

/** @param {string} dist @returns {Promise<Gen>} */
export async function loadGenerated(dist) {
  const load = (/** @type {string} */ name) =>
    import(pathToFileURL(join(dist, 'gen', 'writ', 'v1', `${name}.js`)).href);
  const [lease, fence, credential, run, map, types] = await Promise.all(
    ['lease_service', 'fence_service', 'credential_service', 'run_service', 'conflict_map_service', 'types'].map(load),
  );
  return { lease, fence, credential, run, map, types };
}

/**
 * @typedef {object} Held
 * @property {string} leaseId
 * @property {bigint} token
 * @property {string[]} resources
 * @property {number} expiresAtMs  since 1970, by the database's clock
 */

/** Roles of one coordinator over one connection. @typedef {ReturnType<typeof connect>} Clients */

/** @param {Gen} gen @param {string} endpoint @param {Record<string, string>} tokens */
export function connect(gen, endpoint, tokens) {
  const client = new Client(endpoint, credentials.createInsecure(), {
    'grpc.max_receive_message_length': 64 << 20,
    'grpc.service_config_disable_resolution': 1,
  });
  const call = caller(client);
  const as = (/** @type {string} */ role) => metadataOf(String(tokens[role]));
  const { LeaseServiceService: leases } = gen.lease;
  const acquire = call(leases.acquireWriteSet, as('runner'));
  const release = call(leases.releaseLease, as('runner'));
  const renew = call(leases.renewLeases, as('runner'));
  const check = call(gen.fence.FenceServiceService.checkFence, as('target'));
  const issue = call(gen.credential.CredentialServiceService.issueCredential, as('runner'));
  const createRun = call(gen.run.RunServiceService.createRun, as('runner'));
  const updateRun = call(gen.run.RunServiceService.updateRunState, as('runner'));
  const getLease = call(leases.getLease, as('operator'));
  const putMap = call(gen.map.ConflictMapServiceService.putConflictMap, as('admin'));
  return {
    gen,
    close: () => client.close(),

    /** A stream in both directions. @param {any} method @param {string} role */
    open({ path, requestSerialize, responseDeserialize }, role) {
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, as(role));
    },

    /** @returns {Promise<string>} the run's id */
    async newRun() {
      const { run } = await createRun(
        gen.run.CreateRunRequest.fromPartial({
          purpose: 'bench',
          allowed: [{ pattern: '{all...}', actions: ['*'] }],
          authorityEndsAt: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 12 * 3_600), nanos: 0 },
          idempotencyKey: randomUUID(),
        }),
      );
      return run.runId;
    },

    /** @param {string} runId */
    async finishRun(runId) {
      const request = {
        runId,
        state: gen.run.RunState.RUN_STATE_FINISHED,
        reason: 'done',
        idempotencyKey: randomUUID(),
      };
      await updateRun(gen.run.UpdateRunStateRequest.fromPartial(request));
    },

    /**
     * A request that is made once and sent often, each time with a key of its own.
     * @param {string} runId @param {string[]} resources @param {number} ttlSeconds
     */
    writeSet(runId, resources, ttlSeconds) {
      const access = gen.types.Access.ACCESS_WRITE;
      const scope = gen.types.Scope.SCOPE_EXACT;
      return gen.lease.AcquireWriteSetRequest.fromPartial({
        runId,
        ttl: { seconds: BigInt(Math.floor(ttlSeconds)), nanos: Math.floor((ttlSeconds % 1) * 1e9) },
        entries: resources.map((resource) => ({ resource, access, scope, actions: ['set'] })),
      });
    },

    /** @param {any} writeSet @returns {Promise<Held>} */
    async acquire(writeSet) {
      const { outcome } = await acquire({ ...writeSet, idempotencyKey: randomUUID() });
      if (outcome?.$case !== 'lease') throw new Error(`not granted: ${outcome?.value?.message}`);
      const { leaseId, entries, expiresAt } = outcome.value;
      return {
        leaseId,
        token: entries[0].fencingToken,
        resources: writeSet.entries.map((/** @type {any} */ e) => e.resource),
        expiresAtMs: Number(expiresAt.seconds) * 1_000 + Math.ceil(expiresAt.nanos / 1e6),
      };
    },

    /** @param {string} runId @param {string} leaseId */
    async release(runId, leaseId) {
      const { outcome } = await release({ namespace: '', runId, lease: { $case: 'leaseId', value: leaseId } });
      if (outcome !== gen.lease.ReleaseOutcome.RELEASE_OUTCOME_RELEASED) throw new Error(`released: ${outcome}`);
    },

    /**
     * The number of leases that were not renewed, and the least time that any of the others now has.
     * @param {string} runId @param {string[]} leaseIds
     */
    async renew(runId, leaseIds) {
      const renewals = leaseIds.map((leaseId) => ({ leaseId, ttl: undefined, progressMarker: undefined }));
      const { results } = await renew({ namespace: '', runId, renewals });
      const lost = results.filter((/** @type {any} */ result) => result.outcome?.$case !== 'lease');
      return { lost: lost.length, reason: lost[0]?.outcome?.value?.message ?? '' };
    },

    /** A check request for the first so many resources of a lease. @param {Held} held @param {number} writes */
    checkOf(held, writes) {
      return gen.fence.CheckFenceRequest.fromPartial({
        leaseId: held.leaseId,
        writes: held.resources
          .slice(0, writes)
          .map((resource) => ({ resource, action: 'set', fencingToken: held.token })),
      });
    },

    async check(/** @type {any} */ request) {
      const { allowed, results } = await check(request);
      if (!allowed) throw new Error(`denied: ${results.find((/** @type {any} */ r) => !r.allowed)?.message}`);
    },

    /** @param {any} request */
    async isAllowed(request) {
      return (await check(request)).allowed;
    },

    /** A credential for the target. @param {Held & { runId: string }} held @returns {Promise<string>} */
    async issue({ runId, leaseId }) {
      const { outcome } = await issue(
        gen.credential.IssueCredentialRequest.fromPartial({ runId, leaseId, audience: 'target' }),
      );
      if (outcome?.$case !== 'credential') throw new Error(`not issued: ${outcome?.value?.message}`);
      return outcome.value.token;
    },

    /** A check by a credential in place of the lease id. @param {{ held: Held, token: string }} presented */
    async checkBy({ held, token }) {
      const writes = [{ resource: held.resources[0], action: 'set' }];
      await this.check(gen.fence.CheckFenceRequest.fromPartial({ credential: token, writes }));
    },

    /** @param {string} leaseId */
    async isActive(leaseId) {
      const { lease } = await getLease({ namespace: '', leaseId });
      return lease?.state === gen.types.LeaseState.LEASE_STATE_ACTIVE;
    },

    /** @param {string} document */
    async putConflictMap(document) {
      const request = { document, expectedVersion: 0n, reason: 'bench' };
      await putMap(gen.map.PutConflictMapRequest.fromPartial(request));
    },
  };
}

/** @param {string} token */
function metadataOf(token) {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  return metadata;
}

/** @param {Client} client */
export function caller(client) {
  return (/** @type {any} */ method, /** @type {Metadata} */ metadata) => (/** @type {any} */ request) =>
    /** @type {Promise<any>} */ (
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = method;
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, (error, answer) =>
          error === null ? resolve(answer) : reject(error),
        );
      })
    );
}
