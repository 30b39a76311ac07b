-- What a call is told that is repeated by its key: the refusal that ended a waiting request, and the runs that a
-- StopRuns stopped. Both are JSON; null where there is nothing to tell.
ALTER TABLE writ.lease ADD COLUMN end_refusal text;
ALTER TABLE writ.key_binding ADD COLUMN stopped text;
