import { WritError } from './errors.js';

/** More replicas than this are for a name with several addresses, or for a balancer. */
const MAX_ENDPOINTS = 16;

/** One replica, and the connection to it. */
interface Connected<C> {
  readonly endpoint: string;
  readonly connection: C;
}

/**
 * Equal replicas, of which one is called at a time. The order is shuffled once, so that many clients spread over all of
 * them; whoever finds one out of reach moves on to the next, round and round (F5). Connections are made when they are
 * needed, and kept: a waiting call may still hang on an earlier one.
 */
export class Endpoints<C> {
  private readonly order: readonly string[];
  private readonly connections = new Map<string, C>();
  private at = 0;

  /** `open` is called for each when it is first used. Throws a WritError that names what is wrong. */
  constructor(
    endpoints: readonly string[],
    private readonly open: (endpoint: string) => C,
  ) {
    if (endpoints.length < 1 || endpoints.length > MAX_ENDPOINTS)
      throw new WritError('INVALID_ARGUMENT', `give 1 to ${MAX_ENDPOINTS} endpoints, not ${endpoints.length}`);
    if (new Set(endpoints).size < endpoints.length)
      throw new WritError('INVALID_ARGUMENT', `an endpoint is given twice: ${endpoints.join(', ')}`);
    this.order = shuffled(endpoints);
  }

  /** The one to call now. */
  get current(): Connected<C> {
    const endpoint = this.order[this.at % this.order.length] as string;
    let connection = this.connections.get(endpoint);
    if (connection === undefined) {
      connection = this.open(endpoint);
      this.connections.set(endpoint, connection);
    }
    return { endpoint, connection };
  }

  /** Another one from now on. Does nothing when somebody has moved on from it already: many calls fail at one time. */
  moveOnFrom(endpoint: string): void {
    if (this.order[this.at % this.order.length] === endpoint) this.at += 1;
  }

  /** All connections made so far; none is made any more. */
  opened(): Iterable<C> {
    return this.connections.values();
  }
}

function shuffled(items: readonly string[]): string[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other] as string, order[last] as string];
  }
  return order;
}
