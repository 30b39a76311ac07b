/** Something wrong with a route table. */
export interface RouteTableProblem {
  /** Path of the value, such as `routes[2].writes[0].resource`. */
  readonly path: string;
  readonly message: string;
}

/** Problems that are told at once; more of them help nobody. */
const MAX_TOLD = 100;

/** A route table that cannot be used; says everything that is wrong with it. */
export class RouteTableError extends Error {
  override readonly name = 'RouteTableError';
  readonly problems: readonly RouteTableProblem[];

  constructor(problems: readonly RouteTableProblem[]) {
    const told = problems.slice(0, MAX_TOLD);
    const lines = told.map(({ path, message }) => `\n  ${path === '' ? 'the document' : path}: ${message}`);
    super(`the route table cannot be used:${lines.join('')}`);
    this.problems = told;
  }
}

/** `routes[2].writes[0].resource` */
export function pathOf(steps: readonly PropertyKey[]): string {
  return steps.reduce<string>((path, step) => {
    if (typeof step === 'number') return `${path}[${step}]`;
    const name = String(step);
    if (!/^[A-Za-z0-9_-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
    return path === '' ? name : `${path}.${name}`;
  }, '');
}
