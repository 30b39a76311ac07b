/**
 * What the suite puts between the service under rehearsal and the coordinator: a proxy that passes everything on as it
 * is, and can do what happens in real life: be out of reach, say nothing, and let the answer to a fence check travel for
 * a while, in which other things happen.
 */
export interface StandIn {
  /** Where the service, or its gateway, is to find the coordinator. */
  readonly listen: string;
  /** What to change so that it does, for a message. */
  readonly howToAsk: string;
  /** Whether a fence check ever came this way: else the service asks past the proxy, or nobody. */
  readonly wasAsked: boolean;
  /** Takes the coordinator away: connections break, and no new one is accepted. Idempotent. */
  cut(): Promise<void>;
  /** It says nothing any more: connections stay and new ones are accepted, and nothing passes. Idempotent. */
  hush(): void;
  /** Gives it back; connections that were silent break. Idempotent. */
  mend(): Promise<void>;
  /** Holds the answers to fence checks that match, from now on until they are let go. */
  holdVerdict(matches: (presented: PresentedToCheck) => boolean): HeldVerdict;
  stop(): Promise<void>;
}

/** By what a fence check knows its run; one of the two is empty. */
export interface PresentedToCheck {
  readonly leaseId: string;
  readonly credential: string;
}

/** A fence check whose answer stands still on its way. */
export interface HeldVerdict {
  /** Resolves when the coordinator has decided and the answer stands here. */
  readonly reached: Promise<void>;
  /** Lets it go on; idempotent, also before it has come. */
  letGo(): void;
}

interface Hold extends HeldVerdict {
  readonly matches: (presented: PresentedToCheck) => boolean;
  readonly arrive: () => void;
  readonly free: Promise<void>;
}

/** The verdicts that are to stand still. */
export class Holds {
  private readonly holds = new Set<Hold>();

  add(matches: Hold['matches']): HeldVerdict {
    let arrive: () => void = () => undefined;
    let free: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const isFree = new Promise<void>((resolve) => {
      free = resolve;
    });
    const hold: Hold = {
      matches,
      reached,
      arrive,
      free: isFree,
      letGo: () => {
        this.holds.delete(hold);
        free();
      },
    };
    this.holds.add(hold);
    return hold;
  }

  /** What to do with the answer to such a check; undefined: it is not to be held. `presented` is read only if need be. */
  of(presented: () => PresentedToCheck): ((send: () => void) => void) | undefined {
    if (this.holds.size === 0) return undefined;
    const by = presented();
    const hold = [...this.holds].find(({ matches }) => matches(by));
    if (hold === undefined) return undefined;
    return (send) => {
      hold.arrive();
      void hold.free.then(send);
    };
  }

  letAllGo(): void {
    for (const hold of this.holds) hold.letGo();
  }
}
