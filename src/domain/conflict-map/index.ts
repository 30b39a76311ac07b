/**
 * The conflict map (design: the conflict map): what an admin's document says about kinds of resources,
 * what touches what, and which writes of two runs exclude each other. The document is compiled once per
 * version; write sets are expanded with the compiled map, on the way of every acquire.
 */

export { type CompileResult, compileConflictMap, compileStored, EMPTY_CONFLICT_MAP } from './compile.js';
export { type ConflictStep, findConflicts } from './conflicts.js';
export type { ConflictMapDocument, MapProblem } from './document.js';
export { childPath, parentPath } from './document.js';
export {
  type ExpandBounds,
  type ExpandedWriteSet,
  type ExpandResult,
  expandLeniently,
  expandWriteSet,
  type ObservedRefusal,
} from './expand.js';
export { type Explanation, explainConflict } from './explain.js';
export { kindsOf } from './judge.js';
export type { Alias, ConflictMap, ConflictRule, ImpliesRule, Kind, KindAction, ResourceSet, Task } from './map.js';
export {
  becauseOf,
  decidesByView,
  describeResource,
  isTracked,
  kindOf,
  observes,
  pathNamed,
  type ResourceDescription,
  resolveResource,
} from './map.js';
export { type TaskCollision, type TaskPair, taskMatrix } from './matrix.js';
export { MAX_PROBLEMS } from './problems.js';
export { startOf } from './requested.js';
export { ruleLocksOf } from './rule-locks.js';
export { type RuleAbout, rulesAbout } from './rules-about.js';
