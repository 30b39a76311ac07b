import { Gauge, type Registry } from 'prom-client';

/** Registers a gauge without labels that is read at each scrape, and 0 before it is told where from. */
export function scrapedGauge(registry: Registry, name: string, help: string): (read: () => number) => void {
  let current = () => 0;
  new Gauge({
    registers: [registry],
    name,
    help,
    collect() {
      this.set(current());
    },
  });
  return (read) => {
    current = read;
  };
}
