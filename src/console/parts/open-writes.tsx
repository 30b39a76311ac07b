import type { OpenWrite } from '../api/shapes.js';
import { type Column, Table } from './table.js';
import { Foreign, LeaseLink, Resource, RunLink, When } from './text.js';

interface OpenWritesProps {
  readonly writes: readonly OpenWrite[];
  /** A run's own page does not say whose they are. */
  readonly withRun?: boolean;
  readonly onSettle?: (write: OpenWrite) => void;
}

/** Writes that were let in, and of which nobody knows yet what became. */
export function OpenWrites({ writes, withRun = true, onSettle }: OpenWritesProps) {
  const columns = [RESOURCE, ACTION, ...(withRun ? [RUN] : []), LET_IN, IN_DOUBT];
  if (onSettle !== undefined) columns.push(settling(onSettle));
  return <Table columns={columns} rows={writes} keyOf={({ admissionId }) => admissionId} />;
}

const RESOURCE: Column<OpenWrite> = {
  name: 'Resource',
  cell: ({ resource, target, unsure }) => (
    <>
      <Resource name={resource} />
      <div class="aside">
        asked by <Foreign text={target || 'a target'} />
        {unsure === true && ', which cannot tell'}
      </div>
    </>
  ),
};

const ACTION: Column<OpenWrite> = { name: 'Action', cell: ({ action }) => action };

const RUN: Column<OpenWrite> = {
  name: 'Run',
  fit: 'tight',
  cell: ({ runId, leaseId }) => (
    <>
      {runId && <RunLink id={runId} />}
      {leaseId && (
        <div class="aside">
          lease <LeaseLink id={leaseId} />
        </div>
      )}
    </>
  ),
};

const LET_IN: Column<OpenWrite> = { name: 'Let in', fit: 'tight', cell: ({ admittedAt }) => <When at={admittedAt} /> };

const IN_DOUBT: Column<OpenWrite> = {
  name: 'In doubt',
  fit: 'tight',
  cell: ({ inDoubtSince }) => <When at={inDoubtSince} absent="no, its lease lives" />,
};

const settling = (onSettle: (write: OpenWrite) => void): Column<OpenWrite> => ({
  name: 'Settle',
  unnamed: true,
  fit: 'tight',
  cell: (write) =>
    write.inDoubtSince && (
      <button type="button" class="small" onClick={() => onSettle(write)}>
        Settle…
      </button>
    ),
});
