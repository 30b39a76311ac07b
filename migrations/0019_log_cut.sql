-- Old parts of a log are archived and cut: what was cut is said by an event at the head, `log_cut`, and is found here.
CREATE INDEX event_cut ON writ.event (namespace, revision) WHERE kind = 'log_cut';

-- Removes one portion of what the recorded cut gave up, the oldest first, so that what is left has no gap; returns how
-- many revisions. It takes nobody's word for how far: only what a `log_cut` event says, and never the last identity of
-- the database. It runs as the owner of the schema, since a coordinator's own role cannot delete from the log.
CREATE FUNCTION writ.cut_log(in_namespace text, in_limit bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first_kept bigint;
  first_there bigint;
  first_left bigint;
BEGIN
  SELECT max(least((e.body::json ->> 'firstRevision')::bigint, e.revision)) INTO first_kept
  FROM writ.event AS e WHERE e.namespace = in_namespace AND e.kind = 'log_cut';
  -- Before anything else: the least of a null and a number is the number.
  IF first_kept IS NULL THEN
    RETURN 0;
  END IF;
  SELECT least(first_kept, e.revision) INTO STRICT first_kept
  FROM writ.event AS e WHERE e.namespace = in_namespace AND e.kind = 'database_identified'
  ORDER BY e.revision DESC LIMIT 1;
  SELECT e.revision INTO STRICT first_there
  FROM writ.event AS e WHERE e.namespace = in_namespace ORDER BY e.revision LIMIT 1;
  first_left := least(first_kept, first_there + in_limit);
  IF first_left <= first_there THEN
    RETURN 0;
  END IF;
  -- Here, since only a superuser may make a setting of ours part of a function; and only for what follows.
  PERFORM set_config('writ.archiving', 'on', true);
  DELETE FROM writ.event_text AS t WHERE t.namespace = in_namespace AND t.revision < first_left;
  DELETE FROM writ.event_request AS q
  WHERE q.namespace = in_namespace AND q.revision < first_left AND q.request_id = ANY (ARRAY(
    SELECT DISTINCT unnest(e.request_ids) FROM writ.event AS e
    WHERE e.namespace = in_namespace AND e.revision < first_left));
  DELETE FROM writ.event AS e WHERE e.namespace = in_namespace AND e.revision < first_left;
  PERFORM set_config('writ.archiving', 'off', true);
  RETURN first_left - first_there;
END
$$;

REVOKE ALL ON FUNCTION writ.cut_log(text, bigint) FROM PUBLIC;
