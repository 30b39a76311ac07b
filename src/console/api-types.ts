// Generated from docs/openapi.json by `npm run gen`. Do not edit.

export interface paths {
    "/access/v1/evaluation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Whether a run may write a resource, for who speaks AuthZEN
         * @description Whether a run may write a resource, for who speaks AuthZEN: a denial is an answer. Role: target.
         */
        post: operations["evaluateAccess"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/v1/evaluations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The same for up to 256 questions, each decided for itself
         * @description The same for up to 256 questions, each decided for itself. Role: target.
         */
        post: operations["evaluateAccesses"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/oauth2/introspect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Whether a credential counts now, and what it says (RFC 7662)
         * @description Whether a credential counts now, and what it says (RFC 7662). It says nothing about a write. Roles: target, runner, operator, admin, auditor.
         */
        post: operations["introspectToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blockers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Says who holds, or waits for, what a write to a resource would meet, by its id or by a rule of the conflict map on another one, and which rules there are
         * @description Says who holds, or waits for, what a write to a resource would meet, by its id or by a rule of the conflict map on another one, and which rules there are. Roles: runner, operator, admin, auditor.
         */
        get: operations["findBlockers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/checkpoint": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A signed statement of how far the log goes, or went, and what it hashes to
         * @description A signed statement of how far the log goes, or went, and what it hashes to. FAILED_PRECONDITION with CURSOR_EXPIRED for a place that was cut. Roles: auditor, operator, admin.
         */
        get: operations["getCheckpoint"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/checkpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the checkpoints that replicas signed on schedule, newest first, each with where it was sent
         * @description Lists the checkpoints that replicas signed on schedule, newest first, each with where it was sent: what there should be there. The last 10,000 of a namespace. A log is proved by what was kept elsewhere, not by this list. Roles: auditor, operator, admin.
         */
        get: operations["listCheckpoints"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads the map, or an older version of it
         * @description Reads the map, or an older version of it. Roles: all.
         */
        get: operations["getConflictMap"];
        /**
         * Replaces the map against the version it was read at
         * @description Replaces the map against the version it was read at; re-expands every live and waiting lease that the change touches, in the same commit. Role: admin.
         */
        put: operations["putConflictMap"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compares a version of the map with another one, or with a document
         * @description Compares a version of the map with another one, or with a document. Roles: admin, operator, auditor.
         */
        post: operations["diffConflictMap"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says whether two write sets conflict, every step by rule
         * @description Says whether two write sets conflict, every step by rule. Roles: admin, operator, auditor, runner.
         */
        post: operations["explainConflict"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/matrix": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which pairs of tasks can collide, and why
         * @description Which pairs of tasks can collide, and why. Roles: admin, operator, auditor.
         */
        get: operations["getTaskMatrix"];
        put?: never;
        /**
         * Which pairs of tasks can collide, and why
         * @description Which pairs of tasks can collide, and why. Roles: admin, operator, auditor.
         */
        post: operations["getTaskMatrixOf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says which live leases a document would hit
         * @description Says which live leases a document would hit. Roles: admin, operator, auditor.
         */
        post: operations["previewConflictMap"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Puts an older version of the map again, as a new one
         * @description Puts an older version of the map again, as a new one. Role: admin.
         */
        post: operations["rollbackConflictMap"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The form of a conflict map, as a JSON schema for editors
         * @description The form of a conflict map, as a JSON schema for editors. Roles: all.
         */
        get: operations["getConflictMapSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs the assertions of a document
         * @description Runs the assertions of a document; stores nothing. Roles: admin, operator, auditor.
         */
        post: operations["testConflictMap"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/unmatched": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Resources that were asked for or checked and that no kind matches
         * @description Resources that were asked for or checked and that no kind matches. Roles: admin, operator, auditor.
         */
        get: operations["listUnmatchedResources"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checks a document and stores nothing
         * @description Checks a document and stores nothing. Roles: admin, operator, auditor.
         */
        post: operations["validateConflictMap"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conflict-map/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists versions, newest first
         * @description Lists versions, newest first. Roles: admin, operator, auditor.
         */
        get: operations["listConflictMapVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/credentials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Issues a credential for one target
         * @description Issues a credential for one target. It ends before its lease can end, at most 60 s from now, and says no more than the lease's write set; renewing the lease changes nothing about it, a new one is had by calling again. Only the principal that created the run is given any. Role: runner.
         */
        post: operations["issueCredential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/credentials/introspect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says whether a credential counts now, as RFC 7662 has it, linearizably
         * @description Says whether a credential counts now, as RFC 7662 has it, linearizably. A target is told of credentials for itself, a runner of those of its own runs; about all others the answer is `active: false`. Roles: target, runner, operator, admin, auditor.
         */
        post: operations["introspectCredential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/credentials/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes credentials that are out count for nothing
         * @description Makes credentials that are out count for nothing: when it returns, no check allows them. Targets that verify offline take them until they end by themselves. The lease lives on, and new ones can be had. Roles: operator, admin; runner: those of its own leases and runs.
         */
        post: operations["revokeCredential"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Searches the log
         * @description Searches the log. FAILED_PRECONDITION with HISTORY_FORKED when the log has another event, or none, where the page before ended, or ends before `afterRevision`, with CURSOR_EXPIRED when what came next was cut: begin anew. Roles: auditor, operator, admin.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/cut": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cuts off the beginning of the log up to a checkpoint, with the free texts of it
         * @description Cuts off the beginning of the log up to a checkpoint, with the free texts of it. The caller has it in an archive; an event at the head, `log_cut`, records where the log begins, the checkpoint and the digest of the archive. The head is never cut. FAILED_PRECONDITION with LOG_TOO_YOUNG for what is less than 24 h old, with CURSOR_EXPIRED for what was cut already. Repeatable: a call removes up to 20,000 events, and the same one again goes on. Role: admin.
         */
        post: operations["cutLog"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The log as a file, in the form that `writ audit verify` takes offline
         * @description The log as a file, in the form that `writ audit verify` takes offline: a header with a signed checkpoint, then the events up to it, one a line. A connection that breaks off before its end means half a file. Roles: auditor, admin.
         */
        get: operations["exportEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The log as it grows, as server-sent events
         * @description The log as it grows, as server-sent events. Each has an Event as `data` and its place, revision and hash, as `id`; it begins at the head, or after the place in `Last-Event-ID` or the revision in `afterRevision`. An event `problem` says why the stream ends; open another one, with the last `id`. Roles: auditor, operator, admin.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fence/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Changes of fences, as server-sent events
         * @description Changes of fences, as server-sent events: what WatchFences tells, each a FenceUpdate as `data`. Those up to which all has been told have an `id`, by which `Last-Event-ID` goes on. A `mark` comes every second: everything has been told that the log had at its `databaseTime`. A reader knows by it how old what it was told is, as far as its clock agrees with that of the database; targets that decide by a view use gRPC, whose marks answer pings of their own. Role: target.
         */
        get: operations["watchFences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fence/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether a proxy may let a request pass
         * @description Whether a proxy may let a request pass: all of it in headers, without a body. A denial has one status per class, and the reason in Writ-Reason and Writ-Problem; an answer without Writ-Reason is about the proxy itself. Role: target.
         */
        get: operations["checkFenceForProxy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fence/checks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decides all writes of one request together, linearizably
         * @description Decides all writes of one request together, linearizably: once a release, revocation or stop has returned, or an expiry has passed on the database clock, no replica allows the token. Between this answer and the target's commit the lease can still end; the target's guard, which compares the token where the data lives, closes that gap. Role: target. An allowed check of a tracked action leaves an admission, which is in the log before the answer. Repeated with the same request id while that is open, it returns the same one; with other writes it is ALREADY_EXISTS (REQUEST_ID_REUSED).
         */
        post: operations["checkFence"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fence/overrides": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reports a local override at a target
         * @description Reports a local override at a target: that a person let writes in there by hand, in an emergency, while the coordinator could not be asked (or all the same). It is an event of the log. Idempotent: the same override and request are recorded once, within 24 h. Role: target.
         */
        post: operations["reportOverride"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fence/reports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says what became of writes that a check allowed, all of one check together
         * @description Says what became of writes that a check allowed, all of one check together: what is recorded is the outcome (A1), and the admissions of tracked actions are closed, also long after their lease has ended. All or nothing. About a tracked write a repeated report changes nothing (ALREADY_KNOWN); of an untracked one there is nothing to know it by, so each report is an outcome in the log of its own (RECORDED), and changes nothing else. Role: target, the one that was let in, or an owner service of the resource.
         */
        post: operations["reportWrite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/freezes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists what is frozen
         * @description Lists what is frozen; operators, admins and auditors see by whom and why. Roles: operator, admin, auditor, approver, runner.
         */
        get: operations["listFreezes"];
        put?: never;
        /**
         * Stops all grants under a pattern until it is thawed
         * @description Stops all grants under a pattern until it is thawed: requests are refused as FROZEN or wait, and what waits already goes on waiting. Live leases are kept and renewed; with `denyChecks` their writes are denied too. In force on every replica when it returns. Idempotent: the same again changes nothing, and one on other terms never weakens the one that is there. Roles: operator, admin.
         */
        post: operations["freeze"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/freezes/thaw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes back the freeze of exactly this pattern
         * @description Takes back the freeze of exactly this pattern; whoever waited for it is granted at once, in the order of the queue. Idempotent. Roles: operator, admin.
         */
        post: operations["thaw"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/ids": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whole ids of runs and leases that begin as given, as screens shorten them
         * @description Whole ids of runs and leases that begin as given, as screens shorten them. Roles: auditor, operator, admin.
         */
        get: operations["findIds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/in-doubt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists tracked writes in doubt
         * @description Lists tracked writes in doubt: those that were let in under a lease which has ended, and of which nobody knows what became. Targets see those that they were let in for, runners those of their own runs. Roles: operator, admin, auditor, runner, target.
         */
        get: operations["listInDoubt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/in-doubt/{admissionId}/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says what became of a write in doubt, once somebody has found out
         * @description Says what became of a write in doubt, once somebody has found out. Whoever waits for the resource is granted it. Idempotent: the same finding again changes nothing; another one is FAILED_PRECONDITION (OUTCOME_KNOWN). Roles: operator, admin.
         */
        post: operations["settleInDoubt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the signing keys and where they are in their lives
         * @description Lists the signing keys and where they are in their lives. Roles: operator, admin, auditor.
         */
        get: operations["listSigningKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{keyId}/retire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraws a key that does not sign and destroys its private part
         * @description Withdraws a key that does not sign and destroys its private part: once this has returned, what it signed is refused by every check and introspection; by others when they fetch the keys again. Idempotent. Roles: operator, admin.
         */
        post: operations["retireSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lets the next key sign now instead of at its time
         * @description Lets the next key sign now instead of at its time. FAILED_PRECONDITION (SIGNING_KEY_TOO_NEW) while verifiers may not have fetched it yet. Roles: operator, admin.
         */
        post: operations["rotateSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists live and recently ended leases
         * @description Lists live and recently ended leases. Runners see those of their own runs. Roles: runner, operator, admin, auditor.
         */
        get: operations["listLeases"];
        put?: never;
        /**
         * Asks for a write set
         * @description Asks for a write set: all of it or nothing. Role: runner. Idempotent by `idempotencyKey`: the same key with the same request returns the same lease, on any replica, after any restart; with another request it is ALREADY_EXISTS (IDEMPOTENCY_KEY_REUSED). With `wait`, the call blocks for min(wait, 20 s, its deadline - 1 s) and then answers `waiting`; calling again with the same key resumes the same place.
         */
        post: operations["acquireWriteSet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/{leaseId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads one lease
         * @description Reads one lease. Runners see leases of their own runs. Roles: runner, operator, admin, auditor.
         */
        get: operations["getLease"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/{leaseId}/amend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Changes the write set of a live lease
         * @description Changes the write set of a live lease: adds entries, removes some, holds some less strictly; all of it or nothing. What is added is decided as an acquire without wait and gets a new token, what is kept keeps its own, and the generation rises. The expiry is not moved. Role: runner. Idempotent by `idempotencyKey`, as AcquireWriteSet is: the same key with the same request changes nothing more and answers the same `effectiveAt`, with the lease as it is then.
         */
        post: operations["amendWriteSet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/{leaseId}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends a lease of the caller's run
         * @description Ends a lease of the caller's run. Idempotent. When it returns, no check allows the token; `effectiveAt` says when targets that do not ask refuse it too. Role: runner.
         */
        post: operations["releaseLease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/{leaseId}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends anybody's lease or waiting request
         * @description Ends anybody's lease or waiting request. Idempotent. When it returns, no check allows the token; `effectiveAt` says when targets that do not ask refuse it too. Roles: operator, admin.
         */
        post: operations["revokeLease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decides a request as AcquireWriteSet would, and grants nothing
         * @description Decides a request as AcquireWriteSet would, and grants nothing. Role: runner, operator, admin.
         */
        post: operations["previewWriteSet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends a lease of the caller's run
         * @description Ends a lease of the caller's run. Idempotent. When it returns, no check allows the token; `effectiveAt` says when targets that do not ask refuse it too. Role: runner.
         */
        post: operations["releaseLeaseByKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/renew": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extends leases of one run
         * @description Extends leases of one run; each is decided for itself. Role: runner.
         */
        post: operations["renewLeases"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/take-over": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * In an emergency
         * @description In an emergency: gives a run what others hold. The holders in the way end (TAKEN_OVER) and the run is granted all that is asked for in one append, or nothing happens. The run's contract must allow it, and what the map forbids stays forbidden; what is frozen is thawed first. Whoever waits stays in the queue, behind it. Role: operator. What nobody can end is not taken: while a lock delay or a write in doubt is in the way, also one that the ends would leave behind, the call is refused and ends nobody; or, with `wait`, it ends the holders and takes the first place in the queue; or, with `acceptOverlap`, it is granted all the same, which is recorded. Idempotent by `idempotencyKey`, as AcquireWriteSet.
         */
        post: operations["takeOver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists namespaces
         * @description Lists namespaces. Roles: all.
         */
        get: operations["listNamespaces"];
        put?: never;
        /**
         * Creates a namespace
         * @description Creates a namespace. Idempotent: an existing one is returned. Role: admin.
         */
        post: operations["createNamespace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads one namespace
         * @description Reads one namespace. Roles: all.
         */
        get: operations["getNamespace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/principal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Says who calls, and what they may do in the namespace
         * @description Says who calls, and what they may do in the namespace. Roles: all.
         */
        get: operations["getPrincipal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rehearsals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The last rehearsal of each kind, also of kinds that demand one and have none
         * @description The last rehearsal of each kind, also of kinds that demand one and have none. Roles: target, admin, operator, auditor.
         */
        get: operations["listRehearsals"];
        put?: never;
        /**
         * Records what a suite found about the target of a kind
         * @description Records what a suite found about the target of a kind. The newest result counts, a bad one too. Roles: target (of kinds it owns), admin.
         */
        post: operations["recordRehearsal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rehearsals/begin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lets the runs of a suite have the resources it rehearses on, though their kinds demand a rehearsal and have none that counts
         * @description Lets the runs of a suite have the resources it rehearses on, though their kinds demand a rehearsal and have none that counts. Roles: target (of kinds it owns), admin.
         */
        post: operations["beginRehearsal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/resources/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Turns an alias into its path and says which kind it is of
         * @description Turns an alias into its path and says which kind it is of. Roles: all.
         */
        get: operations["resolveResource"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists runs
         * @description Lists runs. Runners see their own. Roles: runner, operator, admin, approver, auditor.
         */
        get: operations["listRuns"];
        put?: never;
        /**
         * Creates a run with its contract
         * @description Creates a run with its contract. Idempotent by key within the calling principal. What lies beyond the caller's ceiling, or beyond the parent run, is refused with PERMISSION_DENIED, reason BEYOND_CEILING, field by field. Role: runner, operator, admin.
         */
        post: operations["createRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{runId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads one run
         * @description Reads one run. Runners see their own. Roles: runner, operator, admin, approver, auditor.
         */
        get: operations["getRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{runId}/erase-texts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erases the free texts (purposes, reasons) of all events of a run that has ended
         * @description Erases the free texts (purposes, reasons) of all events of a run that has ended. The log does not change: the salted hashes stay, and exports verify as before. The erasure is an event. Idempotent. FAILED_PRECONDITION while the run has not ended. Role: admin.
         */
        post: operations["eraseTexts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{runId}/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reports the state of the work
         * @description Reports the state of the work. Runners: their own runs, between ACTIVE, WAITING_FOR_INPUT and BLOCKED, and to FINISHED or FAILED, which end all its leases; while tracked writes are open the run is STOPPING first. Operators: also from BLOCKED to ACTIVE after lost history, which a runner may not.
         */
        post: operations["updateRunState"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{runId}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends the run's authority to write
         * @description Ends the run's authority to write: when it returns, no check allows any of its tokens and nothing more is granted. While the outcome of a tracked write is not known the run is STOPPING, and STOPPED only then. Idempotent. Roles: operator, admin; runner: its own.
         */
        post: operations["stopRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stops all runs that match
         * @description Stops all runs that match. Roles: operator, admin.
         */
        post: operations["stopRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/waiters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Leases that wait, the longest first, with whom they wait for
         * @description Leases that wait, the longest first, with whom they wait for. A page may be shorter than it was asked for. Runners see those of their own runs. Roles: runner, operator, admin, auditor.
         */
        get: operations["listWaiters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description What a run does to a resource.
         *
         *     - `ACCESS_UNSPECIFIED`: Never valid in a request.
         *     - `ACCESS_READ`: Recorded; takes no lock. The run is told when another run is granted a WRITE on the resource.
         *     - `ACCESS_STABLE_READ`: Nobody else may change the resource while the lease lives.
         *     - `ACCESS_WRITE`: The run changes the resource. Whether other runs may do so at the same time is said by the action's `concurrency` in the conflict map: `lease` excludes them, `optimistic` does not.
         * @enum {string}
         */
        Access: "ACCESS_UNSPECIFIED" | "ACCESS_READ" | "ACCESS_STABLE_READ" | "ACCESS_WRITE";
        /** @description The answer to one question (AuthZEN 1.0). */
        AccessDecision: {
            /** @description reason, request_id, log_revision; message, observed_only, valid_for and admission_id where they apply; error, with status, reason and message, where it could not be decided. */
            context: {
                [key: string]: unknown;
            };
            /** @description Whether the write is let in. */
            decision: boolean;
        };
        /** @description The answers to several questions (AuthZEN 1.0). */
        AccessDecisions: {
            /** @description In the order of the questions. */
            evaluations: components["schemas"]["AccessDecision"][];
        };
        /** @description May this run write that (AuthZEN 1.0). */
        AccessEvaluation: {
            /** @description What is to be done to it. */
            action: {
                /** @description As the conflict map has it. */
                name: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Around the question. */
            context?: {
                /** @description Absent: "default". */
                namespace?: string;
                /** @description By which the check is found in the log. */
                request_id?: string;
            } & {
                [key: string]: unknown;
            };
            /** @description What is to be written. */
            resource: {
                /** @description Its path. */
                id: string;
                properties?: {
                    /** @description The version that the write was made from. */
                    observed_version?: string;
                } & {
                    [key: string]: unknown;
                };
                /** @description `resource`. */
                type: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Who wants to write. */
            subject: {
                /** @description The run as the caller authenticated it. */
                id: string;
                properties?: {
                    /** @description The key that the subject proved to have: `x5t#S256` or `jkt`. */
                    cnf?: {
                        [key: string]: unknown;
                    };
                    /** @description What the run presents; or lease_id and fencing_token. */
                    credential?: string;
                    /** @description Its token, a decimal number. */
                    fencing_token?: string;
                    /** @description The lease. */
                    lease_id?: string;
                } & {
                    [key: string]: unknown;
                };
                /** @description `run`. */
                type: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        /** @description Several questions, each decided for itself (AuthZEN 1.0). */
        AccessEvaluations: {
            /** @description What is to be done to it. */
            action?: {
                /** @description As the conflict map has it. */
                name: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Around the question. */
            context?: {
                /** @description Absent: "default". */
                namespace?: string;
                /** @description By which the check is found in the log. */
                request_id?: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Each with what the members beside this one do not say for all. */
            evaluations?: {
                [key: string]: unknown;
            }[];
            /** @description How many of them are answered. */
            options?: {
                /** @enum {string} */
                evaluations_semantic?: "execute_all" | "deny_on_first_deny" | "permit_on_first_permit";
            } & {
                [key: string]: unknown;
            };
            /** @description What is to be written. */
            resource?: {
                /** @description Its path. */
                id: string;
                properties?: {
                    /** @description The version that the write was made from. */
                    observed_version?: string;
                } & {
                    [key: string]: unknown;
                };
                /** @description `resource`. */
                type: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Who wants to write. */
            subject?: {
                /** @description The run as the caller authenticated it. */
                id: string;
                properties?: {
                    /** @description The key that the subject proved to have: `x5t#S256` or `jkt`. */
                    cnf?: {
                        [key: string]: unknown;
                    };
                    /** @description What the run presents; or lease_id and fencing_token. */
                    credential?: string;
                    /** @description Its token, a decimal number. */
                    fencing_token?: string;
                    /** @description The lease. */
                    lease_id?: string;
                } & {
                    [key: string]: unknown;
                };
                /** @description `run`. */
                type: string;
            } & {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        /** @description Asks for a write set. */
        AcquireWriteSetRequest: {
            /** @description Targets to issue credentials for together with the grant, at most 16 principal names; see CredentialService. Not part of what the key is bound to: a repeated call issues new ones. */
            audiences?: string[];
            /** @description A lease of the run's parent run, of which this is to be a part: resources at or below what it holds, with no stronger access and no other actions. While the part is held, or waited for, the parent's entries there are suspended; when it ends they come back with new tokens. It never outlives that lease. Empty: of none. */
            delegatedFrom?: string;
            /** @description 1 to 256 entries; leave empty when `task` or `resourceSet` is set. */
            entries?: components["schemas"]["WriteSetEntryInput"][];
            /** @description What for, in the run's own words; at most 1,024 bytes. */
            purpose?: string;
            /** @description Correlates the attempt in the log (`writ why`); at most 128 printable ASCII characters. Empty: none. */
            requestId?: string;
            /** @description A named resource set of the conflict map (`sets`). Empty: none. */
            resourceSet?: string;
            /** @description The run that will hold the lease. Required. */
            runId: string;
            /** @description A task of the conflict map. */
            task?: components["schemas"]["TaskCall"];
            /**
             * @description How long the lease lives unless renewed: 1 s to 1 h and at most the smallest maxTtl of the kinds touched. Absent: the smallest ttl of the kinds touched.
             * @example 12.500s
             */
            ttl?: string;
            /**
             * @description How long to wait for locks that are held, 0 to 1 h. Absent or zero: do not wait.
             * @example 12.500s
             */
            wait?: string;
        };
        /** @description The answer to AcquireWriteSet: exactly one outcome. */
        AcquireWriteSetResponse: {
            /** @description With `lease` only: one per audience, in the order of the request. */
            credentials: components["schemas"]["AudienceCredential"][];
            /** @description Granted, now or earlier by the same key. Look at `state`: a repeated call returns the same lease also after it ended. Not together with waiting, refusal. */
            lease?: components["schemas"]["Lease"];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Refused; nothing is held. Not together with lease, waiting. */
            refusal?: components["schemas"]["Refusal"];
            /** @description In the queue. Not together with lease, refusal. */
            waiting?: components["schemas"]["WaitingPlace"];
        };
        /** @description A live lease that a map change touches. */
        AffectedLease: {
            /** @description Entries the new map adds to it. */
            added: components["schemas"]["LeaseEntry"][];
            /** @description Leases of other runs it would be in conflict with. */
            conflictsWith: string[];
            /** @description True: it is ended (or would be) in the same commit: by the chosen handling, with the lease that it is a part of, or as a waiting request that is refused now. */
            ended: boolean;
            /** @description Its new generation, or the one it would have. */
            generation: number;
            /** @description The lease. */
            leaseId: string;
            /** @description Why the new map would not grant it any more. A lease keeps what it holds. Empty: it would. */
            noLongerGranted: string;
            /** @description Its run. */
            runId: string;
        };
        /** @description Resources and actions that a contract allows. */
        Allowance: {
            /** @description Verbs allowed there, at most 32; "*" alone means every action of the conflict map. */
            actions: string[];
            /** @description A resource pattern: literal segments, `{name}` for one segment, and a final `{name...}` for the rest. Required. */
            pattern: string;
        };
        /** @description Resources and actions that a contract allows. */
        AllowanceInput: {
            /** @description Verbs allowed there, at most 32; "*" alone means every action of the conflict map. */
            actions?: string[];
            /** @description A resource pattern: literal segments, `{name}` for one segment, and a final `{name...}` for the rest. Required. */
            pattern: string;
        };
        /** @description Changes the write set of a lease. At least one of `add`, `remove` and `downgrade` is given. */
        AmendWriteSetRequest: {
            /** @description Entries to add, at most 256; what the conflict map says they touch is added with them. What the lease holds already is no change; an entry that it holds with less (other actions, or an optimistic one that is to be leased) is held with all of it from then on, under a new token. The lease may have 256 entries that were asked for. */
            add?: components["schemas"]["WriteSetEntryInput"][];
            /** @description In place of everything that was asked for on its resource, at most 256: no stronger access, no wider scope, no other actions than the lease holds there. No actions on a WRITE: those that it holds. A token that is kept is the same. */
            downgrade?: components["schemas"]["WriteSetEntryInput"][];
            /** @description Resources of which everything that was asked for is given up, at most 256; paths or aliases, as the lease names them. What they implied goes too, unless something that is left implies it. */
            remove?: string[];
            /** @description Correlates the attempt in the log (`writ why`); at most 128 printable ASCII characters. Empty: none. */
            requestId?: string;
            /** @description The run that holds the lease. Required. */
            runId: string;
        };
        /** @description The answer to AmendWriteSet: exactly one outcome. */
        AmendWriteSetResponse: {
            /**
             * Format: date-time
             * @description With `lease` only: from this database time on what was given up is out of force everywhere. No check allows it from the moment that the call returns. Of VIEW and LOCAL kinds this is the end of their lock delay, and in the future.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description Amended, now or earlier by the same key: the lease as it is now. Look at `state` after a repeated call. Not together with refusal. */
            lease?: components["schemas"]["Lease"];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Refused; the lease is as it was. Not together with lease. */
            refusal?: components["schemas"]["Refusal"];
        };
        /** @description What became of one audience. */
        AudienceCredential: {
            /** @description The audience, as asked for. */
            audience: string;
            /** @description Issued. Not together with refusal. */
            credential?: components["schemas"]["Credential"];
            /** @description Not issued; the lease is held all the same. Not together with credential. */
            refusal?: components["schemas"]["Refusal"];
        };
        /** @description Begins a rehearsal. */
        BeginRehearsalRequest: {
            /** @description The resources that the suite will write: paths or aliases, 1 to 16. Required. */
            resources: string[];
            /** @description The suite's runs, which alone may have them: 1 to 16. Required. */
            runIds: string[];
            /**
             * @description For how long, 10 s to 1 h. Absent: 15 min.
             * @example 12.500s
             */
            within?: string;
        };
        /** @description The answer to BeginRehearsal. */
        BeginRehearsalResponse: {
            /** @description Log revision of the change. */
            logRevision: string;
            /**
             * Format: date-time
             * @description The runs may be granted the resources until then; what they hold then ends as any lease does.
             * @example 2026-12-01T10:00:00.000123Z
             */
            until?: string;
        };
        /** @description Something that stands in the way of a request. */
        Blocker: {
            /** @description How the blocker holds it. */
            access: components["schemas"]["Access"];
            /** @description Opaque name of the blocking lease, the same for the same lease. Operators find the lease by it. */
            blockerRef: string;
            /**
             * Format: date-time
             * @description When the blocker ends unless renewed. Absent for a waiting request, and for a lease that has ended.
             * @example 2026-12-01T10:00:00.000123Z
             */
            expiresAt?: string;
            /**
             * Format: date-time
             * @description The blocker is a write that was let in under a lease which has ended since, and nobody knows what became of it. Absent: it is not so.
             * @example 2026-12-01T10:00:00.000123Z
             */
            inDoubtSince?: string;
            /** @description Operators, admins and auditors only, and FindBlockers of your own runs: the blocking lease. Empty for others. */
            leaseId: string;
            /**
             * Format: date-time
             * @description The blocker has ended, and what it held of VIEW and LOCAL kinds is granted to no other run before this database time. Absent: it holds the resource, or waits for it.
             * @example 2026-12-01T10:00:00.000123Z
             */
            lockDelayUntil?: string;
            /** @description Operators, admins and auditors only, and FindBlockers of your own runs: what the blocking run says it is doing. Empty for others. */
            purpose: string;
            /** @description The resource of the request that meets it. */
            requestedResource: string;
            /** @description Who settles conflicts about it, by the conflict map. Empty: nobody is named. */
            resolver: string;
            /** @description The resource on which they meet, as the blocker holds it. */
            resource: string;
            /** @description The rule of the conflict map by which the two meet, when their resource ids differ or an implied entry is involved. Empty: both named it. */
            rule: string;
            /** @description Operators, admins and auditors only, and FindBlockers of your own runs: the blocking run. Empty for others. */
            runId: string;
            /** @description How much of it the blocker holds. */
            scope: components["schemas"]["Scope"];
            /** @description True: it does not hold the resource but waits for it ahead of you. */
            waiting: boolean;
        };
        /** @description Asks whether writes may be accepted. */
        CheckFenceRequest: {
            /** @description The credential that the run presented, in place of `leaseId`; at most 16,384 bytes. It must be for the calling principal. Empty: none. */
            credential?: string;
            /** @description The lease presented by the run. Required, unless `credential` is given. */
            leaseId?: string;
            /** @description The key that the presenter proved to the target to have. A credential that is bound to a key is refused without it. Absent: none. */
            presenter?: components["schemas"]["ConfirmationInput"];
            /** @description The run that presented it, as the target authenticated it; never copied from an unverified header. Empty: the target did not authenticate the run and relies on the lease id alone. */
            presenterRunId?: string;
            /** @description Correlates this check with the target's own log, and finds it by `writ why`; at most 128 printable ASCII characters. Required for tracked actions, unique for each attempt. Empty: none. */
            requestId?: string;
            /** @description All writes of one request, 1 to 256. Required. */
            writes: components["schemas"]["ProtectedWrite"][];
        };
        /** @description The verdict. */
        CheckFenceResponse: {
            /** @description True only if every write is allowed. */
            allowed: boolean;
            /**
             * Format: date-time
             * @description When the lease expires on the database clock, unless it is renewed or ends early: what the target's guard keeps beside its mark. Absent when `validFor` is.
             * @example 2026-12-01T10:00:00.000123Z
             */
            expiresAt?: string;
            /** @description The lease, also where a credential was presented in its place. Empty when `validFor` is absent. */
            leaseId: string;
            /** @description Log revision at which this was decided. */
            logRevision: string;
            /** @description One per write, in the order of the request. */
            results: components["schemas"]["WriteVerdict"][];
            /** @description The run that holds the lease. Empty when `validFor` is absent. */
            runId: string;
            /**
             * @description What was left of the lease when this was decided: information for the caller's own deadline, counted from when it sent the check. It never replaces a check. Absent when denied.
             * @example 12.500s
             */
            validFor?: string;
        };
        /** @description A signed statement about the log. */
        Checkpoint: {
            /** @description Hash of the event at that revision; 32 bytes. */
            hash: string;
            /** @description Name of the signing key: the first 16 hexadecimal digits of the SHA-256 of its public part. */
            keyId: string;
            /** @description Namespace. */
            namespace: string;
            /** @description The public key as SPKI in PEM. Compare it with one you got some other way. */
            publicKey: string;
            /** @description The last revision covered. */
            revision: string;
            /** @description Ed25519 signature (RFC 8032) over the canonical JSON of {namespace, revision, hash (hex), time (integer microseconds)}; 64 bytes. */
            signature: string;
            /**
             * Format: date-time
             * @description Database time of the statement.
             * @example 2026-12-01T10:00:00.000123Z
             */
            time?: string;
        };
        /** @description A signed statement about the log. */
        CheckpointInput: {
            /** @description Hash of the event at that revision; 32 bytes. */
            hash?: string;
            /** @description Name of the signing key: the first 16 hexadecimal digits of the SHA-256 of its public part. */
            keyId?: string;
            /** @description Namespace. */
            namespace?: string;
            /** @description The public key as SPKI in PEM. Compare it with one you got some other way. */
            publicKey?: string;
            /** @description The last revision covered. */
            revision?: string;
            /** @description Ed25519 signature (RFC 8032) over the canonical JSON of {namespace, revision, hash (hex), time (integer microseconds)}; 64 bytes. */
            signature?: string;
            /**
             * Format: date-time
             * @description Database time of the statement.
             * @example 2026-12-01T10:00:00.000123Z
             */
            time?: string;
        };
        /** @description A key that a presenter proves to have, by its thumbprint. */
        Confirmation: {
            /** @description Of a DPoP key: its RFC 7638 thumbprint, base64url (`jkt`, RFC 9449). Not together with x5tS256. */
            jkt?: string;
            /** @description Of a client certificate: the SHA-256 of its DER, base64url (`x5t#S256`, RFC 8705). Not together with jkt. */
            x5tS256?: string;
        };
        /** @description A key that a presenter proves to have, by its thumbprint. */
        ConfirmationInput: {
            /** @description Of a DPoP key: its RFC 7638 thumbprint, base64url (`jkt`, RFC 9449). Not together with x5tS256. */
            jkt?: string;
            /** @description Of a client certificate: the SHA-256 of its DER, base64url (`x5t#S256`, RFC 8705). Not together with jkt. */
            x5tS256?: string;
        };
        /** @description One version. */
        ConflictMapVersion: {
            /** @description Who put it. */
            author: string;
            /**
             * Format: date-time
             * @description When.
             * @example 2026-12-01T10:00:00.000123Z
             */
            createdAt?: string;
            /** @description Why. */
            reason: string;
            /** @description Its number. */
            version: string;
        };
        /** @description One lock that both sides take. */
        ConflictStep: {
            /** @description The resource, or the rule's key, on which they meet. */
            key: string;
            /** @description The same in words. */
            message: string;
            /** @description Mode of one side: IS, IX, IO, S, X or O. */
            modeA: string;
            /** @description Mode of the other side. */
            modeB: string;
            /** @description Entry of one side that takes it. */
            resourceA: string;
            /** @description Entry of the other side that takes it. */
            resourceB: string;
            /** @description Rule that brought one side's entry. Empty: it was asked for. */
            ruleA: string;
            /** @description Rule that brought the other side's entry. */
            ruleB: string;
        };
        /** @description Creates a namespace. */
        CreateNamespaceRequest: {
            /** @description Name of the database that it is to live in, for good: "main", or one of WRIT_DATABASES_FILE. Empty: "main", or wherever it lives already. A namespace that lives elsewhere: FAILED_PRECONDITION (NAMESPACE_ELSEWHERE). */
            database?: string;
            /** @description Its name. Required; no default here. */
            name: string;
        };
        /** @description The answer to CreateNamespace. */
        CreateNamespaceResponse: {
            /** @description True: this call created it. */
            created: boolean;
            /** @description The namespace. */
            namespace?: components["schemas"]["Namespace"];
        };
        /** @description Creates a run. */
        CreateRunRequest: {
            /** @description What the run may ask for: 0 to 256. Empty: it may write nothing (it can only propose). */
            allowed?: components["schemas"]["AllowanceInput"][];
            /**
             * Format: date-time
             * @description Absolute end of its authority, at most 30 days ahead. Required.
             * @example 2026-12-01T10:00:00.000123Z
             */
            authorityEndsAt: string;
            /** @description Whom to turn to, in order; at most 16 of at most 256 bytes. */
            escalation?: string[];
            /** @description Revision of the goal; at most 256 bytes. Empty: none. */
            goalRevision?: string;
            /** @description The person on whose behalf; at most 256 bytes. Recorded as unverified, as only initiatorToken proves it. Empty: nobody, or whom the token names. */
            initiator?: string;
            /** @description A token of the person (a JWT of a configured issuer; the subject_token of RFC 8693): verified, it makes the initiator what the issuer's mapping calls the person, and initiatorVerified true. With a may_act claim, that must name the caller. Never stored. Empty: the initiator is not verified. */
            initiatorToken?: string;
            /** @description A live run of the same principal that this one is part of: its allowances and its end of authority lie within the parent's, and it is stopped before the parent ends. At most 8 deep. Empty: none. */
            parentRunId?: string;
            /** @description What for; 1 to 1,024 bytes. Required. */
            purpose: string;
        };
        /** @description The answer to CreateRun. */
        CreateRunResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description The run, new or created earlier by the same key. */
            run?: components["schemas"]["Run"];
        };
        /** @description A credential for one target. */
        Credential: {
            /** @description The target it is for. */
            audience: string;
            /** @description The key it is bound to. Absent: to none. */
            boundTo?: components["schemas"]["Confirmation"];
            /**
             * Format: date-time
             * @description The end, in whole seconds of the database clock.
             * @example 2026-12-01T10:00:00.000123Z
             */
            expiresAt?: string;
            /**
             * @description What is left. Count it from the moment you *sent* the request, on a monotonic clock.
             * @example 12.500s
             */
            expiresIn?: string;
            /** @description Its id: 128 random bits, base64url. Not secret; it is in the log. */
            jti: string;
            /** @description The JSON Web Token. A secret: whoever has it may present it, unless it is bound. */
            token: string;
            /** @description How it is presented: `Bearer`, or `DPoP` when it is bound to a DPoP key. */
            tokenType: string;
        };
        /** @description Cuts off the beginning of the log. */
        CutLogRequest: {
            /** @description SHA-256 of the archive; 32 bytes. Required; recorded. */
            archiveDigest: string;
            /** @description Over the last event that goes, as the archive has it. Required. */
            checkpoint: components["schemas"]["CheckpointInput"];
            /** @description True: also what is less than 24 h old. Replicas, targets and readers that were away begin anew. */
            evenYoung?: boolean;
            /** @description Why; recorded. Required, at most 1,024 bytes. */
            reason: string;
        };
        /** @description The answer to CutLog. */
        CutLogResponse: {
            /** @description The first revision that the log has now. */
            firstRevision: string;
            /** @description Events that are still to be removed, by the same call again or by the coordinators within minutes. They are shown to nobody. */
            left: string;
            /** @description Log revision at which the cut is recorded, or was found to be. */
            logRevision: string;
            /** @description Events removed by this call. */
            removed: string;
        };
        /** @description Why a proxy must not let a request pass (RFC 9457). */
        DeniedWrite: {
            /** @description Of the same write. */
            action?: string;
            /** @description Stable: a reason of the fence check, or of the route table, in lower case. */
            code: string;
            /** @description Its change class. */
            conflict_category?: string;
            /** @description What happened. */
            detail: string;
            /** @description What to do. */
            next: string;
            /** @description All that are denied, where they are several. */
            refused?: {
                [key: string]: unknown;
            }[];
            /** @description Finds the denial in the log. */
            request_id: string;
            /** @description Who decides. */
            resolver?: string;
            /** @description Of the first write that is denied. */
            resource?: string;
            /** @description Seconds. */
            retry_after?: number;
            /** @description Whether the caller may go on by itself. */
            retryable: boolean;
            /** @description The status. */
            status: number;
            /** @description The code in words. */
            title: string;
            /** @description `urn:writ:problem:` and the code. */
            type: string;
        };
        /** @description What to compare. */
        DiffConflictMapRequest: {
            /** @description What to compare with. Not together with toVersion. */
            document?: string;
            /** @description Absent or zero: the current version. */
            fromVersion?: string;
            /** @description What to compare with. Not together with document. */
            toVersion?: string;
        };
        /** @description How they differ. */
        DiffConflictMapResponse: {
            /** @description A unified diff; empty: they are equal. */
            diff: string;
            /** @description Whether there is any difference. */
            differs: boolean;
            /** @description The version compared. */
            fromVersion: string;
            /** @description The version that it was compared with. Absent: with a document. */
            toVersion?: string;
        };
        /** @description A lease that a take-over ended. */
        EndedLease: {
            /**
             * Format: date-time
             * @description From this database time its end is in force everywhere, as in ReleaseLeaseResponse.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description The lease. */
            leaseId: string;
            /** @description What that run said it was doing: the purpose of the lease or, where that is empty, of the run. */
            purpose: string;
            /** @description Its run. */
            runId: string;
        };
        /**
         * @description Why a lease, or a waiting request, ended.
         *
         *     - `END_REASON_UNSPECIFIED`: It has not ended.
         *     - `END_REASON_RELEASED`: The run released it.
         *     - `END_REASON_EXPIRED`: Its expiry passed on the database clock without a renewal.
         *     - `END_REASON_NO_PROGRESS`: Its progress marker did not change within the progress window.
         *     - `END_REASON_REVOKED`: An operator or admin revoked it.
         *     - `END_REASON_RUN_STOPPED`: Its run was stopped.
         *     - `END_REASON_RUN_ENDED`: Its run finished, failed, or reached the end of its authority.
         *     - `END_REASON_TAKEN_OVER`: An emergency take-over ended it.
         *     - `END_REASON_UNCLAIMED`: It was granted to a waiting request that nobody came back to claim within 10 s.
         *     - `END_REASON_DATABASE_CHANGED`: The database lost history (fail-over or restore), which ends every live lease.
         *     - `END_REASON_MAP_CHANGED`: A change of the conflict map put it in conflict, and the admin chose to end it.
         *     - `END_REASON_PARENT_ENDED`: The parent run's lease ended.
         *     - `END_REASON_WITHDRAWN`: The waiting request was withdrawn, by its run or because nobody was attached to it any more.
         *     - `END_REASON_TIMED_OUT`: The waiting request reached the end of its wait.
         *     - `END_REASON_REFUSED`: The waiting request was decided again, on a changed map, contract or run, and refused.
         * @enum {string}
         */
        EndReason: "END_REASON_UNSPECIFIED" | "END_REASON_RELEASED" | "END_REASON_EXPIRED" | "END_REASON_NO_PROGRESS" | "END_REASON_REVOKED" | "END_REASON_RUN_STOPPED" | "END_REASON_RUN_ENDED" | "END_REASON_TAKEN_OVER" | "END_REASON_UNCLAIMED" | "END_REASON_DATABASE_CHANGED" | "END_REASON_MAP_CHANGED" | "END_REASON_PARENT_ENDED" | "END_REASON_WITHDRAWN" | "END_REASON_TIMED_OUT" | "END_REASON_REFUSED";
        /** @description Erases free texts. */
        EraseTextsRequest: {
            /** @description Why; recorded. Required, at most 1,024 bytes. */
            reason: string;
        };
        /** @description The answer to EraseTexts. */
        EraseTextsResponse: {
            /** @description Texts erased by this call. Zero: there were none left. */
            erased: string;
            /** @description Log revision at which the erasure is recorded. */
            logRevision: string;
        };
        /** @description The durable record of one state change, or of one refused attempt. */
        Event: {
            /** @description The authenticated principal that caused it; `system` for the coordinator itself. */
            actor: string;
            /** @description The commit it was written with; UUID. */
            batchId: string;
            /** @description Canonical JSON (RFC 8785) of the rest. In form 2 a free text is replaced by {"sha256":"…"}. */
            body: string;
            /** @description Form of the body: 1 has every text in its place, 2 has the salted hash of a free text there. */
            bodyVersion: number;
            /** @description SHA-256 over the 32 bytes of prevHash followed by the canonical JSON (RFC 8785) of {namespace, revision, time (integer microseconds), batchId, kind, bodyVersion, actor, runId, leaseId, resources, requestIds, body (as a string)}; 32 bytes. */
            hash: string;
            /** @description What happened, such as `lease_granted`. */
            kind: string;
            /** @description The lease concerned. Empty: none. */
            leaseId: string;
            /** @description Namespace. */
            namespace: string;
            /** @description Hash of the event before; 32 bytes, zeros for revision 1. */
            prevHash: string;
            /** @description Correlation ids given by callers, by which `why` finds the event; at most 100. */
            requestIds: string[];
            /** @description The resources concerned. */
            resources: string[];
            /** @description Position in the namespace's log, from 1, without gaps. */
            revision: string;
            /** @description The run concerned. Empty: none. */
            runId: string;
            /** @description The free texts that the body has hashes of. Not part of the hash. Empty: none, or erased. */
            texts: components["schemas"]["EventText"][];
            /**
             * Format: date-time
             * @description Database time.
             * @example 2026-12-01T10:00:00.000123Z
             */
            time?: string;
        };
        /** @description A free text of an event. Where the event's body has {"sha256":"…"}, this text was; the digest is SHA-256 over the 16 bytes of the salt followed by the text in UTF-8. */
        EventText: {
            /** @description The 32 bytes whose hexadecimal digits the body has. */
            digest: string;
            /** @description 16 random bytes. */
            salt: string;
            /** @description The text. */
            text: string;
        };
        /** @description Asks whether two write sets conflict. */
        ExplainConflictRequest: {
            /** @description One side. Required. */
            a: components["schemas"]["WriteSet"];
            /** @description The other side. Required. */
            b: components["schemas"]["WriteSet"];
            /** @description A document to explain by; for admin, operator and auditor only. Empty: the current map. */
            document?: string;
        };
        /** @description Whether two write sets conflict. */
        ExplainConflictResponse: {
            /** @description True: they cannot be held by two runs at once. */
            conflict: boolean;
            /** @description What one side expands to. */
            entriesA: components["schemas"]["LeaseEntry"][];
            /** @description What the other side expands to. */
            entriesB: components["schemas"]["LeaseEntry"][];
            /** @description Why one side would be refused on its own. Absent: it would not. */
            refusalA?: components["schemas"]["Refusal"];
            /** @description Why the other side would be refused on its own. Absent: it would not. */
            refusalB?: components["schemas"]["Refusal"];
            /** @description Where they meet; empty when they do not. */
            steps: components["schemas"]["ConflictStep"][];
        };
        /**
         * @description Why one write is allowed or not.
         *
         *     - `FENCE_REASON_UNSPECIFIED`: Never sent.
         *     - `FENCE_REASON_OK`: Allowed.
         *     - `FENCE_REASON_STALE_TOKEN`: The token is not the lease's token for this resource.
         *     - `FENCE_REASON_RELEASED`: The lease was released.
         *     - `FENCE_REASON_EXPIRED`: The lease expired.
         *     - `FENCE_REASON_NO_PROGRESS`: The lease ended for want of progress.
         *     - `FENCE_REASON_REVOKED`: The lease was revoked.
         *     - `FENCE_REASON_RUN_STOPPED`: The run was stopped.
         *     - `FENCE_REASON_RUN_ENDED`: The run ended.
         *     - `FENCE_REASON_TAKEN_OVER`: The lease was taken over.
         *     - `FENCE_REASON_UNCLAIMED`: The grant was never claimed.
         *     - `FENCE_REASON_DATABASE_CHANGED`: The database lost history; every older lease is over.
         *     - `FENCE_REASON_MAP_CHANGED`: A change of the conflict map ended the lease.
         *     - `FENCE_REASON_PARENT_ENDED`: The parent's lease ended.
         *     - `FENCE_REASON_SUSPENDED`: The entry is delegated to a child run.
         *     - `FENCE_REASON_NOT_COVERED`: The lease does not cover the resource.
         *     - `FENCE_REASON_ACTION_NOT_ALLOWED`: The lease covers the resource, not this action.
         *     - `FENCE_REASON_WRONG_HOLDER`: The lease belongs to another run than the presenter.
         *     - `FENCE_REASON_UNKNOWN_LEASE`: No such lease.
         *     - `FENCE_REASON_FUTURE_TOKEN`: The token is later than the database clock: forged, or evidence of lost history.
         *     - `FENCE_REASON_VERSION_REQUIRED`: An optimistic action must carry the observed version.
         *     - `FENCE_REASON_FROZEN`: An operator froze the resource, for writes under live leases too.
         *     - `FENCE_REASON_IN_DOUBT`: A write to the resource has an unknown outcome.
         *     - `FENCE_REASON_NOT_GRANTED`: The lease is still waiting; nothing is held.
         *     - `FENCE_REASON_OVERSIZE`: The credential is longer than 16,384 bytes.
         *     - `FENCE_REASON_MALFORMED`: The credential is no JSON Web Token.
         *     - `FENCE_REASON_HEADER_NOT_ALLOWED`: The credential's header names keys or extensions of its own (jku, jwk, x5u, x5c, crit, b64).
         *     - `FENCE_REASON_ALG_NOT_ALLOWED`: The credential is not signed by ES256.
         *     - `FENCE_REASON_WRONG_TYPE`: The token is of another type than `at+jwt`.
         *     - `FENCE_REASON_UNKNOWN_KEY`: The credential was signed by a key that is not published.
         *     - `FENCE_REASON_BAD_SIGNATURE`: The credential's signature is wrong.
         *     - `FENCE_REASON_WRONG_ISSUER`: Another issuer issued the credential.
         *     - `FENCE_REASON_CLAIM_MISSING`: The credential lacks a claim.
         *     - `FENCE_REASON_CLAIM_INVALID`: A claim of the credential is not of its type.
         *     - `FENCE_REASON_WRONG_AUDIENCE`: The credential is for another target than the caller.
         *     - `FENCE_REASON_CREDENTIAL_EXPIRED`: The credential has expired; its lease may live on.
         *     - `FENCE_REASON_NOT_YET_VALID`: The credential is from the future of the database clock.
         *     - `FENCE_REASON_NOT_BOUND`: The credential is bound to a key, and the check names no presenter.
         *     - `FENCE_REASON_BINDING_MISMATCH`: The credential is bound to another key than the presenter's.
         *     - `FENCE_REASON_CREDENTIAL_REVOKED`: The credential was revoked; its lease may live on.
         *     - `FENCE_REASON_NO_WRITE_AUTHORITY`: The credential lets the run propose, and write nothing.
         *     - `FENCE_REASON_WRONG_TARGET`: The kind of the resource names its owner services, and the calling target is none of them.
         * @enum {string}
         */
        FenceReason: "FENCE_REASON_UNSPECIFIED" | "FENCE_REASON_OK" | "FENCE_REASON_STALE_TOKEN" | "FENCE_REASON_RELEASED" | "FENCE_REASON_EXPIRED" | "FENCE_REASON_NO_PROGRESS" | "FENCE_REASON_REVOKED" | "FENCE_REASON_RUN_STOPPED" | "FENCE_REASON_RUN_ENDED" | "FENCE_REASON_TAKEN_OVER" | "FENCE_REASON_UNCLAIMED" | "FENCE_REASON_DATABASE_CHANGED" | "FENCE_REASON_MAP_CHANGED" | "FENCE_REASON_PARENT_ENDED" | "FENCE_REASON_SUSPENDED" | "FENCE_REASON_NOT_COVERED" | "FENCE_REASON_ACTION_NOT_ALLOWED" | "FENCE_REASON_WRONG_HOLDER" | "FENCE_REASON_UNKNOWN_LEASE" | "FENCE_REASON_FUTURE_TOKEN" | "FENCE_REASON_VERSION_REQUIRED" | "FENCE_REASON_FROZEN" | "FENCE_REASON_IN_DOUBT" | "FENCE_REASON_NOT_GRANTED" | "FENCE_REASON_OVERSIZE" | "FENCE_REASON_MALFORMED" | "FENCE_REASON_HEADER_NOT_ALLOWED" | "FENCE_REASON_ALG_NOT_ALLOWED" | "FENCE_REASON_WRONG_TYPE" | "FENCE_REASON_UNKNOWN_KEY" | "FENCE_REASON_BAD_SIGNATURE" | "FENCE_REASON_WRONG_ISSUER" | "FENCE_REASON_CLAIM_MISSING" | "FENCE_REASON_CLAIM_INVALID" | "FENCE_REASON_WRONG_AUDIENCE" | "FENCE_REASON_CREDENTIAL_EXPIRED" | "FENCE_REASON_NOT_YET_VALID" | "FENCE_REASON_NOT_BOUND" | "FENCE_REASON_BINDING_MISMATCH" | "FENCE_REASON_CREDENTIAL_REVOKED" | "FENCE_REASON_NO_WRITE_AUTHORITY" | "FENCE_REASON_WRONG_TARGET";
        /** @description Who stands in the way of a write to a resource, and by which rules others can. */
        FindBlockersResponse: {
            /** @description Whom a run would meet that wanted the resource alone, with everything below it: holders and what is under lock delay by resource, then the queue in its order; at most 256. */
            blockers: components["schemas"]["Blocker"][];
            /** @description Freezes over the resource, or over something below it; at most 16. */
            freezes: components["schemas"]["Freeze"][];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description True: there are more than are told. */
            more: boolean;
            /** @description The resource's path. */
            resource: string;
            /** @description Rules that tie the resource to others; at most 64. */
            rules: components["schemas"]["RuleAbout"][];
        };
        /** @description Ids that the log has. */
        FindIdsResponse: {
            /** @description Of leases and waiting requests, in order; at most 10. */
            leaseIds: string[];
            /** @description True: more begin so than are told. */
            more: boolean;
            /** @description Of runs, in order; at most 10. */
            runIds: string[];
        };
        /** @description An operator's order that nothing is granted under a pattern until it is thawed. */
        Freeze: {
            /** @description Checks of live leases deny writes there too. */
            denyChecks: boolean;
            /**
             * Format: date-time
             * @description Database time of the order, or of its last change.
             * @example 2026-12-01T10:00:00.000123Z
             */
            frozenAt?: string;
            /** @description Operators, admins and auditors only: who ordered it. Empty for others. */
            frozenBy: string;
            /** @description As it was given; an alias as its path. */
            pattern: string;
            /** @description Operators, admins and auditors only: why. Empty for others. */
            reason: string;
            /** @description SCOPE_SUBTREE: also everything below what the pattern matches. */
            scope: components["schemas"]["Scope"];
            /**
             * Format: date-time
             * @description It thaws by itself at this database time. Absent: it stays until an operator thaws it.
             * @example 2026-12-01T10:00:00.000123Z
             */
            until?: string;
        };
        /**
         * @description What a freeze did.
         *
         *     - `FREEZE_OUTCOME_UNSPECIFIED`: Never sent.
         *     - `FREEZE_OUTCOME_FROZEN`: The pattern was not frozen, and is.
         *     - `FREEZE_OUTCOME_ALREADY_FROZEN`: It was frozen on these terms or stricter ones; nothing was changed.
         *     - `FREEZE_OUTCOME_STRENGTHENED`: It was frozen, and is so for longer, wider or with denied checks now: of each term the stricter one holds.
         * @enum {string}
         */
        FreezeOutcome: "FREEZE_OUTCOME_UNSPECIFIED" | "FREEZE_OUTCOME_FROZEN" | "FREEZE_OUTCOME_ALREADY_FROZEN" | "FREEZE_OUTCOME_STRENGTHENED";
        /** @description Stops grants under a pattern. */
        FreezeRequest: {
            /** @description True: checks of live leases deny writes there too (`frozen`), and no credentials are issued by which a target that does not ask would let them in. False: only grants are stopped, and who holds something there may finish. */
            denyChecks?: boolean;
            /** @description A pattern in the language of the conflict map (`release/{env}`, `tenant/{rest...}`), a path or an alias; at most 1,024 bytes. Required. */
            pattern: string;
            /** @description Why, for the log and for other operators; 1 to 1,024 bytes. Required. */
            reason: string;
            /** @description Unset means SCOPE_SUBTREE: what the pattern matches and everything below it, since a brake is to stop too much rather than too little. SCOPE_EXACT: only what it matches. */
            scope?: components["schemas"]["Scope"];
            /**
             * Format: date-time
             * @description It thaws by itself at this database time, which must be in the future. Absent: it stays until it is thawed.
             * @example 2026-12-01T10:00:00.000123Z
             */
            until?: string;
        };
        /** @description The answer to Freeze. */
        FreezeResponse: {
            /**
             * Format: date-time
             * @description From this database time it is in force everywhere. No grant is decided and, with denyChecks, no check allowed from the moment that the call returns; targets of VIEW and LOCAL kinds may let in what they knew, or were vouched for, before that until then, also of leases that have ended.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description The freeze as it holds now. */
            freeze?: components["schemas"]["Freeze"];
            /** @description Kinds of the conflict map under it, by their patterns; at most 16. Empty: the map describes nothing there, and the pattern may be misspelt. */
            kinds: string[];
            /** @description Live leases that hold something under it. They go on: nobody is ended by a freeze. */
            liveLeases: number;
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description What the call did. */
            outcome: components["schemas"]["FreezeOutcome"];
            /** @description Requests that wait for something under it. */
            waitingRequests: number;
        };
        /** @description The answer to GetCheckpoint. */
        GetCheckpointResponse: {
            /** @description The checkpoint, made now. */
            checkpoint?: components["schemas"]["Checkpoint"];
        };
        /** @description The map. */
        GetConflictMapResponse: {
            /** @description Who put it. Empty at version 0. */
            author: string;
            /**
             * Format: date-time
             * @description When. Absent at version 0.
             * @example 2026-12-01T10:00:00.000123Z
             */
            createdAt?: string;
            /** @description The document as it was put, comments kept. Empty at version 0, before the first put. */
            document: string;
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Why. */
            reason: string;
            /** @description Its version; pass it as expectedVersion to change it. */
            version: string;
        };
        /** @description The answer to GetLease. */
        GetLeaseResponse: {
            /** @description The lease. */
            lease?: components["schemas"]["Lease"];
            /** @description Log revision at which this was true. */
            logRevision: string;
        };
        /** @description The answer to GetNamespace. */
        GetNamespaceResponse: {
            /** @description The namespace. */
            namespace?: components["schemas"]["Namespace"];
        };
        /** @description The answer to GetRun. */
        GetRunResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description The run. */
            run?: components["schemas"]["Run"];
        };
        /** @description Asks for the matrix of tasks. */
        GetTaskMatrixRequest: {
            /** @description A document to judge by. Empty: the current map. */
            document?: string;
        };
        /** @description The matrix. */
        GetTaskMatrixResponse: {
            /** @description Every unordered pair, tasks in the order of their names. */
            pairs: components["schemas"]["TaskPair"][];
        };
        /** @description Asks whether a credential counts. */
        IntrospectCredentialRequest: {
            /** @description The token. Required. One of more than 16,384 bytes is no credential, and does not count. */
            token: string;
        };
        /** @description The answer to IntrospectCredential: the members of RFC 7662. */
        IntrospectCredentialResponse: {
            /** @description Whether it counts now. False for whatever does not, and for what the caller may not know. */
            active: boolean;
            /** @description The credential's claims, with `tokenType`. Absent when it is not active. */
            claims?: {
                [key: string]: unknown;
            };
            /** @description Log revision at which this was true. Zero: it was no credential of this coordinator. */
            logRevision: string;
        };
        /** @description Asks for a credential. */
        IssueCredentialRequest: {
            /** @description The target's principal name, at most 128 printable ASCII characters. Where the conflict map names targets for the write set (`owner_service`), it must be one of them. Required. */
            audience: string;
            /** @description The key that the presenter will prove to have. Absent: the client certificate of this call, if it showed one; else the credential is bound to nobody. */
            confirmation?: components["schemas"]["ConfirmationInput"];
            /** @description The lease it stands for. Absent: none; the credential then carries no write authority, and lets the run only propose. */
            leaseId?: string;
            /** @description Correlates the call in the log (`writ why`); at most 128 printable ASCII characters. Empty: none. */
            requestId?: string;
            /** @description The run that will present it. Required. */
            runId: string;
        };
        /** @description The answer to IssueCredential. */
        IssueCredentialResponse: {
            /** @description Issued. Not together with refusal. */
            credential?: components["schemas"]["Credential"];
            /** @description Log revision at which this was decided. */
            logRevision: string;
            /** @description Not issued: TOO_SHORT, AUDIENCE_NOT_ALLOWED, CREDENTIALS_REVOKED, ENDED or RUN_ENDED. Not together with credential. */
            refusal?: components["schemas"]["Refusal"];
        };
        /** @description What a run holds on a write set. */
        Lease: {
            /** @description The lease of the parent run that it is a part of. Empty: of none. */
            delegatedFrom: string;
            /**
             * Format: date-time
             * @description When it ended on the database clock. Absent while it lives.
             * @example 2026-12-01T10:00:00.000123Z
             */
            endedAt?: string;
            /** @description Why it ended. */
            endReason: components["schemas"]["EndReason"];
            /** @description What it covers, the entries asked for first, then the implied ones. */
            entries: components["schemas"]["LeaseEntry"][];
            /**
             * Format: date-time
             * @description Database time at which it ends unless renewed. Absent while waiting.
             * @example 2026-12-01T10:00:00.000123Z
             */
            expiresAt?: string;
            /**
             * @description What was left when this was decided. Count it from the moment you *sent* the request, on a monotonic clock. Zero when nothing is left. Absent while waiting.
             * @example 12.500s
             */
            expiresIn?: string;
            /** @description 1 at the grant; rises with every change of its entries. */
            generation: number;
            /**
             * Format: date-time
             * @description Database time of the grant. Absent while waiting.
             * @example 2026-12-01T10:00:00.000123Z
             */
            grantedAt?: string;
            /** @description Random, 128 bits, 32 hexadecimal digits. A secret handle: whoever has it may present it. */
            leaseId: string;
            /**
             * Format: date-time
             * @description It ended early, and what it held of VIEW and LOCAL kinds is granted to no other run before this database time. Kept after that. Absent: no delay was needed.
             * @example 2026-12-01T10:00:00.000123Z
             */
            lockDelayUntil?: string;
            /**
             * Format: date-time
             * @description No renewal moves the expiry past this: the kind's max hold or the end of the run's authority.
             * @example 2026-12-01T10:00:00.000123Z
             */
            maxExpiresAt?: string;
            /**
             * @description The progress marker must change within this long, else the lease ends as NO_PROGRESS. Absent: no window applies.
             * @example 12.500s
             */
            progressWindow?: string;
            /** @description Free text of the run; at most 1,024 bytes. Shown to operators, auditors and the run itself only. */
            purpose: string;
            /**
             * @description What was asked for when it was requested, if that is more than is allowed: it was cut. Absent: it was not.
             * @example 12.500s
             */
            requestedTtl?: string;
            /** @description The run that holds it. */
            runId: string;
            /** @description Where it is in its life. */
            state: components["schemas"]["LeaseState"];
            /**
             * @description How long the grant, or the last renewal, lets it live: what was asked for, cut to the smallest maxTtl of its kinds and of its run's ceiling. Absent while waiting.
             * @example 12.500s
             */
            ttl?: string;
        };
        /** @description One entry of a granted write set. */
        LeaseEntry: {
            /** @description What the lease allows on it. */
            access: components["schemas"]["Access"];
            /** @description Verbs the lease allows on it. Empty for reads, and for implied entries whose rule names none. */
            actions: string[];
            /** @description True when at least one of the actions needs the lease to be alone (`concurrency: lease`); false for optimistic writes, which must carry the observed version to every check. */
            exclusive: boolean;
            /** @description The number that orders the holders of this resource, for ever increasing; below 2^53 until the year 2255. Present it with every write. Zero for READ entries, which fence nothing. */
            fencingToken: string;
            /** @description The conflict map's rule that brought the entry, such as `implies[0]`. Empty: it was asked for. */
            impliedBy: string;
            /** @description Set only for kinds in `observe` mode: the refusal that would have been given in `enforce` mode. */
            observedRefusal?: string;
            /** @description As given in the request. Absent: none was given. */
            observedVersion?: string;
            /** @description The resource's path. */
            resource: string;
            /** @description SCOPE_EXACT or SCOPE_SUBTREE. */
            scope: components["schemas"]["Scope"];
            /** @description A child run holds what the entry covers, or some of it: no check allows the token. When that has come back the entry has a new one, and the lease a higher generation. */
            suspended: boolean;
            /** @description What was granted as VIEW or LOCAL stays so, whatever the map says later, and VIEW can become LOCAL. */
            validation: components["schemas"]["Validation"];
        };
        /** @description What the holder of a lease should know. It is told again with every renewal for as long as it is so. */
        LeaseNotice: {
            /**
             * Format: date-time
             * @description INPUT_CHANGED only: database time of the last such grant. After a restart of the coordinator, when it cannot know, the time up to which it does not.
             * @example 2026-12-01T10:00:00.000123Z
             */
            changedAt?: string;
            /** @description What it is about. */
            kind: components["schemas"]["LeaseNoticeKind"];
            /** @description The entry of the lease: what is wanted, or what was read. */
            resource: string;
        };
        /**
         * @description What a notice is about.
         *
         *     - `LEASE_NOTICE_KIND_UNSPECIFIED`: Never sent.
         *     - `LEASE_NOTICE_KIND_ASKED_TO_YIELD`: Another run waits for what the lease holds. Nothing is taken away; who can give it back sooner, may.
         *     - `LEASE_NOTICE_KIND_INPUT_CHANGED`: Another run was granted a WRITE on what the lease only READs, since the lease's grant. Read it again, and let writes that rest on it check its version.
         * @enum {string}
         */
        LeaseNoticeKind: "LEASE_NOTICE_KIND_UNSPECIFIED" | "LEASE_NOTICE_KIND_ASKED_TO_YIELD" | "LEASE_NOTICE_KIND_INPUT_CHANGED";
        /**
         * @description Where a lease is in its life.
         *
         *     - `LEASE_STATE_UNSPECIFIED`: Never sent.
         *     - `LEASE_STATE_WAITING`: In the queue; nothing is held.
         *     - `LEASE_STATE_ACTIVE`: Held.
         *     - `LEASE_STATE_ENDED`: Over for good; see endReason.
         * @enum {string}
         */
        LeaseState: "LEASE_STATE_UNSPECIFIED" | "LEASE_STATE_WAITING" | "LEASE_STATE_ACTIVE" | "LEASE_STATE_ENDED";
        /** @description A page of checkpoints. */
        ListCheckpointsResponse: {
            /** @description The checkpoints. */
            checkpoints: components["schemas"]["SentCheckpoint"][];
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
        };
        /** @description A page of versions. */
        ListConflictMapVersionsResponse: {
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
            /** @description Newest first. */
            versions: components["schemas"]["ConflictMapVersion"][];
        };
        /** @description A page of events. */
        ListEventsResponse: {
            /** @description The events. */
            events: components["schemas"]["Event"][];
            /** @description The first revision that the log has. Above 1: what came before was archived and cut. */
            firstRevision: string;
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
        };
        /** @description A page of freezes. */
        ListFreezesResponse: {
            /** @description In the order of their patterns. */
            freezes: components["schemas"]["Freeze"][];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
        };
        /** @description A page of writes in doubt. */
        ListInDoubtResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
            /** @description In the order of their ids. */
            writes: components["schemas"]["OpenWrite"][];
        };
        /** @description A page of leases. */
        ListLeasesResponse: {
            /** @description In the order of their lease ids. Runners get ids of their own leases; operators, admins and auditors get all. */
            leases: components["schemas"]["Lease"][];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
        };
        /** @description A page of namespaces. */
        ListNamespacesResponse: {
            /** @description In the order of their names. */
            namespaces: components["schemas"]["Namespace"][];
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
        };
        /** @description A page of rehearsals. */
        ListRehearsalsResponse: {
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
            /** @description In the order of their kinds' patterns. */
            rehearsals: components["schemas"]["Rehearsal"][];
        };
        /** @description A page of runs. */
        ListRunsResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
            /** @description In the order of their ids. */
            runs: components["schemas"]["Run"][];
        };
        /** @description The signing keys. */
        ListSigningKeysResponse: {
            /** @description All that are published, then up to 100 that have retired, each in the order of their creation. */
            keys: components["schemas"]["SigningKey"][];
        };
        /** @description A page of unmatched resources. */
        ListUnmatchedResourcesResponse: {
            /** @description Pass it to get the next page. Empty: this is the last one. */
            nextPageToken: string;
            /** @description In the order of their names. At most 10,000 are kept; further names are then not counted. */
            resources: components["schemas"]["UnmatchedResource"][];
        };
        /** @description Leases that wait. */
        ListWaitersResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Empty: this is the last page. */
            nextPageToken: string;
            waiters: components["schemas"]["Waiter"][];
        };
        /** @description Where and what is wrong, or doubtful, in a document. */
        MapProblem: {
            /** @description Stable code, such as `unknown_key` or `equally_specific`. */
            code: string;
            /** @description 1-based column in the document; 0: not known. */
            column: number;
            /** @description 1-based line in the document; 0: not known. */
            line: number;
            /** @description What is wrong and what would be accepted. */
            message: string;
            /** @description Path of the value, such as `kinds[2].actions.promote`. */
            path: string;
            /** @description True: the document is accepted all the same. */
            warning: boolean;
        };
        /** @description A conflict domain. Conflicts never cross namespaces. */
        Namespace: {
            /** @description Version of its conflict map; 0: none yet. */
            conflictMapVersion: string;
            /**
             * Format: date-time
             * @description When it was created; unset once the beginning of its log has been cut off.
             * @example 2026-12-01T10:00:00.000123Z
             */
            createdAt?: string;
            /** @description Name of the database that it lives in; "main" unless another one was chosen at its creation. */
            database: string;
            /** @description Live leases. */
            liveLeases: number;
            /** @description Runs that have not ended. */
            liveRuns: number;
            /** @description Last revision of its log. */
            logRevision: string;
            /** @description 1 to 64 characters of a-z, 0-9 and "-", beginning with a letter. */
            name: string;
            /** @description Waiting requests. */
            waitingRequests: number;
        };
        /**
         * @description What to do with pairs of live leases that a new map puts in conflict.
         *
         *     - `ON_LIVE_CONFLICT_UNSPECIFIED`: The same as REFUSE.
         *     - `ON_LIVE_CONFLICT_REFUSE`: Refuse the change and name the pairs.
         *     - `ON_LIVE_CONFLICT_REVOKE_NEWER`: End the newer lease of each pair as MAP_CHANGED.
         *     - `ON_LIVE_CONFLICT_KEEP_UNTIL_END`: Let both live until they end; nothing new is granted against either.
         * @enum {string}
         */
        OnLiveConflict: "ON_LIVE_CONFLICT_UNSPECIFIED" | "ON_LIVE_CONFLICT_REFUSE" | "ON_LIVE_CONFLICT_REVOKE_NEWER" | "ON_LIVE_CONFLICT_KEEP_UNTIL_END";
        /** @description A tracked write whose outcome is not known. */
        OpenWrite: {
            /** @description The action. */
            action: string;
            /** @description Names it for SettleInDoubt and ReportWrite: 32 hexadecimal digits. */
            admissionId: string;
            /**
             * Format: date-time
             * @description When it was admitted.
             * @example 2026-12-01T10:00:00.000123Z
             */
            admittedAt?: string;
            /**
             * Format: date-time
             * @description Since when its resource is in doubt: its lease ended. Absent: the lease lives.
             * @example 2026-12-01T10:00:00.000123Z
             */
            inDoubtSince?: string;
            /** @description The lease it was admitted under. */
            leaseId: string;
            /** @description The version that its run had read. Absent: none was presented. */
            observedVersion?: string;
            /** @description The request id of its check. */
            requestId: string;
            /** @description The resource. */
            resource: string;
            /** @description The run that it was let in for. */
            runId: string;
            /** @description The target that was let in, and that is expected to report. */
            target: string;
            /** @description Its target has reported that it cannot tell. */
            unsure: boolean;
        };
        /** @description One write that nobody was asked about. */
        OverriddenWrite: {
            /** @description The verb, as the conflict map names it. Required. */
            action: string;
            /** @description The version that the request said it had read; empty: that there was none yet. Absent: none. */
            observedVersion?: string;
            /** @description The resource, or an alias of it. Required. */
            resource: string;
        };
        /** @description One request that an override let in. */
        OverrideUse: {
            /** @description The request's correlation id; 1 to 128 printable ASCII characters. Required. Callers choose it, and may choose the same for several requests: see `useId`. */
            requestId: string;
            /**
             * Format: date-time
             * @description When it was let in, on the target's clock. Required.
             * @example 2026-12-01T10:00:00.000123Z
             */
            usedAt: string;
            /** @description Names this use among those of the override, made up by the target for each request that it lets in; 1 to 128 printable ASCII characters. Reported again with the same id it is the same use. Empty: `requestId` names it, and further requests with that are refused as a reuse, or taken for it. */
            useId?: string;
            /** @description What it was let to write, 1 to 256. Required. */
            writes: components["schemas"]["OverriddenWrite"][];
        };
        /** @description Asks what a document would do. */
        PreviewConflictMapRequest: {
            /** @description YAML or JSON, at most 1 MiB. Required. */
            document: string;
            /** @description The handling to preview. */
            onLiveConflict?: components["schemas"]["OnLiveConflict"];
        };
        /** @description What a document would do. */
        PreviewConflictMapResponse: {
            /** @description True: PutConflictMap would take it as things are. */
            accepted: boolean;
            /** @description Live and waiting leases that would be given entries, meet others, be ended, or not be granted any more. */
            affected: components["schemas"]["AffectedLease"][];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Errors and warnings. */
            problems: components["schemas"]["MapProblem"][];
        };
        /** @description Asks what AcquireWriteSet would answer. */
        PreviewWriteSetRequest: {
            /** @description With `takeOver` only: as there. */
            acceptOverlap?: boolean;
            /** @description The request; its idempotency key is not looked at and may be empty. Required. */
            request: components["schemas"]["AcquireWriteSetRequest"];
            /** @description Says what TakeOver would answer instead, and whom it would end. Operators only. */
            takeOver?: boolean;
        };
        /** @description What AcquireWriteSet would answer now. */
        PreviewWriteSetResponse: {
            /** @description It would be granted: the lease without id, tokens and times. Not together with refusal. */
            lease?: components["schemas"]["Lease"];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description It would be refused, or wait. Not together with lease. */
            refusal?: components["schemas"]["Refusal"];
            /** @description With `takeOver` only: whom it would end. */
            wouldEnd: components["schemas"]["EndedLease"][];
        };
        /** @description Who calls. */
        Principal: {
            /** @description Methods that may be called in the namespace, such as `RunService/StopRun`. */
            may: string[];
            /** @description Of the principal. */
            name: string;
            /** @description That hold besides in single namespaces, by their names. */
            namespaceRoles: {
                [key: string]: ("admin" | "runner" | "target" | "operator" | "approver" | "auditor")[];
            };
            /** @description That hold in the namespace. */
            roles: ("admin" | "runner" | "target" | "operator" | "approver" | "auditor")[];
        };
        /** @description Why a request was not answered (RFC 9457). */
        Problem: {
            /** @description Of 412 and 428: the version that there is. */
            currentVersion?: string;
            /** @description What happened, and what to do. */
            detail: string;
            /** @description Facts that a program can act on. */
            metadata?: {
                [key: string]: string;
            };
            /** @description A stable code, as over gRPC. */
            reason: string;
            /** @description The status. */
            status: number;
            /** @description The status in words. */
            title: string;
            /** @description Always about:blank. */
            type: string;
            /** @description All that is wrong with the request. */
            violations?: {
                /** @description What is wrong, and what would be accepted. */
                description: string;
                /** @description The member, parameter or header that is wrong. */
                field: string;
            }[];
        };
        /** @description One write about to be made. */
        ProtectedWrite: {
            /** @description The verb, as the conflict map names it. Required. */
            action: string;
            /** @description The token presented by the run. Required with `leaseId`. With `credential` leave it zero: the credential brings it; another than the credential's is refused. */
            fencingToken?: string;
            /** @description The version the run says it has read. Optimistic actions are refused without it (VERSION_REQUIRED); whether it is current only the target can tell. At most 256 bytes. Empty counts as one: the run has seen that there is none yet, and means to create it. Absent: none presented, which is another thing. */
            observedVersion?: string;
            /** @description The resource, or an alias of it. Required. */
            resource: string;
        };
        /** @description Replaces the map. */
        PutConflictMapRequest: {
            /** @description YAML or JSON, at most 1 MiB. Required. */
            document: string;
            /** @description What to do with pairs of live leases that the new map puts in conflict. */
            onLiveConflict?: components["schemas"]["OnLiveConflict"];
            /** @description Why, for the history; at most 1,024 bytes. */
            reason?: string;
        };
        /** @description The answer to PutConflictMap. */
        PutConflictMapResponse: {
            /** @description Live and waiting leases that were given entries, meet others now, were ended, or would not be granted any more. */
            affected: components["schemas"]["AffectedLease"][];
            /** @description Log revision of the change. */
            logRevision: string;
            /** @description The new version. */
            version: string;
            /** @description Warnings. */
            warnings: components["schemas"]["MapProblem"][];
        };
        /** @description Records a rehearsal. */
        RecordRehearsalRequest: {
            /** @description All cases, 1 to 64, each once. Required. */
            cases: components["schemas"]["RehearsedCaseInput"][];
            /** @description The resource it was played on: a path or an alias. Its kind is what the result is about. Required. */
            resource: string;
            /** @description SHA-256 of the whole result, 64 hexadecimal digits in lower case. Required. */
            resultDigest: string;
            /** @description Version of the suite, 1 to 128 printable ASCII characters. Required. */
            suiteVersion: string;
            /** @description The target, 1 to 128 printable ASCII characters. Required. */
            targetName: string;
            /**
             * @description How long it counts, 1 h to 366 days. Absent: 30 days.
             * @example 12.500s
             */
            validFor?: string;
        };
        /** @description The answer to RecordRehearsal. */
        RecordRehearsalResponse: {
            /** @description Log revision of the change. */
            logRevision: string;
            /** @description As it is known now; `counts` says whether the kind's demand is met. */
            rehearsal?: components["schemas"]["Rehearsal"];
        };
        /** @description A typed negative answer. */
        Refusal: {
            /** @description What stands in the way; at most 16. */
            blockers: components["schemas"]["Blocker"][];
            /** @description DEADLOCK only: the `blockerRef`s of the cycle in order (operators and auditors: run ids). */
            cycle: string[];
            /** @description FROZEN: what an operator has frozen of what was asked for; at most 16. */
            freezes: components["schemas"]["Freeze"][];
            /** @description The entries of the request that could be granted now. Empty: none, or it does not apply. */
            grantable: components["schemas"]["WriteSetEntry"][];
            /** @description Stable code. */
            kind: components["schemas"]["RefusalKind"];
            /** @description What happened, to which resource, in one or two sentences. */
            message: string;
            /** @description What to do next. */
            resolution?: components["schemas"]["Resolution"];
            /** @description The entry's resource the refusal is about, where it is about one. */
            resource: string;
            /**
             * @description Earliest time at which the blockers can be gone, and the named resource set can be had. Absent: unknown, or waiting does not help.
             * @example 12.500s
             */
            retryAfter?: string;
        };
        /**
         * @description Why a request was refused. An expected outcome, not a fault.
         *
         *     - `REFUSAL_KIND_UNSPECIFIED`: Never sent.
         *     - `REFUSAL_KIND_HELD`: Another run holds, or waits ahead for, an incompatible lock.
         *     - `REFUSAL_KIND_ALREADY_HELD`: Another lease of the same run holds it.
         *     - `REFUSAL_KIND_WAIT_TIMEOUT`: The wait ended before the request could be granted.
         *     - `REFUSAL_KIND_DEADLOCK`: Waiting would close a cycle of runs that wait for each other.
         *     - `REFUSAL_KIND_LOCK_DELAY`: The resource cannot be had before a time: that of `retryAfter`. Either the start time of a named resource set; or another run's lease on a VIEW or LOCAL kind ended early, and its targets may still let it write.
         *     - `REFUSAL_KIND_IN_DOUBT`: A write to the resource has an unknown outcome that must be settled first.
         *     - `REFUSAL_KIND_UNDESCRIBED`: The write set names no resource that a target can check.
         *     - `REFUSAL_KIND_OUTSIDE_CONTRACT`: The run's contract does not allow it.
         *     - `REFUSAL_KIND_FORBIDDEN`: The conflict map forbids automated writes there.
         *     - `REFUSAL_KIND_PROPOSE_ONLY`: The conflict map allows proposals there, no writes.
         *     - `REFUSAL_KIND_APPROVAL_REQUIRED`: The action needs an approval, and approvals cannot be given yet.
         *     - `REFUSAL_KIND_LIMIT`: A bound of the coordinator was met; the message names it.
         *     - `REFUSAL_KIND_RUN_ENDED`: The run has ended, is stopping, or its authority is over.
         *     - `REFUSAL_KIND_RUN_BLOCKED`: The run is blocked until an operator resumes it.
         *     - `REFUSAL_KIND_ENDED`: The lease, or the place in the queue that the key is bound to, has ended.
         *     - `REFUSAL_KIND_TOO_LATE`: Renewal only: less than 500 ms were left.
         *     - `REFUSAL_KIND_MAX_HOLD`: Renewal only: the kind's max hold is used up.
         *     - `REFUSAL_KIND_NO_PROGRESS`: Renewal only: the progress marker did not change within the progress window.
         *     - `REFUSAL_KIND_TOO_SHORT`: Credentials only: too little is left of the lease, as a credential ends some seconds before it.
         *     - `REFUSAL_KIND_AUDIENCE_NOT_ALLOWED`: Credentials only: the conflict map names other targets for the write set.
         *     - `REFUSAL_KIND_CREDENTIALS_REVOKED`: Credentials only: those of the lease or run were revoked within the same second.
         *     - `REFUSAL_KIND_REHEARSAL_REQUIRED`: The kind demands that its target was rehearsed, and no rehearsal that counts is recorded.
         *     - `REFUSAL_KIND_FROZEN`: An operator has stopped grants there; see `freezes`.
         * @enum {string}
         */
        RefusalKind: "REFUSAL_KIND_UNSPECIFIED" | "REFUSAL_KIND_HELD" | "REFUSAL_KIND_ALREADY_HELD" | "REFUSAL_KIND_WAIT_TIMEOUT" | "REFUSAL_KIND_DEADLOCK" | "REFUSAL_KIND_LOCK_DELAY" | "REFUSAL_KIND_IN_DOUBT" | "REFUSAL_KIND_UNDESCRIBED" | "REFUSAL_KIND_OUTSIDE_CONTRACT" | "REFUSAL_KIND_FORBIDDEN" | "REFUSAL_KIND_PROPOSE_ONLY" | "REFUSAL_KIND_APPROVAL_REQUIRED" | "REFUSAL_KIND_LIMIT" | "REFUSAL_KIND_RUN_ENDED" | "REFUSAL_KIND_RUN_BLOCKED" | "REFUSAL_KIND_ENDED" | "REFUSAL_KIND_TOO_LATE" | "REFUSAL_KIND_MAX_HOLD" | "REFUSAL_KIND_NO_PROGRESS" | "REFUSAL_KIND_TOO_SHORT" | "REFUSAL_KIND_AUDIENCE_NOT_ALLOWED" | "REFUSAL_KIND_CREDENTIALS_REVOKED" | "REFUSAL_KIND_REHEARSAL_REQUIRED" | "REFUSAL_KIND_FROZEN";
        /** @description What is known of the rehearsals of one kind. */
        Rehearsal: {
            /** @description What the cases came to. */
            cases: components["schemas"]["RehearsedCase"][];
            /** @description True: it counts now: passed, not too old, and the kind's actions are what they were. */
            counts: boolean;
            /** @description The kind's pattern. */
            kind: string;
            /**
             * Format: date-time
             * @description Runs of a suite may have resources of the kind until then. Absent: none may.
             * @example 2026-12-01T10:00:00.000123Z
             */
            openUntil?: string;
            /**
             * Format: date-time
             * @description When.
             * @example 2026-12-01T10:00:00.000123Z
             */
            recordedAt?: string;
            /** @description Who recorded it. */
            recordedBy: string;
            /** @description True: the kind demands one that counts before a run gets authority to write. */
            required: boolean;
            /** @description On which resource it was played. Empty, as all that follows: none was recorded. */
            resource: string;
            /** @description SHA-256 of the whole result, hexadecimal. */
            resultDigest: string;
            /** @description Version of the suite. */
            suiteVersion: string;
            /** @description The target, by the name that the suite was told. */
            targetName: string;
            /**
             * Format: date-time
             * @description It is too old from then on.
             * @example 2026-12-01T10:00:00.000123Z
             */
            validUntil?: string;
            /** @description Why it does not count. Empty: it does. */
            whyNot: string;
        };
        /**
         * @description What a case of a rehearsal came to.
         *
         *     - `REHEARSAL_OUTCOME_UNSPECIFIED`: Never sent.
         *     - `REHEARSAL_OUTCOME_PASSED`: Played, and the target did right.
         *     - `REHEARSAL_OUTCOME_FAILED`: The target did what it must not.
         *     - `REHEARSAL_OUTCOME_NOT_APPLICABLE`: It has no meaning for this target, or was left out. Never counted as passed.
         *     - `REHEARSAL_OUTCOME_UNDECIDED`: It could not be played to its end.
         * @enum {string}
         */
        RehearsalOutcome: "REHEARSAL_OUTCOME_UNSPECIFIED" | "REHEARSAL_OUTCOME_PASSED" | "REHEARSAL_OUTCOME_FAILED" | "REHEARSAL_OUTCOME_NOT_APPLICABLE" | "REHEARSAL_OUTCOME_UNDECIDED";
        /** @description One case of a rehearsal. */
        RehearsedCase: {
            /** @description Such as `late_write`; a way of playing it follows after a colon: `write_past_open:before_commit`. 1 to 64 of a-z, 0-9, `_` and one `:`. */
            name: string;
            /** @description What it came to. Required. */
            outcome: components["schemas"]["RehearsalOutcome"];
        };
        /** @description One case of a rehearsal. */
        RehearsedCaseInput: {
            /** @description Such as `late_write`; a way of playing it follows after a colon: `write_past_open:before_commit`. 1 to 64 of a-z, 0-9, `_` and one `:`. */
            name?: string;
            /** @description What it came to. Required. */
            outcome: components["schemas"]["RehearsalOutcome"];
        };
        /** @description Ends a lease of the caller's run. */
        ReleaseLeaseByKeyRequest: {
            /** @description By the idempotency key of the acquire, also one whose answer was lost. An acquire by that key that arrives later is refused. */
            acquireKey: string;
            /** @description The run that holds it. Required. */
            runId: string;
        };
        /** @description Ends a lease of the caller's run. */
        ReleaseLeaseRequest: {
            /** @description The run that holds it. Required. */
            runId: string;
        };
        /** @description The answer to ReleaseLease. */
        ReleaseLeaseResponse: {
            /**
             * Format: date-time
             * @description From this database time the end is in force everywhere. No check allows the token from the moment that the call returns. With entries of VIEW and LOCAL kinds this is the end of their lock delay, and in the future.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description How the lease ended. */
            endReason: components["schemas"]["EndReason"];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Tracked writes that were let in under the lease, and whose outcome is not known: their resources are granted to nobody until it is. All else that the lease held is free. Empty: none. */
            openWrites: components["schemas"]["OpenWrite"][];
            /** @description What the release did. */
            outcome: components["schemas"]["ReleaseOutcome"];
        };
        /**
         * @description What a release did.
         *
         *     - `RELEASE_OUTCOME_UNSPECIFIED`: Never sent.
         *     - `RELEASE_OUTCOME_RELEASED`: It was live and this call ended it.
         *     - `RELEASE_OUTCOME_ALREADY_ENDED`: It had ended before; see endReason.
         *     - `RELEASE_OUTCOME_NOTHING_HELD`: By key only: nothing was granted by it, and nothing will be.
         * @enum {string}
         */
        ReleaseOutcome: "RELEASE_OUTCOME_UNSPECIFIED" | "RELEASE_OUTCOME_RELEASED" | "RELEASE_OUTCOME_ALREADY_ENDED" | "RELEASE_OUTCOME_NOTHING_HELD";
        /** @description One lease to extend. */
        Renewal: {
            /** @description The lease. Required. */
            leaseId: string;
            /** @description Any value that changes when the work has moved on; at most 256 bytes. Heartbeats keep the worker alive, only progress keeps the lease. Absent: no progress is claimed. */
            progressMarker?: string;
            /**
             * @description Time to live from now, bounded as in AcquireWriteSet. Absent: the ttl of the grant.
             * @example 12.500s
             */
            ttl?: string;
        };
        /** @description What became of one renewal. */
        RenewalResult: {
            /** @description Extended. Not together with refusal. */
            lease?: components["schemas"]["Lease"];
            /** @description The lease. */
            leaseId: string;
            /** @description With `lease` only: what the holder should know; at most two for each of its entries. */
            notices: components["schemas"]["LeaseNotice"][];
            /** @description Not extended: ENDED, TOO_LATE, MAX_HOLD, RUN_ENDED or NO_PROGRESS. Not together with lease. */
            refusal?: components["schemas"]["Refusal"];
        };
        /** @description Extends leases. */
        RenewLeasesRequest: {
            /** @description 1 to 1,000. Required. Large leases only as many as the answer has room for, about 3 MiB of them: else ANSWER_TOO_LARGE, and none is renewed. */
            renewals: components["schemas"]["Renewal"][];
            /** @description The run that holds them. Required. */
            runId: string;
        };
        /** @description In the order of the request. */
        RenewLeasesResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description One per renewal, in the order of the request. */
            results: components["schemas"]["RenewalResult"][];
        };
        /**
         * @description What a report did.
         *
         *     - `REPORT_OUTCOME_UNSPECIFIED`: Never sent.
         *     - `REPORT_OUTCOME_CLOSED`: The admission is closed: the outcome is known.
         *     - `REPORT_OUTCOME_RECORDED`: Recorded. There is no admission, or it stays open as the result is not known.
         *     - `REPORT_OUTCOME_ALREADY_KNOWN`: The same was known before; nothing was changed.
         *     - `REPORT_OUTCOME_CONTRADICTS`: Another result was reported or settled before, and holds. This one is in the log for people to look at.
         * @enum {string}
         */
        ReportOutcome: "REPORT_OUTCOME_UNSPECIFIED" | "REPORT_OUTCOME_CLOSED" | "REPORT_OUTCOME_RECORDED" | "REPORT_OUTCOME_ALREADY_KNOWN" | "REPORT_OUTCOME_CONTRADICTS";
        /** @description Reports an override at a target, or one use of it. */
        ReportOverrideRequest: {
            /** @description The target's own name of the override; 1 to 128 printable ASCII characters. Required. */
            overrideId: string;
            /** @description Which resources it lets write, as patterns; 1 to 32. Required. */
            patterns: string[];
            /**
             * Format: date-time
             * @description When it ends, on the target's clock. Required.
             * @example 2026-12-01T10:00:00.000123Z
             */
            until: string;
            /** @description One request that was let in by it. Absent: the override itself is reported. */
            use?: components["schemas"]["OverrideUse"];
            /** @description The person, as the target authenticated them; 1 to 256 bytes. Required. */
            who: string;
            /** @description Why it was needed; 1 to 1,024 bytes. Required. */
            why: string;
        };
        /** @description That the report is in the log. */
        ReportOverrideResponse: {
            /** @description True: it was there already. */
            alreadyReported: boolean;
            /** @description Log revision at which it is there. */
            logRevision: string;
        };
        /** @description Reports what became of the writes of one check. */
        ReportWriteRequest: {
            /** @description The credential of the check, in place of `leaseId`; it may have expired since. Empty: none. */
            credential?: string;
            /** @description Why they failed, or are not known; at most 1,024 bytes. Facts only, no secrets. Stands beside the log, where it can be erased. */
            detail?: string;
            /** @description The lease of the check. Required, unless `credential` is given or each report has its admissionId. */
            leaseId?: string;
            /** @description The request id of the check; at most 128 printable ASCII characters. */
            requestId?: string;
            /** @description 1 to 256. Required. */
            writes: components["schemas"]["WriteReport"][];
        };
        /** @description The answer to ReportWrite. */
        ReportWriteResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description One per write, in the order of the request. */
            outcomes: components["schemas"]["ReportOutcome"][];
        };
        /** @description What to do about a refusal. */
        Resolution: {
            /** @description What to do next, in one sentence. */
            action: string;
            /** @description True when the same request can succeed later without anybody changing anything else. */
            retryable: boolean;
            /** @description Who can do it: `runner`, `operator`, `admin`, or a resolver of the conflict map. */
            who: string;
        };
        /** @description What a resource is. */
        ResolveResourceResponse: {
            /** @description Actions of the kind. */
            actions: string[];
            /** @description Pattern of the alias that was applied. Empty: none. */
            alias: string;
            /** @description Pattern of the kind it is of. Empty: no kind matches. */
            kind: string;
            /**
             * @description With VALIDATION_VIEW: the greatest age at which a view decides, 100 ms to 60 s. Absent: another validation.
             * @example 12.500s
             */
            maxViewAge?: string;
            /** @description Its path. */
            resource: string;
            /** @description How targets of the kind learn of the end of a lease. Unset: no kind matches. */
            validation: components["schemas"]["Validation"];
        };
        /** @description Asks to retire a key. */
        RetireSigningKeyRequest: {
            /** @description Why, for the log; 1 to 1,024 bytes. Required. */
            reason: string;
        };
        /** @description The answer to RetireSigningKey. */
        RetireSigningKeyResponse: {
            /** @description What was changed. Empty: it had retired before. */
            changed: components["schemas"]["SigningKey"][];
        };
        /** @description Asks to revoke credentials. */
        RevokeCredentialRequest: {
            /** @description One credential, by its `jti`. Operators and admins only. Not together with leaseId, runId. */
            jti?: string;
            /** @description All that are out for a lease. Not together with jti, runId. */
            leaseId?: string;
            /** @description Why, for the log; 1 to 1,024 bytes. Required. */
            reason: string;
            /** @description All that are out for a run, of all its leases and of none. Not together with jti, leaseId. */
            runId?: string;
        };
        /** @description The answer to RevokeCredential. */
        RevokeCredentialResponse: {
            /**
             * Format: date-time
             * @description From this database time no check allows what was out.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description Log revision at which this was true. */
            logRevision: string;
        };
        /** @description Ends anybody's lease. */
        RevokeLeaseRequest: {
            /** @description Why, for the log; 1 to 1,024 bytes. Its holder is told that it was revoked. Required. */
            reason: string;
        };
        /** @description The answer to RevokeLease. */
        RevokeLeaseResponse: {
            /**
             * Format: date-time
             * @description From this database time the end is in force everywhere, as in ReleaseLeaseResponse.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description How the lease ended: REVOKED, or how it had ended before. */
            endReason: components["schemas"]["EndReason"];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Tracked writes whose outcome is not known. Empty: none. */
            openWrites: components["schemas"]["OpenWrite"][];
        };
        /** @description Which version to put again. */
        RollbackConflictMapRequest: {
            /** @description What to do with pairs of live leases that the new map puts in conflict. */
            onLiveConflict?: components["schemas"]["OnLiveConflict"];
            /** @description Why; absent: that it is a rollback, and to what. */
            reason?: string;
            /** @description The version to go back to. Required. */
            toVersion: string;
        };
        /** @description Asks for a rotation. */
        RotateSigningKeyRequest: {
            /** @description True: a key made now signs at once, also when nobody has fetched it yet; the next one is made anew too. For keys that somebody else may have. Verifiers that keep the keys refuse new credentials until they fetch them again. */
            force?: boolean;
            /** @description Why, for the log; 1 to 1,024 bytes. Required. */
            reason: string;
        };
        /** @description The answer to RotateSigningKey. */
        RotateSigningKeyResponse: {
            /** @description What was changed. */
            changed: components["schemas"]["SigningKey"][];
        };
        /** @description A rule of the conflict map by which a write to one resource can meet a write to another. */
        RuleAbout: {
            /** @description What the rule says, in words. */
            message: string;
            /** @description The other resource; what the first one does not bind stays a capture, `{name}`. */
            resource: string;
            /** @description Its name, such as `conflicts[0]`. */
            rule: string;
        };
        /** @description An agent run and its contract. */
        Run: {
            /** @description What it may ask for. */
            allowed: components["schemas"]["Allowance"][];
            /**
             * Format: date-time
             * @description Absolute end of its authority on the database clock; no restart, renewal or timer moves it.
             * @example 2026-12-01T10:00:00.000123Z
             */
            authorityEndsAt?: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-12-01T10:00:00.000123Z
             */
            createdAt?: string;
            /**
             * Format: date-time
             * @description When it ended. Absent while it lives.
             * @example 2026-12-01T10:00:00.000123Z
             */
            endedAt?: string;
            /** @description STOPPING only: the state that it comes to once every outcome is known. Unspecified in any other state. */
            endsAs: components["schemas"]["RunState"];
            /** @description Whom to turn to, in order. */
            escalation: string[];
            /** @description Revision of the goal the run works towards; at most 256 bytes. */
            goalRevision: string;
            /** @description The person on whose behalf it runs; at most 256 bytes. Empty: nobody is named. */
            initiator: string;
            /** @description True: a token of the person proved it when the run was created. False: it is what the caller said, and nobody verified it. */
            initiatorVerified: boolean;
            /** @description Live leases it holds. */
            liveLeases: number;
            /**
             * @description Longest ttl of its leases, from the ceiling of its principal. Absent: the kinds' alone.
             * @example 12.500s
             */
            maxTtl?: string;
            /** @description Whether a check could allow one of its writes at all now. */
            mayWrite: boolean;
            /** @description How many writes are unresolved. */
            openWriteCount: number;
            /** @description What is unresolved: tracked writes, of the run and of runs below it, whose outcome is not known. In lists of runs at most 8 are told, else at most 256; see openWriteCount. Empty: nothing. */
            openWrites: components["schemas"]["OpenWrite"][];
            /** @description The run that it is part of; it ends with that one, and is never wider. Empty: none. */
            parentRunId: string;
            /** @description The principal that created it, from the authenticated call. */
            principal: string;
            /** @description What for; at most 1,024 bytes. */
            purpose: string;
            /** @description 32 hexadecimal digits. */
            runId: string;
            /** @description Where it is. */
            state: components["schemas"]["RunState"];
            /** @description Why it is in this state, as said by whoever put it there. */
            stateReason: string;
            /** @description Requests it has waiting. */
            waitingRequests: number;
        };
        /**
         * @description Where a run is.
         *
         *     - `RUN_STATE_UNSPECIFIED`: Never sent.
         *     - `RUN_STATE_ACTIVE`: Working.
         *     - `RUN_STATE_WAITING_FOR_INPUT`: Needs an answer from a person to go on.
         *     - `RUN_STATE_BLOCKED`: Cannot go on; nothing new is granted until it is resumed.
         *     - `RUN_STATE_STOPPING`: Its authority has ended, but the outcome of tracked writes that were let in is not known yet.
         *     - `RUN_STATE_STOPPED`: Stopped, and every accepted write has a known outcome.
         *     - `RUN_STATE_FINISHED`: The work is done.
         *     - `RUN_STATE_FAILED`: The work failed.
         *     - `RUN_STATE_EXPIRED`: The end of its authority passed.
         * @enum {string}
         */
        RunState: "RUN_STATE_UNSPECIFIED" | "RUN_STATE_ACTIVE" | "RUN_STATE_WAITING_FOR_INPUT" | "RUN_STATE_BLOCKED" | "RUN_STATE_STOPPING" | "RUN_STATE_STOPPED" | "RUN_STATE_FINISHED" | "RUN_STATE_FAILED" | "RUN_STATE_EXPIRED";
        /**
         * @description How much below the named resource an entry covers.
         *
         *     - `SCOPE_UNSPECIFIED`: In a request the same as SCOPE_EXACT; never sent in an answer.
         *     - `SCOPE_EXACT`: The named resource only.
         *     - `SCOPE_SUBTREE`: The named resource and everything below it.
         * @enum {string}
         */
        Scope: "SCOPE_UNSPECIFIED" | "SCOPE_EXACT" | "SCOPE_SUBTREE";
        /** @description A checkpoint, and where it was sent. */
        SentCheckpoint: {
            /** @description As it was signed. */
            checkpoint?: components["schemas"]["Checkpoint"];
            /** @description For a person, such as `log of writ-0, process 17`: a line `checkpoint` of that replica's own log. */
            sentTo: string;
        };
        /**
         * @description What somebody found out about a write in doubt.
         *
         *     - `SETTLED_OUTCOME_UNSPECIFIED`: Never valid in a request.
         *     - `SETTLED_OUTCOME_HAPPENED`: The write took effect.
         *     - `SETTLED_OUTCOME_DID_NOT_HAPPEN`: The write changed nothing, and will not.
         * @enum {string}
         */
        SettledOutcome: "SETTLED_OUTCOME_UNSPECIFIED" | "SETTLED_OUTCOME_HAPPENED" | "SETTLED_OUTCOME_DID_NOT_HAPPEN";
        /** @description Settles a write in doubt. */
        SettleInDoubtRequest: {
            /** @description The version of the resource now, of a write that happened; at most 256 bytes. Absent: not told. */
            newVersion?: string;
            /** @description What became of it. Required. */
            outcome: components["schemas"]["SettledOutcome"];
            /** @description How that was found out, for the log; 1 to 1,024 bytes. Required. */
            reason: string;
        };
        /** @description The answer to SettleInDoubt. */
        SettleInDoubtResponse: {
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description The run of the write; empty when it is no longer known. */
            runId: string;
            /** @description False: this was known before, and the call changed nothing. */
            settledNow: boolean;
            /** @description Writes of that run whose outcome is not known yet; at most 256. Empty: none. */
            stillOpen: components["schemas"]["OpenWrite"][];
        };
        /** @description A key that signs credentials. */
        SigningKey: {
            /**
             * Format: date-time
             * @description When it began to sign. Absent: it has not.
             * @example 2026-12-01T10:00:00.000123Z
             */
            activatedAt?: string;
            /** @description ES256. */
            algorithm: string;
            /**
             * Format: date-time
             * @description When it was made and published.
             * @example 2026-12-01T10:00:00.000123Z
             */
            createdAt?: string;
            /** @description Its name: `kid`, the RFC 7638 thumbprint. */
            keyId: string;
            /**
             * Format: date-time
             * @description When it ceased to sign. Absent: it has not.
             * @example 2026-12-01T10:00:00.000123Z
             */
            replacedAt?: string;
            /**
             * Format: date-time
             * @description When it was retired. Absent: it was not.
             * @example 2026-12-01T10:00:00.000123Z
             */
            retiredAt?: string;
            /** @description Where it is in its life. */
            state: components["schemas"]["SigningKeyState"];
        };
        /**
         * @description Where a signing key is in its life.
         *
         *     - `SIGNING_KEY_STATE_UNSPECIFIED`: Never sent.
         *     - `SIGNING_KEY_STATE_NEXT`: Published, and signs after the current one.
         *     - `SIGNING_KEY_STATE_CURRENT`: Signs.
         *     - `SIGNING_KEY_STATE_PREVIOUS`: Signs no more, and is published until what it signed has ended.
         *     - `SIGNING_KEY_STATE_RETIRED`: Not published, its private part destroyed.
         * @enum {string}
         */
        SigningKeyState: "SIGNING_KEY_STATE_UNSPECIFIED" | "SIGNING_KEY_STATE_NEXT" | "SIGNING_KEY_STATE_CURRENT" | "SIGNING_KEY_STATE_PREVIOUS" | "SIGNING_KEY_STATE_RETIRED";
        /** @description Stops a run. */
        StopRunRequest: {
            /** @description Why; 1 to 1,024 bytes. Required. */
            reason: string;
        };
        /** @description The answer to StopRun. */
        StopRunResponse: {
            /**
             * Format: date-time
             * @description From this database time the end is in force everywhere. No check allows any token of the run from the moment that the call returns. Where the run held entries of VIEW and LOCAL kinds this is the end of the last lock delay, and in the future. A repeated call may tell another moment (while the run is STOPPING that of the call, later that of the run's end): the end is in force from it, or from the repeated answer, whichever is later.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Tracked writes whose outcome is not known; while there are any the run is STOPPING. */
            openWrites: components["schemas"]["OpenWrite"][];
            /** @description The run as it is now. */
            run?: components["schemas"]["Run"];
        };
        /** @description Stops all runs that match. */
        StopRunsRequest: {
            /** @description Must be true when neither principal nor resource is given: stops every run of the namespace. */
            all?: boolean;
            /** @description Only runs of this principal. Empty: of any. */
            principal?: string;
            /** @description Why; 1 to 1,024 bytes. Required. */
            reason: string;
            /** @description Only runs that hold or wait for something at, above or below this resource (a path or an alias). Empty: any. */
            resource?: string;
        };
        /** @description The answer to StopRuns. */
        StopRunsResponse: {
            /**
             * Format: date-time
             * @description From this database time the end of all of them is in force everywhere, as in StopRunResponse.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description The runs stopped by this call; repeated with its key, those that the first call stopped, as they are now. Runs that were purged since are left out. */
            runs: components["schemas"]["Run"][];
        };
        /** @description Gives a run what others hold. */
        TakeOverRequest: {
            /** @description True: granted at once, whatever lock delays and writes in doubt there are. Until these are over, what a former holder was let in for or vouched for may still take effect beside the new one. */
            acceptOverlap?: boolean;
            /** @description 1 to 256 entries; leave empty when `task` or `resourceSet` is set. */
            entries?: components["schemas"]["WriteSetEntryInput"][];
            /** @description What the lease is for; at most 1,024 bytes. */
            purpose?: string;
            /** @description Why, for the log of each lease that ends; 1 to 1,024 bytes. Required. */
            reason: string;
            /** @description Correlates the attempt in the log (`writ why`); at most 128 printable ASCII characters. Empty: none. */
            requestId?: string;
            /** @description A named resource set of the conflict map (`sets`) whose start has come. Empty: none. */
            resourceSet?: string;
            /** @description The run that is to have it; anybody's. Required. */
            runId: string;
            /** @description A task of the conflict map. */
            task?: components["schemas"]["TaskCall"];
            /**
             * @description How long the lease lives unless its run renews it, as in AcquireWriteSet.
             * @example 12.500s
             */
            ttl?: string;
            /**
             * @description How long to wait for lock delays and writes in doubt, 0 to 1 h. Absent or zero: do not wait, and end nobody if there are any. Call again as in AcquireWriteSet.
             * @example 12.500s
             */
            wait?: string;
        };
        /** @description The answer to TakeOver: exactly one outcome. */
        TakeOverResponse: {
            /**
             * Format: date-time
             * @description From this database time all these ends are in force everywhere. No check allows any of their tokens from the moment that the call returns. Absent: nobody was ended.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description The leases in the way, which it ended; at most 1,000. Also of a repeated call, as far as they are still known. What held a part of one of them ended with it (PARENT_ENDED), and is named only if it was in the way itself. */
            ended: components["schemas"]["EndedLease"][];
            /** @description Granted, now or earlier by the same key. Not together with waiting, refusal. */
            lease?: components["schemas"]["Lease"];
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description Tracked writes that were let in under them, and whose outcome is not known: they are in doubt. At most 256. */
            openWrites: components["schemas"]["OpenWrite"][];
            /** @description Refused; nobody was ended, and nothing is held. Not together with lease, waiting. */
            refusal?: components["schemas"]["Refusal"];
            /** @description The holders have ended, and the run is first in the queue for what nobody can end. Not together with lease, refusal. */
            waiting?: components["schemas"]["WaitingPlace"];
        };
        /** @description A task of the conflict map, asked for instead of entries. */
        TaskCall: {
            /** @description Name of the task. Required. */
            name: string;
            /** @description A value for each parameter of the task; each must be one path segment. */
            parameters?: {
                [key: string]: string;
            };
        };
        /** @description One place where two tasks meet. */
        TaskCollision: {
            /** @description Why the `conflicts` rule among them is there, as the map says it. */
            because: string;
            /** @description All of it in words. */
            message: string;
            /** @description What one task holds there. In both resources `{tenant}` stands for one and the same value of a parameter, any one, and `{other tenant}` for a different one. */
            resourceA: string;
            /** @description What the other task holds there. */
            resourceB: string;
            /** @description Rules of the map by which they meet. Empty: both tasks name the resource. */
            rules: string[];
        };
        /** @description One pair of tasks. */
        TaskPair: {
            /** @description True: they collide whatever the parameters are. */
            always: boolean;
            /** @description Where and why, in words; the messages of the collisions, and a remark when not every combination of parameters could be tried. */
            because: string[];
            /** @description True: two runs with some parameters can collide. */
            canCollide: boolean;
            /** @description Where and why; at most 8. */
            collisions: components["schemas"]["TaskCollision"][];
            /** @description Where one task's inputs can be changed by the other, in words. */
            inputChanges: string[];
            /** @description One task. */
            taskA: string;
            /** @description The other task; may be the same one, run twice. */
            taskB: string;
        };
        /** @description A document to test. */
        TestConflictMapRequest: {
            /** @description YAML or JSON, at most 1 MiB. */
            document: string;
        };
        /** @description What the assertions came to. */
        TestConflictMapResponse: {
            /** @description How many assertions were run. */
            assertions: number;
            /** @description Assertions that do not hold. */
            failed: components["schemas"]["MapProblem"][];
            /** @description Every assertion holds, and nothing else is wrong. */
            passed: boolean;
            /** @description Errors with which no assertion means anything; without any, warnings. */
            problems: components["schemas"]["MapProblem"][];
        };
        /**
         * @description What a thaw did.
         *
         *     - `THAW_OUTCOME_UNSPECIFIED`: Never sent.
         *     - `THAW_OUTCOME_THAWED`: The freeze was there, and is gone.
         *     - `THAW_OUTCOME_NOT_FROZEN`: No freeze has exactly this pattern; nothing was changed. A freeze of another pattern may still hold, see ListFreezes.
         * @enum {string}
         */
        ThawOutcome: "THAW_OUTCOME_UNSPECIFIED" | "THAW_OUTCOME_THAWED" | "THAW_OUTCOME_NOT_FROZEN";
        /** @description Takes back a freeze. */
        ThawRequest: {
            /** @description The pattern as it was frozen, or the path or alias. Required. */
            pattern: string;
            /** @description Why, for the log; at most 1,024 bytes. Empty: not told. */
            reason?: string;
        };
        /** @description The answer to Thaw. */
        ThawResponse: {
            /** @description The freeze that was taken back. Absent: none was. */
            freeze?: components["schemas"]["Freeze"];
            /** @description Waiting requests that were granted by this. */
            granted: number;
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description What the call did. */
            outcome: components["schemas"]["ThawOutcome"];
            /** @description Other freezes that overlap it and still hold: each counts for itself. At most 16. */
            stillFrozenBy: components["schemas"]["Freeze"][];
        };
        /** @description The answer of RFC 7662. */
        TokenIntrospection: {
            /** @description Whether it counts now; with its claims if so. */
            active: boolean;
        } & {
            [key: string]: unknown;
        };
        /** @description One unmatched resource. */
        UnmatchedResource: {
            /**
             * Format: date-time
             * @description When it was seen last.
             * @example 2026-12-01T10:00:00.000123Z
             */
            lastSeenAt?: string;
            /** @description The resource as asked for. */
            resource: string;
            /** @description How often it was seen since the coordinator kept count. */
            times: string;
        };
        /** @description Reports the state of the work. */
        UpdateRunStateRequest: {
            /** @description Why; at most 1,024 bytes. */
            reason?: string;
            /** @description ACTIVE, WAITING_FOR_INPUT, BLOCKED, FINISHED or FAILED. Required. */
            state: components["schemas"]["RunState"];
        };
        /** @description The answer to UpdateRunState. */
        UpdateRunStateResponse: {
            /**
             * Format: date-time
             * @description When the state ends the run: from this database time that is in force everywhere, as in StopRunResponse. Absent for other states.
             * @example 2026-12-01T10:00:00.000123Z
             */
            effectiveAt?: string;
            /** @description Log revision at which this was true. */
            logRevision: string;
            /** @description The run as it is now. */
            run?: components["schemas"]["Run"];
        };
        /** @description Checks a document. */
        ValidateConflictMapRequest: {
            /** @description YAML or JSON, at most 1 MiB. Required. */
            document: string;
            /** @description Name of the file for messages; at most 256 bytes. Empty: none. */
            fileName?: string;
        };
        /** @description What is wrong with a document. */
        ValidateConflictMapResponse: {
            /** @description Errors and warnings. */
            problems: components["schemas"]["MapProblem"][];
            /** @description True: PutConflictMap would take it. */
            valid: boolean;
        };
        /**
         * @description How targets of a kind learn of the end of a lease.
         *
         *     - `VALIDATION_UNSPECIFIED`: In an answer: no kind of the conflict map matches.
         *     - `VALIDATION_INTROSPECT`: They ask the coordinator before each protected write: an end is in force at once.
         *     - `VALIDATION_LOCAL`: They verify the run's credential by themselves and do not ask. After an early end the resource is granted to no other run before the last credential is dead (lock delay).
         *     - `VALIDATION_VIEW`: They decide by a view that follows the log (WatchFences), and only while it is younger than the kind's `maxViewAge`. After an early end the resource is granted to no other run before the last view that has not heard of it is older (lock delay).
         * @enum {string}
         */
        Validation: "VALIDATION_UNSPECIFIED" | "VALIDATION_INTROSPECT" | "VALIDATION_LOCAL" | "VALIDATION_VIEW";
        /** @description A lease that waits. */
        Waiter: {
            /**
             * @description Not before that much time; absent: nobody knows.
             * @example 12.500s
             */
            earliestAfter?: string;
            /** @description Freezes that it waits for. */
            freezes: components["schemas"]["Freeze"][];
            /** @description What it asks for. */
            lease: components["schemas"]["Lease"];
            /** @description 1: the next. */
            place: number;
            /**
             * Format: date-time
             * @description When it was asked for.
             */
            waitingSince: string;
            /** @description Whom it waits for. */
            waitsFor: components["schemas"]["Blocker"][];
            /**
             * Format: date-time
             * @description When it gives up.
             */
            waitsUntil: string;
        };
        /** @description A place in the queue. */
        WaitingPlace: {
            /**
             * @description Call again with the same key within this long, else the place is given up: 10 s, or 10 ms for each request that waits in the namespace if that is longer. A grant made before that call is to be claimed by it within 10 s: to be sure of it, call again within 10 s.
             * @example 12.500s
             */
            callAgainWithin?: string;
            /**
             * @description Earliest time at which it can be granted, if nobody renews: when the blockers can be gone, and the named resource set can be had. Absent: unknown.
             * @example 12.500s
             */
            earliestAfter?: string;
            /** @description What an operator has frozen of what was asked for: it is not granted before that is thawed. At most 16. */
            freezes: components["schemas"]["Freeze"][];
            /** @description Conflicting requests ahead, counted from 1 when next in turn. */
            place: number;
            /** @description Names the place: the lease id the grant will have. */
            requestId: string;
            /** @description Whom it waits for; at most 16. */
            waitsFor: components["schemas"]["Blocker"][];
            /**
             * Format: date-time
             * @description The wait ends at this database time.
             * @example 2026-12-01T10:00:00.000123Z
             */
            waitsUntil?: string;
        };
        /** @description What became of one write. */
        WriteReport: {
            /** @description As in the check. Required without `admissionId`. */
            action?: string;
            /** @description As the check answered. Empty: the write is known by the request's lease and request id, and by resource and action. */
            admissionId?: string;
            /** @description Names of what it changed, as far as the target knows; at most 64 of at most 256 bytes. No values. */
            changedFields?: string[];
            /** @description The version of the resource after the write; at most 256 bytes. Absent: none, or not known. */
            newVersion?: string;
            /** @description The version that the write was based on; at most 256 bytes. Empty: there was none yet. Absent: none. */
            observedVersion?: string;
            /** @description As in the check. Required without `admissionId`. */
            resource?: string;
            /** @description What became of it. Required. */
            result: components["schemas"]["WriteResult"];
        };
        /**
         * @description What became of a write.
         *
         *     - `WRITE_RESULT_UNSPECIFIED`: Never valid in a request.
         *     - `WRITE_RESULT_SUCCEEDED`: It took effect.
         *     - `WRITE_RESULT_FAILED`: It changed nothing, for certain.
         *     - `WRITE_RESULT_UNKNOWN`: The target cannot tell. The admission stays open.
         * @enum {string}
         */
        WriteResult: "WRITE_RESULT_UNSPECIFIED" | "WRITE_RESULT_SUCCEEDED" | "WRITE_RESULT_FAILED" | "WRITE_RESULT_UNKNOWN";
        /** @description One side of a question about conflict. */
        WriteSet: {
            /** @description Entries. Leave empty when task is set. */
            entries?: components["schemas"]["WriteSetEntryInput"][];
            /** @description A task of the map. */
            task?: components["schemas"]["TaskCall"];
        };
        /** @description One entry of a requested write set. */
        WriteSetEntry: {
            /** @description What the run does to the resource. Required. */
            access: components["schemas"]["Access"];
            /** @description Verbs of the resource's kind in the conflict map, at most 32. Empty on a WRITE means every write action of the kind that the run's contract allows. */
            actions: string[];
            /** @description The version of the resource the run has read, as the target names it; at most 256 bytes. Recorded for the audit trail. Absent: the run has not read it. */
            observedVersion?: string;
            /** @description Path of 1 to 32 segments joined by "/", at most 1,024 bytes, UTF-8 in NFC, compared byte for byte. An alias of the conflict map (an ARN, a URL) is accepted and turned into its path. Required. */
            resource: string;
            /** @description Unset means SCOPE_EXACT. */
            scope: components["schemas"]["Scope"];
        };
        /** @description One entry of a requested write set. */
        WriteSetEntryInput: {
            /** @description What the run does to the resource. Required. */
            access: components["schemas"]["Access"];
            /** @description Verbs of the resource's kind in the conflict map, at most 32. Empty on a WRITE means every write action of the kind that the run's contract allows. */
            actions?: string[];
            /** @description The version of the resource the run has read, as the target names it; at most 256 bytes. Recorded for the audit trail. Absent: the run has not read it. */
            observedVersion?: string;
            /** @description Path of 1 to 32 segments joined by "/", at most 1,024 bytes, UTF-8 in NFC, compared byte for byte. An alias of the conflict map (an ARN, a URL) is accepted and turned into its path. Required. */
            resource: string;
            /** @description Unset means SCOPE_EXACT. */
            scope?: components["schemas"]["Scope"];
        };
        /** @description The verdict on one write. */
        WriteVerdict: {
            /** @description The action is tracked, and this is the admission of the write: say what became of it by ReportWrite. Empty: the action is not tracked, or not every write of the check is allowed. */
            admissionId: string;
            /** @description True: may be accepted. */
            allowed: boolean;
            /** @description With reason OK only. True: the write is a leased one, which raises the guard's mark; false: it is optimistic, and must be made under the condition of its observed version. */
            exclusive: boolean;
            /** @description With reason OK only. True: an explicit lease covers the write, as those that replace or delete a shared document need on a version conflict: the run asked for this very resource by name, and holds it alone. False where a rule of the map implied the entry, where only a subtree above covers it, and where the write is optimistic. */
            explicit: boolean;
            /** @description For the target's guard, with reason OK only: the newest token that the lease has for the resource. Zero: none. */
            fencingToken: string;
            /** @description The reason in words, naming the resource. Never contains a current token. */
            message: string;
            /** @description True: the kind is in `observe` mode, and `reason` is what `enforce` would have answered. */
            observedOnly: boolean;
            /** @description Why. In `observe` mode the reason of the refusal that would have been, with allowed = true. */
            reason: components["schemas"]["FenceReason"];
        };
    };
    responses: {
        /** @description The request is wrong; `violations` name what. */
        Problem400: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Nobody knows who calls. */
        Problem401: {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The caller may not do this, or not there. */
        Problem403: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such thing. */
        Problem404: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description It cannot be done as things are. */
        Problem409: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Somebody changed it since it was read; nothing was changed. */
        Problem412: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large. */
        Problem413: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is not of the type that is read here, which `accept` names, or compressed: `accept-encoding` names what is read. */
        Problem415: {
            headers: {
                Accept: components["headers"]["Accept"];
                "Accept-Encoding": components["headers"]["Accept-Encoding"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `If-Match` is missing. */
        Problem428: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too much, or too often; `retry-after` says when to try again. */
        Problem429: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The coordinator's own trouble; its log has the cause under the request id. */
        Problem500: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description It cannot be decided now; try again, with the same key where there is one. */
        Problem503: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Where the type is wrong: the one that is read. */
        Accept: string;
        /** @description Where the body is compressed: how it is read. */
        "Accept-Encoding": string;
        /** @description The version. */
        ETag: string;
        /** @description Seconds after which it is worth trying again. */
        "Retry-After": string;
        /** @description Of a denied write: the problem once more, for proxies that drop the body. */
        "Writ-Problem": string;
        /** @description Of a denied write, as `code` of the problem; without it the answer is about the proxy itself. */
        "Writ-Reason": string;
        /** @description What to present, and whether what was presented is not good. */
        "WWW-Authenticate": string;
        /** @description The request's own, or one that was made for it: finds it in the log. */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    evaluateAccess: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccessEvaluation"];
            };
        };
        responses: {
            /** @description The decision. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessDecision"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    evaluateAccesses: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccessEvaluations"];
            };
        };
        responses: {
            /** @description The decisions, in the order of the questions; of a body without any, the decision of that one. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessDecisions"] | components["schemas"]["AccessDecision"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    introspectToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-www-form-urlencoded": {
                    /** @description The credential. */
                    token: string;
                };
            };
        };
        responses: {
            /** @description The claims, or that it does not count. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenIntrospection"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    findBlockers: {
        parameters: {
            query: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description A path or an alias. Required. */
                resource: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FindBlockersResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getCheckpoint: {
        parameters: {
            query?: {
                /** @description The last event before this time. Not together with revision. */
                before?: string;
                /** @description Empty means "default". */
                namespace?: string;
                /** @description The event at this revision. Not together with before. */
                revision?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetCheckpointResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listCheckpoints: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListCheckpointsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getConflictMap: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description The version wanted. Zero means the current one. */
                version?: string;
            };
            header?: {
                /** @description The ETag of what the caller has: it is not sent again while it is the same (304). */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetConflictMapResponse"];
                };
            };
            /** @description It is what `If-None-Match` names. */
            304: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    putConflictMap: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description The version that the change is made against, as the ETag of GET has it; "0" before the first. Of several, one has to be the current one; a weak tag never is (RFC 9110, 13.1.1). */
                "If-Match": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutConflictMapRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PutConflictMapResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            428: components["responses"]["Problem428"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    diffConflictMap: {
        parameters: {
            query?: {
                /** @description Empty or absent: "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DiffConflictMapRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DiffConflictMapResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    explainConflict: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExplainConflictRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainConflictResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getTaskMatrix: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetTaskMatrixResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getTaskMatrixOf: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GetTaskMatrixRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetTaskMatrixResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    previewConflictMap: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewConflictMapRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewConflictMapResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    rollbackConflictMap: {
        parameters: {
            query?: {
                /** @description Empty or absent: "default". */
                namespace?: string;
            };
            header: {
                /** @description The version that the change is made against, as the ETag of GET has it; "0" before the first. Of several, one has to be the current one; a weak tag never is (RFC 9110, 13.1.1). */
                "If-Match": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RollbackConflictMapRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PutConflictMapResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            412: components["responses"]["Problem412"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            428: components["responses"]["Problem428"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getConflictMapSchema: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    testConflictMap: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestConflictMapRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestConflictMapResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listUnmatchedResources: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListUnmatchedResourcesResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    validateConflictMap: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ValidateConflictMapRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ValidateConflictMapResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listConflictMapVersions: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListConflictMapVersionsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    issueCredential: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IssueCredentialRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssueCredentialResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    introspectCredential: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IntrospectCredentialRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IntrospectCredentialResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    revokeCredential: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RevokeCredentialRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokeCredentialResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Only events after this revision, which the log has to have reached. Zero: from the start. */
                after_revision?: string;
                /** @description Only these kinds. Empty: any. */
                kinds?: string[];
                /** @description Only events of this lease. Empty: any. */
                lease_id?: string;
                /** @description Empty means "default". */
                namespace?: string;
                /** @description True: newest first. */
                newest_first?: boolean;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
                /** @description Only events found by this request id. Empty: any. */
                request_id?: string;
                /** @description Only events that name this resource. Empty: any. */
                resource?: string;
                /** @description Only events of this run. Empty: any. */
                run_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListEventsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    cutLog: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CutLogRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CutLogResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    exportEvents: {
        parameters: {
            query?: {
                /** @description Only what comes after this log revision. */
                after_revision?: string;
                /** @description Empty or absent: "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description Only what comes after this log revision. */
                after_revision?: string;
                /** @description Empty or absent: "default". */
                namespace?: string;
            };
            header?: {
                /** @description Where to go on: the `id` of the last event that was read. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    watchFences: {
        parameters: {
            query?: {
                /** @description Empty or absent: "default". */
                namespace?: string;
                /** @description Only of kinds that are decided by a view. */
                view_kinds_only?: boolean;
            };
            header?: {
                /** @description Where to go on: the `id` of the last event that was read. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    checkFenceForProxy: {
        parameters: {
            query?: never;
            header?: {
                /** @description As in the request. */
                "If-Match"?: string;
                /** @description As in the request. */
                "If-None-Match"?: string;
                /** @description The proxy's own id of the request, by which a check that it repeats is known. */
                "Writ-Attempt-Id"?: string;
                /** @description Its `Authorization`. */
                "Writ-Authorization"?: string;
                /** @description As in the request. */
                "Writ-Fencing-Token"?: string;
                /** @description As in the request. */
                "Writ-Lease"?: string;
                /** @description The client certificate of the run, PEM in URL encoding. */
                "Writ-Presenter-Certificate"?: string;
                /** @description Its host; or X-Forwarded-Host. */
                "X-Original-Host"?: string;
                /** @description Of the request that is asked about; or X-Forwarded-Method. */
                "X-Original-Method"?: string;
                /** @description Its path as it was sent, still escaped; or X-Forwarded-Uri. */
                "X-Original-URI"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It may pass. */
            200: {
                headers: {
                    /** @description Of tracked writes, with commas between them; empty where there are none. */
                    "Writ-Admission-Id": string;
                    /** @description Where in the log it was decided. */
                    "Writ-Log-Revision"?: string;
                    /** @description `true`: the kind is only observed, and Writ-Reason is what would have been answered. */
                    "Writ-Observed-Only"?: string;
                    /** @description `ok`; `reads` or `unprotected` where no check is needed. */
                    "Writ-Reason": string;
                    /** @description The run whose lease allows it; empty where there is none. */
                    "Writ-Run-Id": string;
                    /** @description What is left of the lease, such as `41250ms`. */
                    "Writ-Valid-For"?: string;
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description The proxy said too little, or what the run asks for is malformed. */
            400: {
                headers: {
                    "Writ-Problem": components["headers"]["Writ-Problem"];
                    "Writ-Reason": components["headers"]["Writ-Reason"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["DeniedWrite"] | components["schemas"]["Problem"];
                };
            };
            /** @description The proxy is not known, or what the run presents is not good. */
            401: {
                headers: {
                    "Writ-Problem": components["headers"]["Writ-Problem"];
                    "Writ-Reason": components["headers"]["Writ-Reason"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["DeniedWrite"] | components["schemas"]["Problem"];
                };
            };
            /** @description The proxy may not ask, or the run never had the right to this write. */
            403: {
                headers: {
                    "Writ-Problem": components["headers"]["Writ-Problem"];
                    "Writ-Reason": components["headers"]["Writ-Reason"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["DeniedWrite"] | components["schemas"]["Problem"];
                };
            };
            404: components["responses"]["Problem404"];
            /** @description The run has no right to this write any more, or not now. */
            409: {
                headers: {
                    "Writ-Problem": components["headers"]["Writ-Problem"];
                    "Writ-Reason": components["headers"]["Writ-Reason"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["DeniedWrite"] | components["schemas"]["Problem"];
                };
            };
            /** @description The write needs the version that it was made from. */
            428: {
                headers: {
                    "Writ-Problem": components["headers"]["Writ-Problem"];
                    "Writ-Reason": components["headers"]["Writ-Reason"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["DeniedWrite"] | components["schemas"]["Problem"];
                };
            };
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            /** @description It cannot be decided now. */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    "Writ-Problem": components["headers"]["Writ-Problem"];
                    "Writ-Reason": components["headers"]["Writ-Reason"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["DeniedWrite"] | components["schemas"]["Problem"];
                };
            };
        };
    };
    checkFence: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CheckFenceRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckFenceResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    reportOverride: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportOverrideRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportOverrideResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    reportWrite: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportWriteRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportWriteResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listFreezes: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
                /** @description Only those over this path or alias, or over something below it. Empty: all. */
                resource?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListFreezesResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    freeze: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FreezeRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FreezeResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    thaw: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ThawRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ThawResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    findIds: {
        parameters: {
            query: {
                /** @description How they begin: 4 to 32 of 0-9 and a-f. Required. */
                beginning: string;
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FindIdsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listInDoubt: {
        parameters: {
            query?: {
                /** @description Also writes that are open under a lease which lives. */
                include_open?: boolean;
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
                /** @description Only those at, above or below this resource (a path or an alias). Empty: any. */
                resource?: string;
                /** @description Only those of this run. Empty: of any. */
                run_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListInDoubtResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    settleInDoubt: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The write, by the admissionId of OpenWrite. Required. */
                admissionId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SettleInDoubtRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettleInDoubtResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listSigningKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListSigningKeysResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    retireSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Which. Required. */
                keyId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetireSigningKeyRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetireSigningKeyResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    rotateSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RotateSigningKeyRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotateSigningKeyResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listLeases: {
        parameters: {
            query?: {
                /** @description Also leases that have ended and are under lock delay, whatever `states` says. */
                lock_delayed?: boolean;
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
                /** @description Only leases that meet this resource (a path or an alias): at, above or below it. Empty: all. */
                resource?: string;
                /** @description Only leases of this run. Empty: all that the caller may see. */
                run_id?: string;
                /** @description Only these states. Empty: WAITING and ACTIVE. */
                states?: components["schemas"]["LeaseState"][];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListLeasesResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    acquireWriteSet: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description 1 to 128 printable ASCII characters, chosen by the caller, unique within the run. Required. Kept as long as the run and 24 h more. */
                "Idempotency-Key": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AcquireWriteSetRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcquireWriteSetResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getLease: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The lease. Required. */
                leaseId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetLeaseResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    amendWriteSet: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description 1 to 128 printable ASCII characters, chosen by the caller, unique within the run. Required. Kept as long as the run and 24 h more. A refusal does not use it up. */
                "Idempotency-Key": string;
            };
            path: {
                /** @description The lease. Required. */
                leaseId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AmendWriteSetRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AmendWriteSetResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    releaseLease: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description By id. */
                leaseId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReleaseLeaseRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReleaseLeaseResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    revokeLease: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The lease, or the waiting request. Required. */
                leaseId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RevokeLeaseRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokeLeaseResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    previewWriteSet: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewWriteSetRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewWriteSetResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    releaseLeaseByKey: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReleaseLeaseByKeyRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReleaseLeaseResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    renewLeases: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenewLeasesRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenewLeasesResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    takeOver: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description 1 to 128 printable ASCII characters, chosen by the caller, unique within the run. Required. */
                "Idempotency-Key": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TakeOverRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TakeOverResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listNamespaces: {
        parameters: {
            query?: {
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListNamespacesResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    createNamespace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateNamespaceRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateNamespaceResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getNamespace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Empty means "default". */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetNamespaceResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getPrincipal: {
        parameters: {
            query?: {
                /** @description Empty or absent: "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Principal"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listRehearsals: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListRehearsalsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    recordRehearsal: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecordRehearsalRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecordRehearsalResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    beginRehearsal: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BeginRehearsalRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BeginRehearsalResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    resolveResource: {
        parameters: {
            query: {
                /** @description An alias or a path. Required. */
                name: string;
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResolveResourceResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listRuns: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
                /** @description Rows wanted, 1 to 1,000. Zero means 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before, of the same list: one of another list is refused. Empty means the first page. */
                page_token?: string;
                /** @description Only these states. Empty: all that have not ended. */
                states?: components["schemas"]["RunState"][];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListRunsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    createRun: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description 1 to 128 printable ASCII characters. Required. */
                "Idempotency-Key": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateRunRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateRunResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    getRun: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The run. Required. */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GetRunResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    eraseTexts: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The run. Required; it must have ended. */
                runId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EraseTextsRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EraseTextsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    updateRunState: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description 1 to 128 printable ASCII characters. Required. */
                "Idempotency-Key": string;
            };
            path: {
                /** @description The run. Required. */
                runId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateRunStateRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpdateRunStateResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    stopRun: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header?: never;
            path: {
                /** @description The run. Required. */
                runId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StopRunRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StopRunResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    stopRuns: {
        parameters: {
            query?: {
                /** @description Empty means "default". */
                namespace?: string;
            };
            header: {
                /** @description 1 to 128 printable ASCII characters. Required. */
                "Idempotency-Key": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StopRunsRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StopRunsResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
    listWaiters: {
        parameters: {
            query?: {
                /** @description Empty or absent: "default". */
                namespace?: string;
                /** @description 1 to 1,000; absent or 0: 100. */
                page_size?: number;
                /** @description `nextPageToken` of the page before; absent: the first page. */
                page_token?: string;
                /** @description Only those that ask for this resource, or something above or below it. */
                resource?: string;
                /** @description Only of this run. */
                run_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListWaitersResponse"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
        };
    };
}
