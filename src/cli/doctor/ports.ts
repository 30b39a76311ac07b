import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { parseEndpoint } from '../../clients/common/channel.js';
import type { Config } from '../../platform/config.js';
import { ANSWER_MS, type Finding, ok, warning, wrong } from './finding.js';

/** A port that is taken is no trouble if it is the coordinator who took it. */
export async function ports({ host, grpcPort, httpPort, tls: files }: Config): Promise<Finding[]> {
  const readiness = httpPort === 0 ? null : await coordinatorOn(host, httpPort, files !== null);
  const look = async (what: string, number: number): Promise<Finding> => {
    if (number === 0) return ok(what, '0: a free one is picked at the start');
    if (!(await listens(host, number))) return ok(what, `${host}:${number} is free`);
    if (readiness === null) return wrong(what, `${host}:${number} is taken by something else`);
    return ok(what, `${host}:${number}: a coordinator runs here, ${readiness ? 'ready' : 'not ready'}`);
  };
  return [await look('gRPC port', grpcPort), await look('HTTP port', httpPort)];
}

/** Where commands would call; another machine's coordinator is looked at no closer. */
export async function reachable(endpoint: string): Promise<Finding> {
  const { hostname, port } = new URL(`grpc://${parseEndpoint(endpoint).address}`);
  return (await listens(hostname.replace(/^\[|\]$/g, ''), Number(port)))
    ? ok('endpoint', `${endpoint}, which commands call, takes connections`)
    : warning(
        'endpoint',
        `${endpoint}, which commands call, takes no connections: \`writ serve\` starts a coordinator`,
      );
}

/** Whether the coordinator there is ready; null: none answers, or it wants a client certificate. */
async function coordinatorOn(host: string, number: number, secure: boolean): Promise<boolean | null> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${number}`;
  try {
    const answer = JSON.parse(await (secure ? getSecurely(authority) : getPlainly(authority))) as {
      ready?: unknown;
      reason?: unknown;
    };
    if (answer.reason === 'NOT_READY') return false;
    return answer.ready === true ? true : null;
  } catch {
    return null;
  }
}

async function getPlainly(authority: string): Promise<string> {
  return (await fetch(`http://${authority}/readyz`, { signal: AbortSignal.timeout(ANSWER_MS) })).text();
}

/** Whose certificate it is does not matter here: nothing is told to it, and what it says is only shown. */
async function getSecurely(authority: string): Promise<string> {
  const asked = request(`https://${authority}/readyz`, {
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(ANSWER_MS),
    agent: false,
  }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return text(response);
}

function listens(host: string, number: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: number, timeout: ANSWER_MS });
    const done = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket
      .once('connect', () => done(true))
      .once('error', () => done(false))
      .once('timeout', () => done(false));
  });
}
