-- A look-up by the primary key must not be planned by another index that only shares the namespace with it. On a table
-- without statistics both cost the same, and the one that was taken read all keys of the namespace for each key that an
-- append proves new. A partial index serves only the queries that repeat its condition, which no look-up by key does.

DROP INDEX writ.key_binding_run;
DROP INDEX writ.lease_run;
DROP INDEX writ.admission_check;

-- The purge: keys of a run go with it, keys of no run by age.
CREATE INDEX key_binding_run ON writ.key_binding (namespace, run_id) WHERE run_id <> '';
CREATE INDEX key_binding_loose ON writ.key_binding (namespace, bound_at_us) WHERE run_id = '';

CREATE INDEX lease_run ON writ.lease (namespace, run_id, lease_id) WHERE run_id <> '';

-- A repeated report is found by its check; the purge takes them with their lease.
CREATE INDEX admission_check ON writ.admission (namespace, lease_id, request_id, admitted_at_us) WHERE lease_id <> '';
