import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { asProblem, type Problem } from '../api/problem.js';
import { Page } from './page.js';
import { ProblemNote } from './problem.js';

/** A screen that is fetched when somebody goes there first. */
export function later(title: string, load: () => Promise<{ readonly default: ComponentType }>): ComponentType {
  let loaded: ComponentType | null = null;
  return function Later() {
    const [screen, setScreen] = useState<ComponentType | null>(() => loaded);
    const [problem, setProblem] = useState<Problem | null>(null);
    useEffect(() => {
      if (loaded !== null) return;
      load()
        .then(({ default: found }) => {
          loaded = found;
          setScreen(() => found);
        })
        .catch((error) => setProblem(asProblem(error)));
    }, []);
    const Loaded = screen;
    if (Loaded !== null) return <Loaded />;
    return <Page title={title}>{problem !== null && <ProblemNote problem={problem} />}</Page>;
  };
}
