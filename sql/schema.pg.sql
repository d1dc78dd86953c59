-- The schema of today: what all of sql/migrations make, as the store itself says it. Written by
-- tools/schema, for readers; nothing runs this file. What a column means stands in its migration.

CREATE TABLE weft.attempt (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    replay smallint NOT NULL,
    attempt integer NOT NULL,
    ended smallint NOT NULL,
    held boolean NOT NULL,
    answer smallint NOT NULL,
    worker integer,
    claimed bigint,
    ended_at bigint NOT NULL,
    run_at bigint,
    by text,
    reason text,
    error_class text,
    error_message text,
    content_type text,
    result bytea,
    marked boolean NOT NULL DEFAULT false,
    CONSTRAINT attempt_pkey PRIMARY KEY (id, epoch, replay)
);

CREATE TRIGGER attempt_has AFTER INSERT ON weft.attempt FOR EACH ROW WHEN ((NOT new.marked)) EXECUTE FUNCTION weft.mark_has('2');

CREATE TABLE weft.batch (
    id uuid NOT NULL,
    namespace integer NOT NULL,
    file uuid NOT NULL,
    endpoint text NOT NULL,
    span text NOT NULL,
    metadata text,
    phase smallint NOT NULL,
    at bigint NOT NULL,
    line bigint NOT NULL,
    last uuid,
    requests bigint NOT NULL,
    flaws text NOT NULL,
    created bigint NOT NULL,
    expires bigint NOT NULL,
    opened bigint,
    finished bigint,
    frozen bigint,
    wanted bigint,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    expired bigint NOT NULL,
    cancelled bigint NOT NULL,
    retried bigint,
    retry bigint,
    retry_to uuid,
    looked bigint NOT NULL DEFAULT 0,
    look_at bigint NOT NULL DEFAULT 0,
    deleted bigint,
    CONSTRAINT batch_pkey PRIMARY KEY (id)
);

CREATE INDEX batch_active ON weft.batch USING btree (id) WHERE (phase < 2);

CREATE INDEX batch_deleted ON weft.batch USING btree (id) WHERE (deleted IS NOT NULL);

CREATE INDEX batch_failed ON weft.batch USING btree (finished) WHERE ((phase = 3) AND (deleted IS NULL));

CREATE INDEX batch_shown ON weft.batch USING btree (namespace, id) WHERE (deleted IS NULL);

CREATE TABLE weft.batch_model (
    batch uuid NOT NULL,
    number smallint NOT NULL,
    name text NOT NULL,
    escalated text,
    CONSTRAINT batch_model_pkey PRIMARY KEY (batch, number)
);

CREATE TABLE weft.budget (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    namespace integer NOT NULL,
    name text NOT NULL,
    matches boolean NOT NULL,
    lane text,
    kind text,
    tenant text,
    on_hard smallint NOT NULL,
    every_us bigint NOT NULL,
    months integer NOT NULL,
    anchor bigint NOT NULL,
    next_reset bigint,
    began bigint NOT NULL,
    period integer NOT NULL DEFAULT 1,
    breaches bigint NOT NULL DEFAULT 0,
    soft_at bigint,
    hard_at bigint,
    cancelling boolean NOT NULL DEFAULT false,
    CONSTRAINT budget_name UNIQUE (namespace, name),
    CONSTRAINT budget_pkey PRIMARY KEY (id)
);

CREATE INDEX budget_cancelling ON weft.budget USING btree (id) WHERE cancelling;

CREATE INDEX budget_matches ON weft.budget USING btree (namespace) WHERE matches;

CREATE INDEX budget_reset ON weft.budget USING btree (next_reset) WHERE (next_reset IS NOT NULL);

CREATE TABLE weft.budget_dimension (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    budget integer NOT NULL,
    name text NOT NULL,
    hard bigint NOT NULL,
    soft bigint NOT NULL,
    estimate bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0,
    reserved bigint NOT NULL DEFAULT 0,
    dropped boolean NOT NULL DEFAULT false,
    stale boolean NOT NULL DEFAULT false,
    CONSTRAINT budget_dimension_pkey PRIMARY KEY (id)
);

CREATE UNIQUE INDEX budget_dimension_name ON weft.budget_dimension USING btree (budget, name) WHERE (NOT dropped);

CREATE INDEX budget_dimension_sweep ON weft.budget_dimension USING btree (id) WHERE (dropped OR stale);

CREATE TABLE weft.budget_version (
    one integer NOT NULL DEFAULT 1,
    version bigint NOT NULL,
    CONSTRAINT budget_version_one_check CHECK ((one = 1)),
    CONSTRAINT budget_version_pkey PRIMARY KEY (one)
);

CREATE TABLE weft.cancel_group (
    id uuid NOT NULL,
    flow uuid NOT NULL,
    reason smallint NOT NULL,
    at bigint NOT NULL,
    waiting boolean NOT NULL,
    wakes integer NOT NULL DEFAULT 0,
    CONSTRAINT cancel_group_pkey PRIMARY KEY (id)
);

CREATE INDEX cancel_group_due ON weft.cancel_group USING btree (waiting, at) WHERE (at >= 0);

CREATE INDEX cancel_group_flow ON weft.cancel_group USING btree (flow, id) WHERE (flow IS NOT NULL);

CREATE TABLE weft.completion (
    seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    flow uuid NOT NULL,
    id uuid NOT NULL,
    at bigint NOT NULL,
    cursor uuid,
    anew boolean NOT NULL DEFAULT false,
    CONSTRAINT completion_pkey PRIMARY KEY (seq)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=0);

CREATE INDEX completion_anew ON weft.completion USING btree (flow) WHERE anew;

CREATE INDEX completion_flow ON weft.completion USING btree (flow, seq) WHERE (flow IS NOT NULL);

CREATE TABLE weft.cost (
    id uuid NOT NULL,
    dimension text NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT cost_pkey PRIMARY KEY (id, dimension)
);

CREATE TABLE weft.detail (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    detail text NOT NULL,
    CONSTRAINT detail_pkey PRIMARY KEY (id, epoch)
);

CREATE TABLE weft.draining (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    queue integer NOT NULL,
    lane integer NOT NULL,
    worker integer NOT NULL,
    until bigint NOT NULL,
    ended smallint NOT NULL,
    ended_at bigint NOT NULL,
    told boolean NOT NULL DEFAULT false,
    gate text,
    CONSTRAINT draining_pkey PRIMARY KEY (id, epoch)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0);

CREATE INDEX draining_gate ON weft.draining USING btree (gate) WHERE (gate IS NOT NULL);

CREATE INDEX draining_lane ON weft.draining USING btree (lane, until) WHERE (lane IS NOT NULL);

CREATE INDEX draining_until ON weft.draining USING btree (until);

CREATE INDEX draining_untold ON weft.draining USING btree (worker) WHERE (NOT told);

CREATE TABLE weft.edge (
    upstream uuid NOT NULL,
    downstream uuid NOT NULL,
    state smallint NOT NULL
) WITH (fillfactor=80);

CREATE INDEX edge_downstream ON weft.edge USING btree (downstream, upstream) WHERE (downstream IS NOT NULL);

CREATE UNIQUE INDEX edge_upstream ON weft.edge USING btree (upstream, downstream) WHERE (upstream IS NOT NULL);

CREATE TABLE weft.endpoint (
    namespace integer NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    url text NOT NULL,
    secret text,
    auth text,
    headers text NOT NULL,
    retry text NOT NULL,
    idempotency_header text,
    flags integer NOT NULL,
    retry_after_max_ms bigint NOT NULL,
    max_in_flight bigint NOT NULL,
    connect_ms bigint NOT NULL,
    first_byte_ms bigint NOT NULL,
    idle_ms bigint NOT NULL,
    total_ms bigint NOT NULL,
    response_max bigint NOT NULL,
    CONSTRAINT endpoint_pkey PRIMARY KEY (namespace, name)
);

CREATE TABLE weft.endpoint_version (
    one integer NOT NULL DEFAULT 1,
    version bigint NOT NULL,
    CONSTRAINT endpoint_version_one_check CHECK ((one = 1)),
    CONSTRAINT endpoint_version_pkey PRIMARY KEY (one)
);

CREATE TABLE weft.erasure (
    id uuid NOT NULL,
    namespace integer NOT NULL,
    sort smallint NOT NULL,
    subject text,
    secret bytea NOT NULL,
    hash text NOT NULL,
    reason text NOT NULL,
    by text,
    asked bigint NOT NULL,
    phase smallint NOT NULL,
    walked uuid NOT NULL,
    rounds integer NOT NULL,
    found bigint NOT NULL,
    later bigint NOT NULL,
    counts text NOT NULL,
    retired bigint,
    finished bigint,
    left_over text,
    digest text,
    verified bigint,
    remains bigint,
    CONSTRAINT erasure_pkey PRIMARY KEY (id)
);

CREATE INDEX erasure_list ON weft.erasure USING btree (namespace, id);

CREATE INDEX erasure_open ON weft.erasure USING btree (id) WHERE (finished IS NULL);

CREATE TABLE weft.execution (
    id uuid NOT NULL,
    created bigint NOT NULL,
    queue integer NOT NULL,
    content_type text,
    tags text,
    key text,
    payload bytea,
    gate text,
    CONSTRAINT execution_pkey PRIMARY KEY (id)
);

CREATE TABLE weft.file (
    id uuid NOT NULL,
    namespace integer NOT NULL,
    filename text NOT NULL,
    purpose text NOT NULL,
    sealed boolean NOT NULL,
    bytes bigint NOT NULL,
    requests bigint NOT NULL,
    flaws text NOT NULL,
    flaw_count bigint NOT NULL,
    created bigint NOT NULL,
    touched bigint NOT NULL,
    expires bigint,
    deleted bigint,
    CONSTRAINT file_pkey PRIMARY KEY (id)
);

CREATE INDEX file_deleted ON weft.file USING btree (deleted, id) WHERE (deleted IS NOT NULL);

CREATE INDEX file_expires ON weft.file USING btree (expires) WHERE ((expires IS NOT NULL) AND (deleted IS NULL));

CREATE INDEX file_open ON weft.file USING btree (touched) WHERE ((NOT sealed) AND (deleted IS NULL));

CREATE INDEX file_shown ON weft.file USING btree (namespace, id) WHERE (sealed AND (deleted IS NULL));

CREATE TABLE weft.file_chunk (
    file uuid NOT NULL,
    at bigint NOT NULL,
    line bigint NOT NULL,
    data bytea NOT NULL,
    CONSTRAINT file_chunk_pkey PRIMARY KEY (file, at)
);

CREATE TABLE weft.flow (
    id uuid NOT NULL,
    namespace integer NOT NULL,
    name text,
    key text,
    fingerprint bytea,
    state smallint NOT NULL,
    revision integer NOT NULL,
    nodes integer NOT NULL,
    created bigint NOT NULL,
    finished bigint,
    cancel smallint NOT NULL,
    reason text,
    backlog boolean NOT NULL,
    deleted bigint,
    cancelled integer NOT NULL DEFAULT 0,
    drained uuid,
    cancels integer NOT NULL DEFAULT 0,
    CONSTRAINT flow_pkey PRIMARY KEY (id)
);

CREATE INDEX flow_backlog ON weft.flow USING btree (id) WHERE backlog;

CREATE INDEX flow_deleted ON weft.flow USING btree (id) WHERE (deleted IS NOT NULL);

CREATE INDEX flow_finished ON weft.flow USING btree (state, finished) WHERE (finished IS NOT NULL);

CREATE UNIQUE INDEX flow_key ON weft.flow USING btree (namespace, key) WHERE (key IS NOT NULL);

CREATE INDEX flow_list ON weft.flow USING btree (namespace, id) WHERE (created >= 0);

CREATE INDEX flow_open ON weft.flow USING btree (namespace, id) WHERE (finished IS NULL);

CREATE INDEX flow_unseen ON weft.flow USING btree (state, id) WHERE (state < 0);

CREATE TABLE weft.gate (
    name text NOT NULL,
    full_ns bigint,
    next bigint,
    CONSTRAINT gate_pkey PRIMARY KEY (name)
);

CREATE INDEX gate_next ON weft.gate USING btree (next) WHERE (next IS NOT NULL);

CREATE TABLE weft.gate_setting (
    namespace integer NOT NULL,
    name text NOT NULL,
    max_running bigint NOT NULL,
    window_limit bigint NOT NULL,
    window_us bigint NOT NULL,
    rate_limit bigint NOT NULL,
    rate_us bigint NOT NULL,
    rate_burst bigint NOT NULL,
    CONSTRAINT gate_setting_pkey PRIMARY KEY (namespace, name)
);

CREATE TABLE weft.gate_start (
    name text NOT NULL,
    at bigint NOT NULL,
    count integer NOT NULL
);

CREATE INDEX gate_start_name ON weft.gate_start USING btree (name, at);

CREATE TABLE weft.inbox (
    id uuid NOT NULL,
    namespace text NOT NULL,
    lane text,
    kind text,
    payload bytea,
    content_type text,
    priority integer,
    delay_ms bigint,
    run_at bigint,
    deadline bigint,
    capabilities text,
    tenant text,
    tags text,
    key text,
    policy text,
    limits text,
    CONSTRAINT inbox_pkey PRIMARY KEY (id)
);

CREATE INDEX inbox_namespace ON weft.inbox USING btree ("left"(namespace, 128) COLLATE "C", id);

CREATE CONSTRAINT TRIGGER wake_intake AFTER INSERT ON weft.inbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((lower(COALESCE(current_setting(('weft'::text || '.notify'::text), true), ''::text)) <> ALL (ARRAY['off'::text, 'false'::text, 'no'::text, '0'::text]))) EXECUTE FUNCTION weft.wake_intake();

CREATE TABLE weft.inbox_refused (
    id uuid NOT NULL,
    at bigint NOT NULL,
    namespace text NOT NULL,
    reason text NOT NULL
);

CREATE INDEX inbox_refused_at ON weft.inbox_refused USING btree (at);

CREATE TABLE weft.key (
    namespace integer NOT NULL,
    key text NOT NULL,
    id uuid NOT NULL,
    fingerprint bytea NOT NULL,
    CONSTRAINT key_pkey PRIMARY KEY (namespace, key)
);

CREATE TABLE weft.lane (
    id integer NOT NULL,
    namespace integer NOT NULL,
    paused boolean NOT NULL,
    max_running integer NOT NULL,
    weights text,
    retention_us bigint NOT NULL DEFAULT 0,
    window_limit bigint NOT NULL DEFAULT 0,
    window_us bigint NOT NULL DEFAULT 0,
    rate_limit bigint NOT NULL DEFAULT 0,
    rate_us bigint NOT NULL DEFAULT 0,
    rate_burst bigint NOT NULL DEFAULT 0,
    full_ns bigint,
    CONSTRAINT lane_pkey PRIMARY KEY (id)
);

CREATE TABLE weft.lane_start (
    lane integer NOT NULL,
    at bigint NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT lane_start_pkey PRIMARY KEY (lane, at)
);

CREATE TABLE weft.ledger (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    dimension integer NOT NULL,
    period integer NOT NULL,
    reserved bigint NOT NULL,
    total bigint NOT NULL,
    earlier bigint NOT NULL,
    settled bigint,
    changed bigint NOT NULL,
    CONSTRAINT ledger_pkey PRIMARY KEY (id, epoch, dimension)
);

CREATE INDEX ledger_open ON weft.ledger USING btree (dimension, id, epoch) WHERE (settled IS NULL);

CREATE INDEX ledger_period ON weft.ledger USING btree (dimension, period, id) WHERE (epoch > 0);

CREATE INDEX ledger_settled ON weft.ledger USING btree (settled) WHERE (settled > 0);

CREATE TABLE weft.live (
    id uuid NOT NULL,
    ord bigint NOT NULL,
    due bigint,
    attempt_deadline bigint,
    deadline bigint,
    started bigint,
    claimed bigint,
    queue integer NOT NULL,
    lane integer NOT NULL,
    policy integer NOT NULL,
    worker integer,
    epoch integer NOT NULL,
    attempt integer NOT NULL,
    forgiven integer NOT NULL,
    size integer NOT NULL,
    lost smallint NOT NULL,
    replays smallint NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    flow uuid,
    has smallint NOT NULL DEFAULT '-1'::integer,
    gate text,
    CONSTRAINT live_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_insert_scale_factor=0.2, autovacuum_analyze_scale_factor=0.2, autovacuum_vacuum_cost_delay=0);

CREATE INDEX live_attempt_deadline ON weft.live USING btree (attempt_deadline) WHERE (attempt_deadline IS NOT NULL);

CREATE INDEX live_attempt_lane ON weft.live USING btree (lane, ((attempt_deadline + 0))) WHERE ((attempt_deadline + 0) >= 0);

CREATE INDEX live_deadline ON weft.live USING btree (deadline) WHERE (deadline IS NOT NULL);

CREATE INDEX live_deadline_lane ON weft.live USING btree (lane, ((deadline + 0))) WHERE ((deadline + 0) >= 0);

CREATE INDEX live_delayed ON weft.live USING btree (lane, due, id) WHERE ((state >= 2) AND (state <= 2));

CREATE INDEX live_flow ON weft.live USING btree (flow, id) WHERE (flow IS NOT NULL);

CREATE INDEX live_gate ON weft.live USING btree (gate, state, priority DESC, ord, id) WHERE (gate IS NOT NULL);

CREATE INDEX live_lease ON weft.live USING btree (lane, due) WHERE (state = 4);

CREATE INDEX live_ready ON weft.live USING btree (queue, priority DESC, ord, id) WHERE (state = 1);

CREATE INDEX live_timer ON weft.live USING btree (due) WHERE (state = 2);

CREATE TABLE weft.migration (
    number integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_us bigint NOT NULL,
    CONSTRAINT migration_pkey PRIMARY KEY (number)
);

CREATE TABLE weft.model (
    namespace integer NOT NULL,
    name text NOT NULL,
    endpoint text NOT NULL,
    lane text NOT NULL,
    escalate_to text,
    CONSTRAINT model_pkey PRIMARY KEY (namespace, name)
);

CREATE TABLE weft.name (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    sort smallint NOT NULL,
    namespace integer NOT NULL,
    text text NOT NULL,
    CONSTRAINT name_pkey PRIMARY KEY (id),
    CONSTRAINT name_sort_namespace_text_key UNIQUE (sort, namespace, text)
);

CREATE TABLE weft.node (
    id uuid NOT NULL,
    flow uuid NOT NULL,
    name text NOT NULL,
    policy smallint NOT NULL,
    k integer NOT NULL,
    let_run boolean NOT NULL,
    total integer NOT NULL,
    succeeded integer NOT NULL,
    failed integer NOT NULL,
    fired smallint NOT NULL,
    delay bigint NOT NULL,
    run_at bigint NOT NULL,
    bad boolean NOT NULL DEFAULT false,
    again integer NOT NULL DEFAULT '-1'::integer,
    model smallint,
    CONSTRAINT node_pkey PRIMARY KEY (id)
);

CREATE INDEX node_bad ON weft.node USING btree (flow) WHERE bad;

CREATE INDEX node_flow ON weft.node USING btree (flow, id) WHERE (k >= 0);

CREATE UNIQUE INDEX node_name ON weft.node USING btree (flow, name) WHERE (name IS NOT NULL);

CREATE TABLE weft.outcome (
    id uuid NOT NULL,
    finished bigint NOT NULL,
    ord bigint NOT NULL,
    deadline bigint,
    started bigint,
    claimed bigint,
    queue integer NOT NULL,
    policy integer NOT NULL,
    worker integer,
    epoch integer NOT NULL,
    attempt integer NOT NULL,
    forgiven integer NOT NULL,
    lost smallint NOT NULL,
    replays smallint NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    ended smallint NOT NULL,
    held boolean NOT NULL,
    by text,
    reason text,
    error_class text,
    error_message text,
    content_type text,
    result bytea,
    flow uuid,
    has smallint NOT NULL DEFAULT '-1'::integer,
    CONSTRAINT outcome_pkey PRIMARY KEY (id)
);

CREATE INDEX outcome_retention ON weft.outcome USING btree (queue, policy, state, finished) WHERE (flow IS NULL);

CREATE TABLE weft.policy (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    text text NOT NULL,
    lease_us bigint NOT NULL,
    timeout_us bigint NOT NULL,
    CONSTRAINT policy_pkey PRIMARY KEY (id),
    CONSTRAINT policy_text_key UNIQUE (text)
);

CREATE TABLE weft.progress (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    percent smallint NOT NULL,
    note text,
    at bigint NOT NULL,
    CONSTRAINT progress_pkey PRIMARY KEY (id)
) WITH (fillfactor=70);

CREATE TRIGGER progress_has AFTER INSERT ON weft.progress REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has('1');

CREATE TABLE weft.queue (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    namespace integer NOT NULL,
    lane integer NOT NULL,
    kind text NOT NULL,
    route integer NOT NULL,
    tenant integer NOT NULL,
    CONSTRAINT queue_namespace_lane_kind_route_tenant_key UNIQUE (namespace, lane, kind, route, tenant),
    CONSTRAINT queue_pkey PRIMARY KEY (id)
);

CREATE INDEX queue_lane ON weft.queue USING btree (lane, id);

CREATE TABLE weft.replica (
    id uuid NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    version text NOT NULL,
    url text NOT NULL,
    started bigint NOT NULL,
    up_since bigint NOT NULL,
    seen bigint NOT NULL,
    settings text NOT NULL,
    scanners text NOT NULL,
    CONSTRAINT replica_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);

CREATE TABLE weft.resumption (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    at bigint NOT NULL,
    by smallint NOT NULL,
    reason text,
    CONSTRAINT resumption_pkey PRIMARY KEY (id)
);

CREATE TABLE weft.retired (
    what smallint NOT NULL,
    id integer NOT NULL,
    at bigint NOT NULL,
    CONSTRAINT retired_pkey PRIMARY KEY (what, id)
);

CREATE TABLE weft.schema (
    one integer NOT NULL DEFAULT 1,
    version integer NOT NULL,
    oldest_binary integer NOT NULL,
    CONSTRAINT schema_one_check CHECK ((one = 1)),
    CONSTRAINT schema_pkey PRIMARY KEY (one)
);

CREATE TABLE weft.signal (
    id uuid NOT NULL,
    waitpoint uuid NOT NULL,
    n integer NOT NULL,
    at bigint NOT NULL,
    effect smallint NOT NULL,
    name text,
    source text,
    key text,
    content_type text,
    payload bytea,
    CONSTRAINT signal_pkey PRIMARY KEY (id, waitpoint, n)
);

CREATE UNIQUE INDEX signal_key ON weft.signal USING btree (waitpoint, key) WHERE (key IS NOT NULL);

CREATE TABLE weft.signing_key (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    secret bytea NOT NULL,
    created bigint NOT NULL,
    retires bigint,
    CONSTRAINT signing_key_pkey PRIMARY KEY (id)
);

CREATE TABLE weft.span (
    namespace integer NOT NULL,
    last uuid NOT NULL,
    first uuid NOT NULL,
    count integer NOT NULL,
    CONSTRAINT span_pkey PRIMARY KEY (namespace, last)
);

CREATE TABLE weft.suspension (
    id uuid NOT NULL,
    epoch integer NOT NULL,
    since bigint NOT NULL,
    condition text NOT NULL,
    on_timeout smallint NOT NULL,
    delay bigint NOT NULL,
    escalated bigint,
    reason text,
    due bigint,
    lane integer NOT NULL DEFAULT 0,
    namespace integer,
    CONSTRAINT suspension_pkey PRIMARY KEY (id)
);

CREATE INDEX suspension_due ON weft.suspension USING btree (due) WHERE (due IS NOT NULL);

CREATE INDEX suspension_escalated ON weft.suspension USING btree (namespace, id) WHERE (escalated IS NOT NULL);

CREATE INDEX suspension_lane ON weft.suspension USING btree (lane, COALESCE(due, '9223372036854775807'::bigint));

CREATE TABLE weft.tally (
    lane integer NOT NULL,
    minute bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    CONSTRAINT tally_pkey PRIMARY KEY (lane, minute)
) WITH (fillfactor=50);

CREATE TABLE weft.token (
    id integer GENERATED ALWAYS AS IDENTITY NOT NULL,
    name text NOT NULL,
    namespace text,
    scopes integer NOT NULL,
    hash bytea NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    secret_of integer,
    last_used bigint,
    CONSTRAINT token_pkey PRIMARY KEY (id)
);

CREATE TABLE weft.unspanned (
    since bigint NOT NULL,
    until bigint NOT NULL
);

CREATE TABLE weft.unused (
    what smallint NOT NULL,
    id integer NOT NULL,
    since bigint NOT NULL,
    CONSTRAINT unused_pkey PRIMARY KEY (what, id)
);

CREATE TABLE weft.unused_walk (
    one integer NOT NULL DEFAULT 1,
    walker bigint NOT NULL,
    seen bigint NOT NULL,
    next bigint NOT NULL,
    CONSTRAINT unused_walk_one_check CHECK ((one = 1)),
    CONSTRAINT unused_walk_pkey PRIMARY KEY (one)
);

CREATE TABLE weft.waitpoint (
    waitpoint uuid NOT NULL,
    id uuid NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    closed bigint,
    epoch integer NOT NULL,
    bound integer NOT NULL,
    signals integer NOT NULL,
    key integer NOT NULL,
    replay smallint NOT NULL,
    name text NOT NULL,
    marked boolean NOT NULL DEFAULT false,
    CONSTRAINT waitpoint_pkey PRIMARY KEY (waitpoint)
) WITH (fillfactor=60);

CREATE INDEX waitpoint_bound ON weft.waitpoint USING btree (id, bound);

CREATE INDEX waitpoint_expires ON weft.waitpoint USING btree (expires) WHERE ((bound = 0) AND (closed IS NULL) AND (expires IS NOT NULL));

CREATE TRIGGER waitpoint_has AFTER INSERT ON weft.waitpoint FOR EACH ROW WHEN ((NOT new.marked)) EXECUTE FUNCTION weft.mark_has('60');

CREATE TABLE weft.worker (
    name integer NOT NULL,
    namespace integer NOT NULL,
    lanes text NOT NULL,
    capabilities text NOT NULL,
    seen bigint NOT NULL,
    CONSTRAINT worker_pkey PRIMARY KEY (name)
) WITH (fillfactor=50);

CREATE VIEW weft.snapshot AS
 SELECT e.id,
    e.created,
    e.queue,
    e.content_type,
    e.tags,
    e.key,
    COALESCE(l.state, o.state) AS state,
    COALESCE(l.priority, o.priority) AS priority,
    COALESCE(l.attempt, o.attempt) AS attempt,
    COALESCE(l.epoch, o.epoch) AS epoch,
    COALESCE(l.lost, o.lost) AS lost,
    COALESCE(l.replays, o.replays) AS replays,
    COALESCE(l.worker, o.worker) AS worker,
    COALESCE(l.started, o.started) AS started,
    COALESCE(l.claimed, o.claimed) AS claimed,
    COALESCE(l.deadline, o.deadline) AS deadline,
    l.due,
    o.finished,
    o.ended,
    o.by,
    COALESCE(o.reason, s.reason) AS reason,
    o.error_class,
    o.error_message,
    p.percent,
    p.note,
    n.flow,
    n.name AS node,
    COALESCE(l.policy, o.policy) AS policy,
    COALESCE(l.forgiven, o.forgiven) AS forgiven,
    (octet_length(o.result))::bigint AS result_size,
    s.since AS suspended,
    s.escalated,
    e.gate
   FROM (((((weft.execution e
     LEFT JOIN weft.live l ON ((l.id = e.id)))
     LEFT JOIN weft.outcome o ON ((o.id = e.id)))
     LEFT JOIN weft.progress p ON (((p.id = e.id) AND (p.epoch = COALESCE(l.epoch, o.epoch)))))
     LEFT JOIN weft.node n ON ((n.id = e.id)))
     LEFT JOIN weft.suspension s ON (((s.id = e.id) AND (l.state = 5))));

CREATE OR REPLACE FUNCTION weft.at_rest(xmax xid)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    SELECT $1 = 0 OR age($1) < -1000000
        OR pg_visible_in_snapshot((pg_current_xact_id()::text::bigint - age($1))::text::xid8,
                                  pg_current_snapshot())
$function$
;

CREATE OR REPLACE FUNCTION weft.grant_submit(role text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', btrim(split_part('weft.inbox', '.', 1), '"'), role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', 'weft.weft_submit'::regproc, role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', 'weft.weft_submit_spec'::regproc, role);
END
$function$
;

CREATE OR REPLACE FUNCTION weft.mark_has()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
    bits smallint := TG_ARGV[0];
BEGIN
    UPDATE weft.live SET has = has | bits WHERE id = NEW.id AND has & bits <> bits;
    UPDATE weft.outcome SET has = has | bits WHERE id = NEW.id AND has & bits <> bits;
    RETURN NULL;
END
$function$
;

CREATE OR REPLACE FUNCTION weft.partition(id uuid)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT ((get_byte(uuid_send($1), 6) & 15) << 4) | (get_byte(uuid_send($1), 7) >> 4)
$function$
;

CREATE OR REPLACE FUNCTION weft.poll(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = 1 ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT l.queue FROM weft.live l
                 WHERE l.state = 1 AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
          FROM hop WHERE hop.queue IS NOT NULL
    ), lanes AS (
        (SELECT lane FROM weft.live WHERE state = 4 ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT n.lane FROM weft.live n
                 WHERE n.state = 4 AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
          FROM lanes WHERE lanes.lane IS NOT NULL
    ), untold AS (
        (SELECT worker FROM weft.draining WHERE NOT told ORDER BY worker LIMIT 1)
        UNION ALL
        SELECT (SELECT d.worker FROM weft.draining d
                 WHERE NOT d.told AND d.worker > untold.worker ORDER BY d.worker LIMIT 1)
          FROM untold WHERE untold.worker IS NOT NULL
    )
    SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL
    UNION ALL
    SELECT 1,
           least((SELECT min(first.due)
                    FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                                    WHERE l.lane = lanes.lane AND l.state = 4
                                                    ORDER BY l.due LIMIT 1) first),
                 (SELECT until FROM weft.draining ORDER BY until LIMIT 1)),
           (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
             ORDER BY attempt_deadline LIMIT 1),
           (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
           (SELECT due FROM weft.live WHERE state = 2 ORDER BY due LIMIT 1),
           NULL
    UNION ALL
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int, max(id), sum(id), count(*), NULL
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int, max_running, weights FROM weft.lane
    UNION ALL
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL, NULL
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 ORDER BY id LIMIT 1), NULL, NULL, NULL
    UNION ALL
    (SELECT 6, worker, NULL, NULL, NULL, NULL FROM untold WHERE worker IS NOT NULL LIMIT 1000)
$function$
;

CREATE OR REPLACE FUNCTION weft.poll(after integer, most integer, OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = 1 AND queue > after ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT l.queue FROM weft.live l
                 WHERE l.state = 1 AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
          FROM hop WHERE hop.queue IS NOT NULL
    ), lanes AS (
        (SELECT lane FROM weft.live WHERE state = 4 ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT n.lane FROM weft.live n
                 WHERE n.state = 4 AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
          FROM lanes WHERE lanes.lane IS NOT NULL
    ), untold AS (
        (SELECT worker FROM weft.draining WHERE NOT told ORDER BY worker LIMIT 1)
        UNION ALL
        SELECT (SELECT d.worker FROM weft.draining d
                 WHERE NOT d.told AND d.worker > untold.worker ORDER BY d.worker LIMIT 1)
          FROM untold WHERE untold.worker IS NOT NULL
    )
    (SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL LIMIT most)
    UNION ALL
    SELECT 1,
           least((SELECT min(first.due)
                    FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                                    WHERE l.lane = lanes.lane AND l.state = 4
                                                    ORDER BY l.due LIMIT 1) first),
                 (SELECT until FROM weft.draining ORDER BY until LIMIT 1)),
           (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
             ORDER BY attempt_deadline LIMIT 1),
           (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
           (SELECT due FROM weft.live WHERE state = 2 ORDER BY due LIMIT 1),
           NULL
    UNION ALL
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int, max(id), sum(id), count(*), NULL
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int, max_running, weights FROM weft.lane
    UNION ALL
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL, NULL
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 ORDER BY id LIMIT 1), NULL, NULL, NULL
    UNION ALL
    (SELECT 6, worker, NULL, NULL, NULL, NULL FROM untold WHERE worker IS NOT NULL LIMIT 1000)
$function$
;

CREATE OR REPLACE FUNCTION weft.poll(after integer, most integer, whole boolean, OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = 1 AND queue > after ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT l.queue FROM weft.live l
                 WHERE l.state = 1 AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
          FROM hop WHERE hop.queue IS NOT NULL
    ), lanes AS (
        (SELECT lane FROM weft.live WHERE state = 4 ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT n.lane FROM weft.live n
                 WHERE n.state = 4 AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
          FROM lanes WHERE lanes.lane IS NOT NULL
    ), untold AS (
        (SELECT worker FROM weft.draining WHERE NOT told ORDER BY worker LIMIT 1)
        UNION ALL
        SELECT (SELECT d.worker FROM weft.draining d
                 WHERE NOT d.told AND d.worker > untold.worker ORDER BY d.worker LIMIT 1)
          FROM untold WHERE untold.worker IS NOT NULL
    )
    (SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE whole AND hop.queue IS NOT NULL LIMIT most)
    UNION ALL
    SELECT 1,
           least((SELECT min(first.due)
                    FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                                    WHERE l.lane = lanes.lane AND l.state = 4
                                                    ORDER BY l.due LIMIT 1) first),
                 (SELECT until FROM weft.draining ORDER BY until LIMIT 1)),
           (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
             ORDER BY attempt_deadline LIMIT 1),
           (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
           (SELECT due FROM weft.live WHERE state = 2 ORDER BY due LIMIT 1),
           NULL
     WHERE whole
    UNION ALL
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int, max(id), sum(id), count(*), NULL
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int, max_running, weights FROM weft.lane
    UNION ALL
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL, NULL
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 ORDER BY id LIMIT 1), NULL, NULL, NULL
    UNION ALL
    (SELECT 6, worker, NULL, NULL, NULL, NULL FROM untold WHERE worker IS NOT NULL LIMIT 1000)
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_budgets(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    SELECT 11, (SELECT next_reset FROM weft.budget WHERE next_reset IS NOT NULL ORDER BY next_reset LIMIT 1),
           (EXISTS (SELECT 1 FROM weft.ledger WHERE settled IS NULL)
            OR EXISTS (SELECT 1 FROM weft.budget WHERE cancelling)
            OR EXISTS (SELECT 1 FROM weft.budget_dimension WHERE dropped OR stale))::int::bigint,
           (SELECT version FROM weft.budget_version), NULL::bigint, NULL::text
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_endpoints(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
AS $function$
    SELECT 12, version, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text FROM weft.endpoint_version
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_erasure(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    SELECT 13, EXISTS (SELECT 1 FROM weft.erasure WHERE finished IS NULL)::int::bigint, NULL::bigint, NULL::bigint,
           NULL::bigint, NULL::text
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_flows(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL::bigint, NULL::text
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 AND state = -1 ORDER BY state, id LIMIT 1),
           (EXISTS (SELECT 1 FROM weft.flow WHERE state < 0 AND state = -2)
            OR EXISTS (SELECT 1 FROM weft.flow WHERE deleted IS NOT NULL AND state > 0)
            OR EXISTS (SELECT 1 FROM weft.file WHERE deleted IS NOT NULL)
            OR EXISTS (SELECT 1 FROM weft.batch b WHERE b.deleted IS NOT NULL
                          AND NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = b.id OFFSET 0)))::int, NULL, NULL
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_gates(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    SELECT 10, (SELECT next FROM weft.gate WHERE next IS NOT NULL ORDER BY next LIMIT 1),
           EXISTS (SELECT 1 FROM weft.gate)::int::bigint, NULL::bigint, NULL::bigint, NULL::text
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_settings(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int::bigint, max(id)::bigint, sum(id)::bigint, count(*),
           NULL::text
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int + CASE WHEN window_limit + rate_limit > 0 THEN 2 ELSE 0 END, max_running,
           weights
      FROM weft.lane
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_waiting(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    SELECT 9,
           (SELECT due FROM weft.suspension WHERE due IS NOT NULL ORDER BY due LIMIT 1),
           (SELECT expires FROM weft.waitpoint
             WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL ORDER BY expires LIMIT 1),
           (SELECT max(id)::bigint FROM weft.signing_key),
           (SELECT sum(coalesce(retires, 0) % 1000000007)::bigint FROM weft.signing_key),
           NULL::text
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_work(after integer, most integer, OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = 1 AND queue > after ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT l.queue FROM weft.live l
                 WHERE l.state = 1 AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
          FROM hop WHERE hop.queue IS NOT NULL
    ), lanes AS (
        (SELECT lane FROM weft.live WHERE state = 4 ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT n.lane FROM weft.live n
                 WHERE n.state = 4 AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
          FROM lanes WHERE lanes.lane IS NOT NULL
    )
    (SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL LIMIT most)
    UNION ALL
    SELECT 1,
           least((SELECT min(first.due)
                    FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                                    WHERE l.lane = lanes.lane AND l.state = 4
                                                    ORDER BY l.due LIMIT 1) first),
                 (SELECT until FROM weft.draining ORDER BY until LIMIT 1)),
           (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
             ORDER BY attempt_deadline LIMIT 1),
           (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
           (SELECT due FROM weft.live WHERE state = 2 ORDER BY due LIMIT 1),
           NULL
$function$
;

CREATE OR REPLACE FUNCTION weft.poll_workers(OUT what integer, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
 RETURNS SETOF record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
    WITH RECURSIVE untold AS (
        (SELECT worker FROM weft.draining WHERE NOT told ORDER BY worker LIMIT 1)
        UNION ALL
        SELECT (SELECT d.worker FROM weft.draining d
                 WHERE NOT d.told AND d.worker > untold.worker ORDER BY d.worker LIMIT 1)
          FROM untold WHERE untold.worker IS NOT NULL
    )
    SELECT 6, worker::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM untold WHERE worker IS NOT NULL LIMIT 1000
$function$
;

CREATE OR REPLACE FUNCTION weft.set_has()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
    bit smallint := TG_ARGV[0];
BEGIN
    IF EXISTS (SELECT 1 FROM fresh f
                WHERE NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id = f.id AND l.has & bit <> 0 OFFSET 0)) THEN
        UPDATE weft.live l SET has = l.has | bit
          FROM fresh f WHERE l.id BETWEEN f.id AND f.id AND l.has & bit = 0;
        UPDATE weft.outcome o SET has = o.has | bit
          FROM fresh f WHERE o.id BETWEEN f.id AND f.id AND o.has & bit = 0;
    END IF;
    RETURN NULL;
END
$function$
;

CREATE OR REPLACE FUNCTION weft.wake_intake()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
    IF pg_try_advisory_xact_lock(2003133044, TG_RELID::int) THEN
        PERFORM pg_notify(btrim(split_part('weft.inbox', '.', 1), '"'), 'inbox');
    END IF;
    RETURN NULL;
END
$function$
;

CREATE OR REPLACE FUNCTION weft.weft_submit(kind text, payload json DEFAULT NULL::json, lane text DEFAULT 'default'::text, key text DEFAULT NULL::text, priority integer DEFAULT 0, delay_ms bigint DEFAULT 0, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline_at timestamp with time zone DEFAULT NULL::timestamp with time zone, capabilities text[] DEFAULT NULL::text[], tenant text DEFAULT NULL::text, tags jsonb DEFAULT NULL::jsonb, policy jsonb DEFAULT NULL::jsonb, namespace text DEFAULT 'default'::text, payload_bytes bytea DEFAULT NULL::bytea, content_type text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
DECLARE
    submitted uuid;
    refusal text;
BEGIN
    IF $9 IS NOT NULL OR $11 IS NOT NULL OR $12 IS NOT NULL
       OR greatest(octet_length($1), octet_length($3), octet_length($10), octet_length($13),
                   octet_length($15)) > 128
       OR octet_length($4) > 512 OR greatest(octet_length($2::text), octet_length($14)) > 1048576
    THEN
        SELECT format('%s has %s %s, at most %s are allowed', f.field, f.size, f.unit, f.most)
          INTO refusal
          FROM (VALUES ('kind', octet_length($1), 128, 'bytes'),
                       ('payload', greatest(octet_length($2::text), octet_length($14)), 1048576, 'bytes'),
                       ('lane', octet_length($3), 128, 'bytes'),
                       ('key', octet_length($4), 512, 'bytes'),
                       ('capabilities', cardinality($9), 256, 'tokens'),
                       ('capabilities', octet_length(array_to_string($9, ',')), 2048, 'bytes'),
                       ('tenant', octet_length($10), 128, 'bytes'),
                       ('policy', octet_length($12::text), 262144, 'bytes'),
                       ('namespace', octet_length($13), 128, 'bytes'),
                       ('content_type', octet_length($15), 128, 'bytes'),
                       ('tags', octet_length($11::text), 262144, 'bytes')) AS f(field, size, most, unit)
         WHERE f.size > f.most LIMIT 1;
        IF refusal IS NULL AND jsonb_typeof($11) = 'object' THEN
            SELECT CASE WHEN count(*) > 32 THEN format('there are %s tags, at most 32 are allowed', count(*))
                        WHEN max(octet_length(t.key)) > 64 THEN
                            format('the key of a tag has %s bytes, at most 64 are allowed', max(octet_length(t.key)))
                        WHEN max(octet_length(t.value)) > 256 THEN
                            format('the value of a tag has %s bytes, at most 256 are allowed', max(octet_length(t.value)))
                   END
              INTO refusal
              FROM jsonb_each_text($11) t;
        END IF;
        IF refusal IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded', MESSAGE = 'weft_submit: ' || refusal,
                HINT = 'keep large data in a table or a file and submit where it is; nothing was submitted';
        END IF;
    END IF;
    INSERT INTO weft.inbox
    SELECT encode(
               substr(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3, 6)
               || set_byte(set_byte(set_byte(substr(r.bytes, 10, 7) || substr(r.bytes, 17, 3), 0, 112 | (p.partition >> 4)),
                                    1, ((p.partition & 15) << 4) | (get_byte(r.bytes, 9) & 15)),
                           2, 128 | (get_byte(r.bytes, 10) & 63)), 'hex')::uuid,
           coalesce($13, 'default'), $3, $1,
           coalesce($14, convert_to($2::text, 'UTF8')), $15, $5, $6,
           CASE WHEN $7 IS NOT NULL THEN
               least(greatest(extract(epoch FROM $7) * 1000000, -1), 253402300800000000)::bigint END,
           CASE WHEN $8 IS NOT NULL THEN
               least(greatest(extract(epoch FROM $8) * 1000000, -1), 253402300800000000)::bigint END,
           to_json($9)::text, $10, $11::text, $4, $12::text
      FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) AS bytes) r,
   LATERAL (SELECT CASE WHEN $4 IS NULL THEN get_byte(r.bytes, 25)
                        ELSE get_byte(sha256(convert_to(coalesce($13, 'default'), 'UTF8')
                                             || '\x00'::bytea || convert_to($4, 'UTF8')), 0)
                   END AS partition) p
    RETURNING id INTO submitted;
    RETURN submitted;
END
$function$
;

CREATE OR REPLACE FUNCTION weft.weft_submit_spec(spec json, namespace text DEFAULT 'default'::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
DECLARE
    submitted uuid;
    refusal text;
BEGIN
    IF json_typeof($1) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'weft_submit_spec: the spec is not a JSON object',
            HINT = 'pass what POST /v1/executions takes, for example {"kind":"greet"}; nothing was submitted';
    END IF;
    SELECT CASE WHEN f.field IS NULL THEN format('there is no field %s', left(e.key, 64))
                WHEN e.times > 1 THEN format('%s is there %s times', f.field, e.times)
                ELSE format('%s must be %s', f.field, f.say) END
      INTO refusal
      FROM (SELECT x.key, json_typeof(x.value) AS type, x.value #>> '{}' AS text, count(*) OVER (PARTITION BY x.key) AS times
              FROM json_each($1) x) e
      LEFT JOIN (VALUES ('kind', 'a text', 'string', NULL), ('payload', 'JSON', NULL, NULL),
                        ('payload_base64', 'a text', 'string', NULL), ('content_type', 'a text', 'string', NULL),
                        ('lane', 'a text', 'string', NULL), ('key', 'a text', 'string', NULL),
                        ('priority', 'a whole number', 'number', '^-?\d{1,9}$'),
                        ('delay_ms', 'a whole number', 'number', '^-?\d{1,18}$'),
                        ('run_at', 'a time such as 2026-12-01T06:00:00Z', 'string', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'),
                        ('deadline_at', 'a time such as 2026-12-01T06:00:00Z', 'string', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$'),
                        ('capabilities', 'a list of texts', 'array', NULL), ('tenant', 'a text', 'string', NULL),
                        ('tags', 'an object', 'object', NULL), ('policy', 'an object', 'object', NULL),
                        ('gate', 'a text', 'string', NULL), ('budgets', 'a list of texts', 'array', NULL),
                        ('cost', 'an object', 'object', NULL)) AS f(field, say, type, form) ON f.field = e.key
     WHERE f.field IS NULL OR e.times > 1
        OR e.type <> 'null' AND f.type IS NOT NULL AND (e.type <> f.type OR e.text !~ f.form)
     LIMIT 1;
    IF refusal IS NULL AND $1 -> 'payload' IS NOT NULL AND $1 ->> 'payload_base64' IS NOT NULL THEN
        refusal := 'payload and payload_base64 exclude each other';
    ELSIF refusal IS NULL AND ($1 ->> 'capabilities' IS NOT NULL OR $1 ->> 'budgets' IS NOT NULL) THEN
        SELECT format('%s must be a list of texts', l.field) INTO refusal
          FROM (VALUES ('capabilities'), ('budgets')) AS l(field),
               LATERAL json_array_elements(CASE WHEN $1 ->> l.field IS NOT NULL THEN $1 -> l.field END) v
         WHERE json_typeof(v) <> 'string' LIMIT 1;
    END IF;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'weft_submit_spec: ' || refusal,
            HINT = 'nothing was submitted';
    END IF;
    SELECT format('%s has %s %s, at most %s are allowed', f.field, f.size, f.unit, f.most)
      INTO refusal
      FROM (VALUES ('gate', octet_length($1 ->> 'gate'), 128, 'bytes'),
                   ('budgets', json_array_length(CASE WHEN $1 ->> 'budgets' IS NOT NULL THEN $1 -> 'budgets' END), 8, 'names'),
                   ('budgets', octet_length($1 ->> 'budgets'), 8192, 'bytes'),
                   ('cost', octet_length($1 ->> 'cost'), 8192, 'bytes')) AS f(field, size, most, unit)
     WHERE f.size > f.most LIMIT 1;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded', MESSAGE = 'weft_submit_spec: ' || refusal,
            HINT = 'nothing was submitted';
    END IF;
    submitted := weft.weft_submit(
        $1 ->> 'kind', CASE WHEN $1 ->> 'payload_base64' IS NULL THEN $1 -> 'payload' END,
        coalesce($1 ->> 'lane', 'default'), $1 ->> 'key', coalesce(($1 ->> 'priority')::int, 0),
        coalesce(($1 ->> 'delay_ms')::bigint, 0), ($1 ->> 'run_at')::timestamptz, ($1 ->> 'deadline_at')::timestamptz,
        CASE WHEN $1 ->> 'capabilities' IS NOT NULL THEN ARRAY(SELECT json_array_elements_text($1 -> 'capabilities')) END,
        $1 ->> 'tenant', nullif(($1 -> 'tags')::jsonb, 'null'), nullif(($1 -> 'policy')::jsonb, 'null'), $2,
        decode($1 ->> 'payload_base64', 'base64'), $1 ->> 'content_type');
    IF coalesce($1 ->> 'gate', $1 ->> 'budgets', $1 ->> 'cost') IS NOT NULL THEN
        UPDATE weft.schema SET oldest_binary = 32 WHERE oldest_binary < 32;
        UPDATE weft.inbox
           SET limits = json_build_object('gate', $1 -> 'gate', 'budgets', $1 -> 'budgets', 'cost', $1 -> 'cost')::text
         WHERE id = submitted;
    END IF;
    RETURN submitted;
END
$function$
;
