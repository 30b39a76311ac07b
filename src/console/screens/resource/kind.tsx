import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, LogEvent, Rehearsal } from '../../api/shapes.js';
import { Fact, Facts, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Badge, Exactly, Foreign, RunLink, When } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { inWords, lengthMs } from '../../pure/moments.js';
import { protectionOf } from '../../pure/protection.js';
import { lastVersionOf } from '../../pure/resource-history.js';
import { codeOf, howTargetsDecide, inLowerCase, validation } from '../../pure/words.js';

type Resolved = Answer<'ResolveResourceResponse'>;

type Rehearsals = Answer<'ListRehearsalsResponse'>;

const TONE = { guarded: 'good', checked: 'warn', advisory: 'bad' } as const;

/** What the map says of the resource, and how well it is protected. */
export function Kind({ name, events }: { readonly name: string; readonly events: readonly LogEvent[] }) {
  const may = useMay();
  const resolved = useData(
    `resolve ${name}`,
    (signal) => get<Resolved>('/v1/resources/resolve', { signal, query: { name } }),
    { touchedBy: ({ kind }) => kind === 'conflict_map_put' },
  );
  const rehearsals = useData(
    may('ConflictMapService/ListRehearsals') ? 'rehearsals' : null,
    (signal) => get<Rehearsals>('/v1/rehearsals', { signal, query: { page_size: '1000' } }),
    { touchedBy: ({ kind }) => kind === 'conflict_map_put' || kind === 'rehearsal_recorded' },
  );
  if (resolved.value === undefined) return <ReadProblem problem={resolved.problem} stale={false} />;
  const { kind = '', actions = [], maxViewAge } = resolved.value;
  const rehearsal = rehearsals.value?.rehearsals?.find((one) => one.kind === kind) ?? null;
  const version = lastVersionOf(events, name);
  const age = lengthMs(maxViewAge);
  const protection = protectionOf({
    kind,
    validation: validation(resolved.value.validation),
    rehearsal: rehearsal?.recordedAt ? { counts: rehearsal.counts === true, whyNot: rehearsal.whyNot ?? '' } : null,
  });
  return (
    <Panel title="Kind and protection">
      <Facts>
        <Fact name="Kind">{kind === '' ? 'none matches' : <Foreign text={kind} class="mono" />}</Fact>
        <Fact name="Protection" wide>
          <Badge tone={TONE[protection.level]}>{protection.level}</Badge>
          <div class="aside">{protection.why}</div>
        </Fact>
        <Fact name="Actions">{actions.length === 0 ? 'none' : <Foreign text={actions.join(', ')} class="mono" />}</Fact>
        <Fact name="Its targets">
          {howTargetsDecide(resolved.value.validation)}
          {age !== null && `, at most ${inWords(age)} old`}
          <div class="aside mono">{validation(resolved.value.validation)}</div>
        </Fact>
        <Fact name="Version that was reported last">
          {version === null ? (
            'none, as far as the log was read'
          ) : (
            <>
              <Foreign text={version.version} class="mono" />
              <div class="aside">
                by <Foreign text={version.target} />, <When at={version.time} />
                {version.runId !== '' && (
                  <>
                    , of run <RunLink id={version.runId} />
                  </>
                )}
              </div>
            </>
          )}
        </Fact>
        <Fact name="Last rehearsal">
          <LastRehearsal rehearsal={rehearsal} />
        </Fact>
      </Facts>
    </Panel>
  );
}

function LastRehearsal({ rehearsal }: { readonly rehearsal: Rehearsal | null }) {
  if (rehearsal === null || !rehearsal.recordedAt)
    return <>{rehearsal?.required === true ? <span class="tone-bad">demanded, and none is recorded</span> : 'none'}</>;
  const failed = (rehearsal.cases ?? []).filter(({ outcome }) => codeOf(outcome, 'REHEARSAL_OUTCOME') !== 'PASSED');
  return (
    <>
      <span class={rehearsal.counts === true ? 'tone-good' : 'tone-bad'}>
        {rehearsal.counts === true ? 'counts' : 'does not count'}
      </span>
      , <When at={rehearsal.recordedAt} />
      <div class="aside">
        target <Foreign text={rehearsal.targetName ?? ''} />, {(rehearsal.cases ?? []).length - failed.length} of{' '}
        {(rehearsal.cases ?? []).length} cases passed
        {rehearsal.validUntil && (
          <>
            , valid until <Exactly at={rehearsal.validUntil} />
          </>
        )}
      </div>
      {failed.length > 0 && (
        <ul class="aside">
          {failed.map(({ name = '', outcome }) => (
            <li key={name}>
              <span class="mono">{name}</span>: {inLowerCase(codeOf(outcome, 'REHEARSAL_OUTCOME'))}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
