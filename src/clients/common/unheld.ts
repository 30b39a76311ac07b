import type { Socket } from 'node:net';
import { ChannelCredentials } from '@grpc/grpc-js';

/**
 * Credentials of connections that keep no process alive. A stream that is open for as long as its client is would keep a
 * process from ending that has done its work; the library has no way to say so, so the sockets are told.
 */
export class UnheldCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #sockets = new Set<Socket>();

  constructor(inner: ChannelCredentials) {
    super();
    this.#inner = inner;
  }

  /** The library holds a connection at the beginning of its first call: to be called after that. */
  letGo(): void {
    for (const socket of this.#sockets) socket.unref();
  }

  _isSecure(): boolean {
    return this.#inner._isSecure();
  }

  _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  _createSecureConnector(
    ...parameters: Parameters<ChannelCredentials['_createSecureConnector']>
  ): ReturnType<ChannelCredentials['_createSecureConnector']> {
    const connector = this.#inner._createSecureConnector(...parameters);
    return {
      connect: async (socket) => {
        const connected = await connector.connect(socket);
        const opened = connected.socket;
        this.#sockets.add(opened);
        opened.once('close', () => this.#sockets.delete(opened));
        return connected;
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
    };
  }
}
