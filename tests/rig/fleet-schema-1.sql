-- The books of a fleet: the ledgers of many bursars, in one PostgreSQL (15 or newer). `bursar fleet schema` prints
-- this file; it may be run again and again:
--
--     bursar fleet schema | psql -v ON_ERROR_STOP=1 -d DATABASE
--
-- Run it as a role that may create roles and schemas. A program reaches nothing here but the functions that its role
-- may call: bursar_node (a bursar), bursar_operator (a person who changes the fleet), bursar_reader (views).
-- Make one login for each, as in: CREATE ROLE laptops LOGIN PASSWORD '…' IN ROLE bursar_node;
--
-- Promise: a line of a journal counts once, whatever is sent again and whoever is copied. Nothing is decided here
-- that a bursar decides: amounts are summed as the lines state them.

BEGIN;

DO $roles$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['bursar_fleet_owner', 'bursar_node', 'bursar_operator', 'bursar_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END
$roles$;
-- To own what is made below.
GRANT bursar_fleet_owner TO CURRENT_USER;

CREATE SCHEMA IF NOT EXISTS bursar_fleet;
ALTER SCHEMA bursar_fleet OWNER TO bursar_fleet_owner;
REVOKE ALL ON SCHEMA bursar_fleet FROM PUBLIC;

-- Two upgrades at once would meet half of each other. Held to the end of this transaction.
DO $lock$ BEGIN PERFORM pg_advisory_xact_lock(4702394921427289928); END $lock$;
SET LOCAL ROLE bursar_fleet_owner;
SET LOCAL search_path = bursar_fleet, pg_temp;

-- Functions are made anew, so that none of an older version stays beside those of this one.
DO $functions$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'bursar_fleet'::regnamespace LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END
$functions$;

CREATE TABLE IF NOT EXISTS about (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    made timestamptz NOT NULL DEFAULT now()
);

DO $version$
DECLARE
    found integer := (SELECT version FROM about);
BEGIN
    IF found > 1 THEN
        RAISE EXCEPTION 'the fleet''s schema has version %, and this file is of version 1', found
            USING HINT = 'Take the file of the newest bursar: bursar fleet schema';
    END IF;
END
$version$;

-- A code that lets one new ledger in. Of the code its SHA-256.
CREATE TABLE IF NOT EXISTS invites (
    code_sha256 bytea PRIMARY KEY CHECK (octet_length(code_sha256) = 32),
    made timestamptz NOT NULL DEFAULT now(),
    expires timestamptz NOT NULL,
    note text,
    used_by uuid
);

-- A ledger of the fleet. Its row is locked while it ships, so its lines come one batch after the other.
CREATE TABLE IF NOT EXISTS ledgers (
    id uuid PRIMARY KEY,
    secret_sha256 bytea NOT NULL CHECK (octet_length(secret_sha256) = 32),
    host_label text NOT NULL CHECK (length(host_label) BETWEEN 1 AND 64),
    joined timestamptz NOT NULL DEFAULT now(),
    -- A copy of another ledger, which has all lines up to this one.
    copy_of uuid REFERENCES ledgers,
    copied_up_to bigint,
    -- The last line that is here, and the running hash over all of them.
    mark_seq bigint NOT NULL DEFAULT 0,
    mark_chain bytea NOT NULL DEFAULT '',
    -- What it last said of itself.
    heard timestamptz NOT NULL DEFAULT now(),
    bursar text NOT NULL,
    journal_seq bigint NOT NULL DEFAULT 0,
    -- Its clock less the database's, when it last said hello.
    clock_ahead_ms bigint NOT NULL DEFAULT 0,
    revoked timestamptz,
    gone timestamptz
);

-- Apps that may spend nothing on any machine; '' stands for all of them. A bursar hears of it with its next hello.
CREATE TABLE IF NOT EXISTS freezes (
    app text PRIMARY KEY CHECK (length(app) <= 64),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    ordered_by text NOT NULL
);

-- The journals' lines, by the month in which they came: a late line always has one. No index over months is
-- relied on, for `ship` compares with the ledger's mark.
CREATE TABLE IF NOT EXISTS lines (
    ledger uuid NOT NULL,
    seq bigint NOT NULL,
    -- Of a range that is not here (`why`): its last number.
    last_seq bigint NOT NULL,
    received timestamptz NOT NULL,
    -- The running hash up to here: over each line as it stands in its journal.
    chain bytea NOT NULL,
    -- Of the journal's line what leaves a machine (docs/fleet.md). As it came: text, whose bytes stay.
    line text,
    why text,
    kind text NOT NULL,
    entry uuid,
    started timestamptz,
    app text,
    lane text,
    operation text,
    served_by text,
    state text,
    was text,
    requests bigint NOT NULL DEFAULT 0,
    billed_micro_usd numeric NOT NULL DEFAULT 0,
    key_value text
) PARTITION BY RANGE (received);

CREATE OR REPLACE FUNCTION month_partition(month date) RETURNS void
LANGUAGE plpgsql SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    name text := 'lines_' || to_char(month, 'YYYY_MM');
BEGIN
    IF to_regclass('bursar_fleet.' || name) IS NOT NULL THEN
        RETURN;
    END IF;
    -- Two ledgers may be the month's first.
    PERFORM pg_advisory_xact_lock(4702394921427289929);
    IF to_regclass('bursar_fleet.' || name) IS NULL THEN
        EXECUTE format('CREATE TABLE %I PARTITION OF lines FOR VALUES FROM (%L) TO (%L)', name,
            month::timestamp AT TIME ZONE 'UTC', (month + interval '1 month')::timestamp AT TIME ZONE 'UTC');
        EXECUTE format('CREATE UNIQUE INDEX ON %I (ledger, last_seq)', name);
        EXECUTE format('CREATE INDEX ON %I USING brin (received)', name);
        EXECUTE format('CREATE INDEX ON %I (ledger) WHERE kind = %L', name, 'lost');
    END IF;
END
$$;

-- What a line adds to the sums. Only words and numbers of the line are taken; nothing is judged.
CREATE OR REPLACE FUNCTION state_word(state jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT CASE jsonb_typeof(state)
        WHEN 'string' THEN state #>> '{}'
        WHEN 'object' THEN (SELECT key FROM jsonb_object_keys(state) AS key LIMIT 1)
    END
$$;

CREATE OR REPLACE FUNCTION next_chain(before bytea, line_sha256 bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT sha256(before || line_sha256)
$$;

-- The caller's row, locked. Unknown ledgers and wrong secrets are one error: a stranger learns nothing.
CREATE OR REPLACE FUNCTION caller(p_ledger uuid, p_secret bytea) RETURNS ledgers
LANGUAGE plpgsql SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    known ledgers;
BEGIN
    SELECT * INTO known FROM ledgers WHERE id = p_ledger AND secret_sha256 = sha256(p_secret) FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this fleet does not know the ledger' USING ERRCODE = 'BF001';
    ELSIF known.revoked IS NOT NULL THEN
        RAISE EXCEPTION 'the ledger was revoked at %', known.revoked USING ERRCODE = 'BF002';
    END IF;
    RETURN known;
END
$$;

-- The last line of a ledger at or before a number, with the hash behind it. What a copy has in common with the
-- ledger that it was stands with that one.
CREATE OR REPLACE FUNCTION line_at(p_ledger uuid, p_seq bigint, OUT seq bigint, OUT chain bytea)
LANGUAGE plpgsql STABLE SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_ledger uuid := p_ledger;
    v_seq bigint := p_seq;
    v_parent ledgers;
BEGIN
    LOOP
        SELECT l.last_seq, l.chain INTO seq, chain FROM lines l
            WHERE l.ledger = v_ledger AND l.last_seq <= v_seq ORDER BY l.last_seq DESC LIMIT 1;
        EXIT WHEN FOUND;
        SELECT * INTO v_parent FROM ledgers WHERE id = v_ledger;
        EXIT WHEN v_parent.copy_of IS NULL;
        v_seq := least(v_seq, v_parent.copied_up_to);
        v_ledger := v_parent.copy_of;
    END LOOP;
END
$$;

-- ---------------------------------------------------------------------------------------------- for a bursar

-- Lets a new ledger in. Repeated by the same ledger with the same code it changes nothing.
CREATE OR REPLACE FUNCTION enrol(p_code text, p_ledger uuid, p_secret bytea, p_host_label text, p_bursar text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    invite invites;
BEGIN
    IF octet_length(p_secret) <> 32 THEN
        RAISE EXCEPTION 'a ledger''s secret has 32 bytes' USING ERRCODE = 'BF009';
    END IF;
    SELECT * INTO invite FROM invites WHERE code_sha256 = sha256(convert_to(p_code, 'UTF8')) FOR UPDATE;
    IF NOT FOUND OR (invite.used_by IS NULL AND invite.expires < now())
        OR (invite.used_by IS NOT NULL AND invite.used_by <> p_ledger) THEN
        RAISE EXCEPTION 'the code is not known, was used, or has expired' USING ERRCODE = 'BF004';
    END IF;
    IF invite.used_by IS NOT NULL THEN
        PERFORM caller(p_ledger, p_secret);
        RETURN;
    END IF;
    INSERT INTO ledgers (id, secret_sha256, host_label, bursar)
        VALUES (p_ledger, sha256(p_secret), p_host_label, p_bursar);
    UPDATE invites SET used_by = p_ledger WHERE code_sha256 = invite.code_sha256;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'a ledger of this id is there already' USING ERRCODE = 'BF004';
END
$$;

-- What a login may do here, for `bursar fleet join` and for a person who meets a refusal.
CREATE OR REPLACE FUNCTION greet(OUT version integer, OUT now_ms bigint, OUT is_node boolean,
    OUT is_operator boolean, OUT is_reader boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
    SELECT about.version, (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        pg_has_role(session_user, 'bursar_node', 'USAGE'),
        pg_has_role(session_user, 'bursar_operator', 'USAGE'),
        pg_has_role(session_user, 'bursar_reader', 'USAGE')
    FROM about
$$;

-- Whether a code would let a ledger in now. It is not used up by that.
CREATE OR REPLACE FUNCTION is_open(p_code text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
    SELECT EXISTS (SELECT FROM invites WHERE code_sha256 = sha256(convert_to(p_code, 'UTF8'))
        AND used_by IS NULL AND expires >= now())
$$;

-- Says that the ledger is there, and asks what of it is here, and what is ordered. `freezes`: a JSON array of
-- {app, since_ms, by}, where the app '' is all apps.
CREATE OR REPLACE FUNCTION hello(p_ledger uuid, p_secret bytea, p_host_label text, p_bursar text,
    p_journal_seq bigint, p_wall_ms bigint,
    OUT version integer, OUT mark_seq bigint, OUT mark_chain bytea, OUT clock_ahead_ms bigint, OUT freezes text,
    OUT is_revoked boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    known ledgers;
BEGIN
    -- One that was shut out still hears what is ordered: a freeze is for every machine that has the key.
    SELECT * INTO known FROM ledgers WHERE id = p_ledger AND secret_sha256 = sha256(p_secret) FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this fleet does not know the ledger' USING ERRCODE = 'BF001';
    END IF;
    is_revoked := known.revoked IS NOT NULL;
    clock_ahead_ms := p_wall_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    UPDATE ledgers SET heard = clock_timestamp(), host_label = p_host_label, bursar = p_bursar,
        journal_seq = greatest(p_journal_seq, 0), clock_ahead_ms = hello.clock_ahead_ms, gone = NULL
        WHERE id = p_ledger;
    version := (SELECT about.version FROM about);
    mark_seq := known.mark_seq;
    mark_chain := known.mark_chain;
    freezes := (SELECT coalesce(json_agg(json_build_object('app', f.app,
        'since_ms', (extract(epoch FROM f.since) * 1000)::bigint, 'by', f.ordered_by) ORDER BY f.app), '[]')::text
        FROM freezes AS f);
END
$$;

-- The last line at or before a number, and the running hash behind it. NULL: there is none.
CREATE OR REPLACE FUNCTION chain_at(p_ledger uuid, p_secret bytea, p_seq bigint, OUT seq bigint, OUT chain bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    PERFORM caller(p_ledger, p_secret);
    SELECT l.seq, l.chain INTO chain_at.seq, chain_at.chain FROM line_at(p_ledger, p_seq) AS l;
END
$$;

-- Takes lines that follow the ledger's mark. All of it is one transaction; a repeat is answered as the first was.
-- Of a range that the journal has lost, or that was compacted before it joined, the text is why and there is no hash.
-- verdict: 'taken'; 'behind': the fleet has less than the caller thinks, and the mark says how much; 'fork': what
-- the caller sends is not what is here under these numbers.
CREATE OR REPLACE FUNCTION ship(p_ledger uuid, p_secret bytea, p_after_seq bigint, p_after_chain bytea,
    p_seqs bigint[], p_last_seqs bigint[], p_lines text[], p_sha256s bytea[], p_journal_seq bigint,
    OUT verdict text, OUT mark_seq bigint, OUT mark_chain bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
    v_at timestamptz := clock_timestamp();
    v_seq bigint := p_after_seq;
    v_chain bytea := p_after_chain;
    said jsonb;
    is_lost boolean;
    billed numeric;
    counted bigint;
BEGIN
    mark_seq := known.mark_seq;
    mark_chain := known.mark_chain;
    IF p_after_seq > known.mark_seq THEN
        verdict := 'behind';
        RETURN;
    END IF;
    IF (p_after_seq = known.mark_seq AND p_after_chain <> known.mark_chain)
        OR (p_after_seq < known.mark_seq AND p_after_seq > 0 AND (p_after_seq, p_after_chain) IS DISTINCT FROM
            (SELECT (l.seq, l.chain) FROM line_at(p_ledger, p_after_seq) AS l)) THEN
        verdict := 'fork';
        RETURN;
    END IF;
    PERFORM month_partition(date_trunc('month', v_at AT TIME ZONE 'UTC')::date);
    FOR i IN 1 .. coalesce(array_length(p_seqs, 1), 0) LOOP
        is_lost := p_sha256s[i] IS NULL;
        IF p_seqs[i] <> v_seq + 1 OR p_last_seqs[i] < p_seqs[i] OR (NOT is_lost AND p_last_seqs[i] <> p_seqs[i]) THEN
            RAISE EXCEPTION 'line % does not follow line %', p_seqs[i], v_seq USING ERRCODE = 'BF005';
        END IF;
        IF is_lost AND p_lines[i] = 'compacted' AND v_seq > 0 THEN
            RAISE EXCEPTION 'lines from % on were compacted, and the fleet has lines before them', p_seqs[i]
                USING ERRCODE = 'BF006';
        END IF;
        v_seq := p_last_seqs[i];
        v_chain := next_chain(v_chain, coalesce(p_sha256s[i], sha256(convert_to(
            format('%s %s %s', p_lines[i], p_seqs[i], p_last_seqs[i]), 'UTF8'))));
        IF v_seq <= known.mark_seq THEN
            IF v_seq = known.mark_seq AND v_chain <> known.mark_chain THEN
                verdict := 'fork';
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        IF p_seqs[i] <= known.mark_seq THEN
            verdict := 'fork';
            RETURN;
        END IF;
        IF is_lost THEN
            INSERT INTO lines (ledger, seq, last_seq, received, chain, why, kind)
                VALUES (p_ledger, p_seqs[i], v_seq, v_at, v_chain, p_lines[i], 'lost');
            CONTINUE;
        END IF;
        said := p_lines[i]::jsonb;
        billed := coalesce(CASE said ->> 'kind'
            WHEN 'rollup' THEN (said #>> '{row,billed}')::numeric
            ELSE (said ->> 'adds_micro_usd')::numeric
        END, 0);
        counted := coalesce(CASE said ->> 'kind'
            WHEN 'rollup' THEN (said #>> '{row,requests}')::bigint
            WHEN 'outcome' THEN 1 WHEN 'crashed' THEN 1 WHEN 'withdrawn' THEN 1
        END, 0);
        -- One line must not make the sums of all unreadable.
        IF billed = 'NaN' OR billed <> trunc(billed) OR billed NOT BETWEEN 0 AND 1e18
            OR counted NOT BETWEEN 0 AND 1000000000000 THEN
            RAISE EXCEPTION 'line % has an amount or a count that is none', v_seq USING ERRCODE = 'BF007';
        END IF;
        INSERT INTO lines VALUES (p_ledger, v_seq, v_seq, v_at, v_chain, p_lines[i], NULL, said ->> 'kind',
            (said ->> 'id')::uuid,
            to_timestamp(coalesce(said ->> 'started_ms', said ->> 'at_ms')::numeric / 1000),
            said ->> 'app', said ->> 'lane', said ->> 'operation',
            coalesce(said ->> 'served_by', said #>> '{receipt,served_by}'),
            CASE said ->> 'kind'
                WHEN 'reconciled' THEN 'reconciled'
                ELSE state_word(said -> 'state')
            END,
            state_word(said -> 'was'),
            counted, billed, said #>> '{key,value}');
    END LOOP;
    IF v_seq < known.mark_seq AND v_seq > p_after_seq AND (v_seq, v_chain) IS DISTINCT FROM
        (SELECT (l.seq, l.chain) FROM line_at(p_ledger, v_seq) AS l) THEN
        verdict := 'fork';
        RETURN;
    END IF;
    verdict := 'taken';
    IF v_seq > known.mark_seq THEN
        mark_seq := v_seq;
        mark_chain := v_chain;
    END IF;
    UPDATE ledgers SET mark_seq = ship.mark_seq, mark_chain = ship.mark_chain, heard = v_at,
        journal_seq = greatest(p_journal_seq, ship.mark_seq)
        WHERE id = p_ledger;
END
$$;

-- A copy (a clone, a restored directory) takes an id of its own. What it has in common with the ledger that it was
-- stays that one's. Repeated it changes nothing.
CREATE OR REPLACE FUNCTION fork(p_ledger uuid, p_secret bytea, p_seq bigint, p_chain bytea,
    p_new_ledger uuid, p_new_secret bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
BEGIN
    IF octet_length(p_new_secret) <> 32 THEN
        RAISE EXCEPTION 'a ledger''s secret has 32 bytes' USING ERRCODE = 'BF009';
    ELSIF p_seq < 0 OR p_seq > known.mark_seq THEN
        RAISE EXCEPTION 'line % is not common to both', p_seq USING ERRCODE = 'BF005';
    END IF;
    IF EXISTS (SELECT FROM ledgers WHERE id = p_new_ledger AND secret_sha256 = sha256(p_new_secret)
        AND copy_of = p_ledger AND copied_up_to = p_seq) THEN
        RETURN;
    END IF;
    IF p_seq > 0 AND (p_seq, p_chain) IS DISTINCT FROM
        (SELECT (l.seq, l.chain) FROM line_at(p_ledger, p_seq) AS l) THEN
        RAISE EXCEPTION 'line % is not common to both', p_seq USING ERRCODE = 'BF005';
    END IF;
    INSERT INTO ledgers (id, secret_sha256, host_label, bursar, copy_of, copied_up_to, mark_seq, mark_chain,
        journal_seq)
        VALUES (p_new_ledger, sha256(p_new_secret), known.host_label, known.bursar, p_ledger, p_seq, p_seq,
            p_chain, p_seq);
END
$$;

-- The ledger stops shipping for good. What it shipped stays counted.
CREATE OR REPLACE FUNCTION leave(p_ledger uuid, p_secret bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    PERFORM caller(p_ledger, p_secret);
    UPDATE ledgers SET gone = clock_timestamp() WHERE id = p_ledger;
END
$$;

-- ------------------------------------------------------------------------------------------- for an operator

-- Whoever has this code may enrol one ledger within 24 hours. The code is made by the caller.
CREATE OR REPLACE FUNCTION invite(p_code text, p_note text) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    until timestamptz := now() + interval '24 hours';
BEGIN
    IF length(p_code) < 20 THEN
        RAISE EXCEPTION 'a code has at least 20 characters' USING ERRCODE = 'BF009';
    END IF;
    DELETE FROM invites WHERE expires < now() - interval '35 days';
    INSERT INTO invites (code_sha256, expires, note) VALUES (sha256(convert_to(p_code, 'UTF8')), until, p_note);
    RETURN until;
END
$$;

-- Refuses all later calls of a ledger; its lines stay counted. False: there is none of this id.
CREATE OR REPLACE FUNCTION revoke_ledger(p_ledger uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    UPDATE ledgers SET revoked = coalesce(revoked, clock_timestamp()) WHERE id = p_ledger;
    RETURN FOUND;
END
$$;

-- Stops an app, or all ('') of them, on every machine. What is frozen already stays so since when it was: false.
CREATE OR REPLACE FUNCTION order_freeze(p_app text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    INSERT INTO freezes (app, ordered_by) VALUES (p_app, session_user) ON CONFLICT (app) DO NOTHING;
    RETURN FOUND;
END
$$;

-- Ends it. False: it was not frozen here.
CREATE OR REPLACE FUNCTION order_thaw(p_app text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    DELETE FROM freezes WHERE app = p_app;
    RETURN FOUND;
END
$$;

-- --------------------------------------------------------------------------------------------- for a reader

CREATE OR REPLACE VIEW fleet AS
    SELECT id AS ledger, host_label AS host, joined, heard, bursar, copy_of, copied_up_to, mark_seq,
        greatest(journal_seq - mark_seq, 0) AS lines_behind, clock_ahead_ms, revoked, gone,
        (SELECT count(*) FROM lines WHERE ledger = id AND kind = 'lost') AS losses
    FROM ledgers;

-- A row for each change of a sum: what it adds to which state. Evidence moves an entry from one to the other.
CREATE OR REPLACE VIEW changes AS
    SELECT l.host_label AS host, lines.ledger, started, app, lane, operation, served_by, state, requests,
        billed_micro_usd
    FROM lines JOIN ledgers l ON l.id = lines.ledger
    WHERE kind IN ('outcome', 'crashed', 'withdrawn', 'rollup')
    UNION ALL
    SELECT l.host_label, lines.ledger, started, app, lane, operation, served_by, moved.state, moved.requests,
        moved.billed
    FROM lines JOIN ledgers l ON l.id = lines.ledger
        CROSS JOIN LATERAL (VALUES (was, -1::bigint, 0::numeric), ('reconciled', 1, billed_micro_usd))
            AS moved (state, requests, billed)
    WHERE kind = 'reconciled';

-- A minted key with an amount on two ledgers: the service billed it once.
CREATE OR REPLACE VIEW anomalies AS
    SELECT key_value, count(DISTINCT ledger) AS ledgers, sum(billed_micro_usd) - max(billed_micro_usd)
        AS counted_twice_micro_usd
    FROM lines
    WHERE key_value IS NOT NULL AND billed_micro_usd > 0
    GROUP BY key_value
    HAVING count(DISTINCT ledger) > 1;

CREATE OR REPLACE VIEW orders AS SELECT app, since, ordered_by FROM freezes;

INSERT INTO about (version) VALUES (1) ON CONFLICT (one) DO UPDATE SET version = excluded.version;

-- ------------------------------------------------------------------------------------------------- rights

REVOKE ALL ON ALL TABLES IN SCHEMA bursar_fleet FROM PUBLIC, bursar_node, bursar_operator, bursar_reader;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA bursar_fleet FROM PUBLIC, bursar_node, bursar_operator, bursar_reader;
GRANT USAGE ON SCHEMA bursar_fleet TO bursar_node, bursar_operator, bursar_reader;
GRANT EXECUTE ON FUNCTION greet TO bursar_node, bursar_operator, bursar_reader;
GRANT EXECUTE ON FUNCTION is_open, enrol, hello, chain_at, ship, fork, leave TO bursar_node;
GRANT EXECUTE ON FUNCTION invite, revoke_ledger, order_freeze, order_thaw TO bursar_operator;
GRANT SELECT ON fleet, changes, anomalies, orders TO bursar_reader, bursar_operator;

COMMIT;
