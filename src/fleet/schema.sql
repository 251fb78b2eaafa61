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
-- that a bursar decides: amounts are summed as the lines state them. Of a shared cap no more is leased than its limit,
-- also to callers that come at once.
--
-- Locks are taken in one order: a first line's, that of a journal's copies, a ledger's row, the row of one that it is a copy of, its row of `paces`, a
-- cap's, leases (by id), `about`. A call waits 5 s for one, for a server's process that waits does not notice that its
-- caller is gone. No call needs what another connection has of a session, so a pooler may give each transaction another one.

BEGIN;
-- What is there already is worth no word.
SET LOCAL client_min_messages = warning;

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

-- First of all, as every call of a bursar has it first: a call that had it and waits for `about` would meet this file,
-- which has that and waits for it.
DO $first$
BEGIN
    IF to_regclass('bursar_fleet.ledgers') IS NOT NULL THEN
        LOCK TABLE ledgers;
    END IF;
END
$first$;

CREATE TABLE IF NOT EXISTS about (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    made timestamptz NOT NULL DEFAULT now()
);
-- How often this database was found to be a restored one, and while that is not over (the pause): since when, by which
-- ledger, and what a ledger was heard after to be waited for.
ALTER TABLE about ADD COLUMN IF NOT EXISTS epoch integer NOT NULL DEFAULT 0;
ALTER TABLE about ADD COLUMN IF NOT EXISTS paused_since timestamptz;
ALTER TABLE about ADD COLUMN IF NOT EXISTS paused_by uuid;
ALTER TABLE about ADD COLUMN IF NOT EXISTS awaited_since timestamptz;
-- The run of the database (`incarnation`) in which that was found last; its run of now, and when a ledger was heard last before.
ALTER TABLE about ADD COLUMN IF NOT EXISTS raised_in text;
ALTER TABLE about ADD COLUMN IF NOT EXISTS run text;
ALTER TABLE about ADD COLUMN IF NOT EXISTS heard_before timestamptz;

DO $version$
DECLARE
    found integer := (SELECT version FROM about);
BEGIN
    IF found > 2 THEN
        RAISE EXCEPTION 'the fleet''s schema has version %, and this file is of version 2', found
            USING HINT = 'Take the file of the newest bursar: bursar fleet schema';
    END IF;
END
$version$;

-- Functions are made anew, so that none of an older version stays beside those of this one; those that a view stands
-- on are replaced.
DO $functions$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'bursar_fleet'::regnamespace
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
            AND d.classid = 'pg_rewrite'::regclass) LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END
$functions$;

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
-- The ledger that was let in with a code, of which this one came by copies.
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS family uuid;
-- When the fleet last lacked nothing of it, as far as it said.
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS caught_up timestamptz;
-- The run of the database (`incarnation`) in which it was heard, and in which it presented its leases; from which
-- machine and which start of it; and how far it said then that its lines were taken.
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS heard_in text;
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS held_in text;
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS machine text;
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS mark_stated bigint NOT NULL DEFAULT 0;
-- Of `about.epoch`: up to this one it has presented its leases, so it is not waited for.
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS greeted integer NOT NULL DEFAULT 0;
-- One of those whose journals begin alike, whatever let them in: what they have in common counts once. A family has shares of
-- caps together; a journal's copies may be of several.
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS kin uuid;
-- The hash behind its first line, where this ledger shipped that: no two journals begin alike but copies.
ALTER TABLE ledgers ADD COLUMN IF NOT EXISTS first_chain bytea;
CREATE INDEX IF NOT EXISTS ledgers_first ON ledgers (first_chain);
CREATE INDEX IF NOT EXISTS ledgers_family ON ledgers (family, joined);
CREATE INDEX IF NOT EXISTS ledgers_kin ON ledgers (kin, copied_up_to);
DROP INDEX IF EXISTS ledgers_begun;

WITH RECURSIVE families (id, family) AS (
    SELECT id, id FROM ledgers WHERE copy_of IS NULL
    UNION
    SELECT l.id, f.family FROM ledgers l JOIN families f ON l.copy_of = f.id
)
UPDATE ledgers l SET family = f.family FROM families f WHERE f.id = l.id AND l.family IS NULL;
UPDATE ledgers SET kin = family WHERE kin IS NULL;

-- Apps that may spend nothing on any machine; '' stands for all of them. A bursar hears of it with its next hello.
CREATE TABLE IF NOT EXISTS freezes (
    app text PRIMARY KEY CHECK (length(app) <= 64),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    ordered_by text NOT NULL
);

-- When an app ('': all of them) was thawed last. A bursar ends a freeze by this alone: a database that was restored from
-- before a freeze does not have it either.
CREATE TABLE IF NOT EXISTS thaws (
    app text PRIMARY KEY CHECK (length(app) <= 64),
    at timestamptz NOT NULL
);

-- A cap over all ledgers that obey it.
CREATE TABLE IF NOT EXISTS caps (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9_-]{1,64}$'),
    period text NOT NULL CHECK (period IN ('hour', 'day', 'month')),
    zone text NOT NULL,
    limit_micro_usd bigint NOT NULL CHECK (limit_micro_usd BETWEEN 0 AND 1000000000000000),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    ordered_by text NOT NULL
);

-- What one ledger may have of a cap: the most of a window (NULL: all of it), and how many windows behind that of now it
-- may lease ahead, and the most of each of these. Its copies have it with it (`share_of`). One of a cap that was removed
-- stays, for the cap may come again under its name.
CREATE TABLE IF NOT EXISTS shares (
    ledger uuid NOT NULL REFERENCES ledgers,
    cap text NOT NULL,
    largest_micro_usd bigint CHECK (largest_micro_usd BETWEEN 0 AND 1000000000000000),
    ahead_windows integer NOT NULL CHECK (ahead_windows BETWEEN 0 AND 7),
    ahead_micro_usd bigint NOT NULL CHECK (ahead_micro_usd BETWEEN 0 AND 1000000000000000),
    PRIMARY KEY (ledger, cap)
);
ALTER TABLE shares DROP CONSTRAINT IF EXISTS shares_cap_fkey;

-- What one ledger may spend of a cap's window, in micro-dollars: it grows by grants and shrinks by what is given back.
-- The id is never made twice, not by a restored database either. A cap that was removed leaves its leases. Those of windows
-- that are over stay: they are the sums by cap window, and a price that is learnt late belongs to one of them.
CREATE TABLE IF NOT EXISTS leases (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    ledger uuid NOT NULL REFERENCES ledgers,
    cap text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL CHECK (since < until),
    granted bigint NOT NULL,
    given_back bigint NOT NULL DEFAULT 0 CHECK (given_back BETWEEN 0 AND granted),
    -- The last that was taken; they count up by one.
    give_back_number integer NOT NULL DEFAULT 0,
    -- The last grant, which is answered to the same request again.
    last_request uuid,
    last_amount bigint,
    -- What the lines that name it add up to.
    billed numeric NOT NULL DEFAULT 0,
    -- Of `granted`: what the holder stated, which this database had forgotten.
    put_back bigint NOT NULL DEFAULT 0,
    -- The holder stated another lease of the same window, which this database had forgotten: it does not know this one.
    replaced timestamptz,
    made timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- What counts against the cap, and what may still be spent.
    charged numeric NOT NULL GENERATED ALWAYS AS (greatest(granted - given_back, billed)) STORED,
    open numeric NOT NULL GENERATED ALWAYS AS (greatest(granted - given_back - billed, 0)) STORED
);
CREATE UNIQUE INDEX IF NOT EXISTS leases_one ON leases (ledger, cap, since, until) WHERE replaced IS NULL;
CREATE INDEX IF NOT EXISTS leases_of_cap ON leases (cap, until);
CREATE INDEX IF NOT EXISTS leases_of_ledger ON leases (ledger, until);
CREATE INDEX IF NOT EXISTS leases_until ON leases (until);

-- What a machine would use of the service's ceilings, said by those that use much of them a moment ago. NULL: it has no such
-- ceiling. Advice: it need not survive a crash.
CREATE UNLOGGED TABLE IF NOT EXISTS paces (
    ledger uuid PRIMARY KEY,
    stated timestamptz NOT NULL,
    in_flight integer,
    per_minute integer
);
CREATE INDEX IF NOT EXISTS paces_stated ON paces (stated);

-- A lease as its holder states it.
DO $stated$
BEGIN
    IF to_regtype('bursar_fleet.stated_lease') IS NULL THEN
        CREATE TYPE stated_lease AS (lease uuid, cap text, since timestamptz, until timestamptz, granted bigint,
            given_back bigint, give_back_number integer);
    END IF;
END
$stated$;

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

UPDATE ledgers g SET first_chain = l.chain FROM lines l
    WHERE g.first_chain IS NULL AND g.mark_seq > 0 AND l.ledger = g.id AND l.last_seq = 1 AND l.why IS NULL;
-- An older version of this file let several ledgers ship one first line.
DO $kin$
BEGIN
    LOOP
        UPDATE ledgers g SET kin = first.kin FROM (SELECT a.kin AS was, min(b.kin::text)::uuid AS kin
            FROM ledgers a JOIN ledgers b USING (first_chain) GROUP BY a.kin) AS first
            WHERE g.kin = first.was AND g.kin <> first.kin;
        EXIT WHEN NOT FOUND;
    END LOOP;
END
$kin$;

-- What stays of a month of lines that was detached (`detach_month`). Of the lines the last one of each batch, with which
-- ledgers are compared, and each loss.
CREATE TABLE IF NOT EXISTS kept_lines (
    ledger uuid NOT NULL,
    seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    received timestamptz NOT NULL,
    chain bytea NOT NULL,
    why text,
    PRIMARY KEY (ledger, last_seq)
);

CREATE INDEX IF NOT EXISTS kept_lines_chain ON kept_lines (chain);

-- The sums, by quarters of an hour: every time zone's hours begin with one.
CREATE TABLE IF NOT EXISTS kept_changes (
    month date NOT NULL,
    ledger uuid NOT NULL,
    started timestamptz,
    app text,
    lane text,
    operation text,
    served_by text,
    state text,
    requests numeric NOT NULL,
    billed_micro_usd numeric NOT NULL
);
CREATE INDEX IF NOT EXISTS kept_changes_started ON kept_changes (started);

-- And the days of keys that had an amount on several ledgers (`key_days`).
CREATE TABLE IF NOT EXISTS kept_anomalies (
    key_value text NOT NULL,
    ledgers bigint NOT NULL,
    counted_twice_micro_usd numeric NOT NULL
);

ALTER TABLE kept_anomalies ADD COLUMN IF NOT EXISTS started timestamptz;
ALTER TABLE kept_anomalies ADD COLUMN IF NOT EXISTS began timestamptz;
-- An older version of this file kept one row of a key.
UPDATE kept_anomalies SET began = coalesce(started, '-infinity') WHERE began IS NULL;
ALTER TABLE kept_anomalies DROP CONSTRAINT IF EXISTS kept_anomalies_pkey;
CREATE UNIQUE INDEX IF NOT EXISTS kept_anomalies_day ON kept_anomalies (key_value, began);

-- And the requests that began in that month and did not end in it, until the month of their end is detached, too. `has_ended`:
-- it is the end that was detached, and the beginning is in `lines`, in a month before.
CREATE TABLE IF NOT EXISTS kept_under_way (
    entry uuid NOT NULL,
    started timestamptz NOT NULL,
    ledger uuid NOT NULL,
    has_ended boolean NOT NULL,
    PRIMARY KEY (entry, started)
);

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
        -- Attached, for that waits for no reader. A table that is made as a partition waits for all of them, and every
        -- shipped batch waits behind it.
        EXECUTE format('CREATE TABLE %I (LIKE lines INCLUDING DEFAULTS)', name);
        EXECUTE format('CREATE UNIQUE INDEX ON %I (ledger, last_seq)', name);
        EXECUTE format('CREATE INDEX ON %I USING brin (received) WITH (autosummarize = on)', name);
        -- Sums of a time pass over what began at others: nearly all lines come in that order.
        EXECUTE format('CREATE INDEX ON %I USING brin (started) WITH (autosummarize = on)', name);
        EXECUTE format('CREATE INDEX ON %I (ledger) WHERE kind = %L', name, 'lost');
        EXECUTE format('ALTER TABLE lines ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name,
            month::timestamp AT TIME ZONE 'UTC', (month + interval '1 month')::timestamp AT TIME ZONE 'UTC');
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

-- What stands for the hash of a line, of a range that the journal does not have.
CREATE OR REPLACE FUNCTION range_sha256(p_why text, p_seq bigint, p_last_seq bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT sha256(convert_to(format('%s %s %s', p_why, p_seq, p_last_seq), 'UTF8'))
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
        SELECT found.last_seq, found.chain INTO seq, chain FROM (
            (SELECT l.last_seq, l.chain FROM lines l
                WHERE l.ledger = v_ledger AND l.last_seq <= v_seq ORDER BY l.last_seq DESC LIMIT 1)
            UNION ALL
            (SELECT k.last_seq, k.chain FROM kept_lines k
                WHERE k.ledger = v_ledger AND k.last_seq <= v_seq ORDER BY k.last_seq DESC LIMIT 1)) AS found
            ORDER BY found.last_seq DESC LIMIT 1;
        EXIT WHEN FOUND;
        SELECT * INTO v_parent FROM ledgers WHERE id = v_ledger;
        EXIT WHEN v_parent.copy_of IS NULL;
        v_seq := least(v_seq, v_parent.copied_up_to);
        v_ledger := v_parent.copy_of;
    END LOOP;
END
$$;

-- The last of these lines that a copy of the caller's journal has, and that ledger. NULL: none has any. A running hash is over
-- all lines before it, so it shows what copies have in common. Of months that were taken out the ends of batches are there
-- alone: behind the one that is answered, others may be shared.
CREATE OR REPLACE FUNCTION shared_line(p_ledger uuid, p_seqs bigint[], p_chains bytea[], OUT ledger uuid, OUT seq bigint)
LANGUAGE plpgsql STABLE SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_kin uuid := (SELECT g.kin FROM ledgers g WHERE g.id = p_ledger);
BEGIN
    SELECT k.ledger, k.last_seq INTO shared_line.ledger, shared_line.seq
        FROM kept_lines k JOIN ledgers g ON g.id = k.ledger
        WHERE k.chain = ANY (p_chains) AND k.last_seq = ANY (p_seqs) AND g.kin = v_kin
        ORDER BY k.last_seq DESC LIMIT 1;
    -- Most copies have nothing more in common, and the first line shows it.
    IF seq IS NULL AND EXISTS (SELECT FROM ledgers g
            JOIN lines l ON l.ledger = g.id AND l.last_seq = p_seqs[1] AND l.chain = p_chains[1]
            WHERE g.kin = v_kin AND g.mark_seq >= p_seqs[1] AND coalesce(g.copied_up_to, 0) < p_seqs[1]) THEN
        SELECT l.ledger, l.last_seq INTO shared_line.ledger, shared_line.seq
            FROM unnest(p_seqs, p_chains) AS own (last_seq, chain)
            JOIN ledgers g ON g.kin = v_kin AND g.mark_seq >= own.last_seq
                AND coalesce(g.copied_up_to, 0) < own.last_seq
            JOIN lines l ON l.ledger = g.id AND l.last_seq = own.last_seq AND l.chain = own.chain
            ORDER BY l.last_seq DESC LIMIT 1;
    END IF;
END
$$;

-- Which run of which database this is. A restored database is another one, or was started since, or is another
-- server's, or has its tables in other files: what was heard of a machine before has to be heard again.
CREATE OR REPLACE FUNCTION incarnation() RETURNS text
LANGUAGE sql STABLE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT oid || ' ' || extract(epoch FROM pg_postmaster_start_time()) || ' ' || pg_relation_filenode('ledgers')
    FROM pg_database WHERE datname = current_database()
$$;

-- Each statement has to see what others have done before it was given its locks.
CREATE OR REPLACE FUNCTION must_read_committed() RETURNS void
LANGUAGE plpgsql SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the fleet works in transactions of the level "read committed", not "%"',
            current_setting('transaction_isolation') USING ERRCODE = 'BF010';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION unix_ms(p_at timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT floor(extract(epoch FROM p_at) * 1000)::bigint
$$;

-- The first instant of a day. Where summer time skips midnight, the one after; where midnight comes twice, the first.
CREATE OR REPLACE FUNCTION day_start(p_day timestamp, p_zone text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT CASE (at - interval '1 hour') AT TIME ZONE p_zone WHEN p_day THEN at - interval '1 hour' ELSE at END
    FROM (SELECT p_day AT TIME ZONE p_zone AS at) AS midnight
$$;

-- The window of a cap that a moment is in, or one of those after it. They follow each other without a gap. Hours are
-- whole ones also where summer time is half an hour.
CREATE OR REPLACE FUNCTION window_of(p_period text, p_zone text, p_at timestamptz, p_ahead integer,
    OUT since timestamptz, OUT until timestamptz)
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_shift interval := timestamp '2026-01-01' AT TIME ZONE 'UTC' AT TIME ZONE p_zone - timestamp '2026-01-01';
    v_length interval := '1 ' || p_period;
    v_first timestamp;
BEGIN
    IF p_period = 'hour' THEN
        since := date_trunc('hour', p_at + v_shift, 'UTC') - v_shift + p_ahead * v_length;
        until := since + v_length;
    ELSE
        v_first := date_trunc(p_period, p_at AT TIME ZONE p_zone) + p_ahead * v_length;
        since := day_start(v_first, p_zone);
        until := day_start(v_first + v_length, p_zone);
    END IF;
END
$$;

-- Of the moments at which a key was used, in order, those at which a day of it begins. The service keeps a key for 24 hours from
-- its first use; what comes behind them is another purchase.
CREATE OR REPLACE FUNCTION days_of(p_moments timestamptz[]) RETURNS timestamptz[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_moment timestamptz;
    v_began timestamptz;
    v_days timestamptz[] := '{}';
BEGIN
    FOREACH v_moment IN ARRAY p_moments LOOP
        IF v_began IS NULL OR v_moment >= v_began + interval '24 hours' THEN
            v_began := v_moment;
            v_days := v_days || v_moment;
        END IF;
    END LOOP;
    RETURN v_days;
END
$$;

-- Nothing is granted: the database was restored, and not every ledger has presented its leases yet. One that has not
-- come within a day is not waited for.
CREATE OR REPLACE FUNCTION is_paused() RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT coalesce(paused_since > clock_timestamp() - interval '24 hours', false) FROM about
$$;

-- The database was found to be a restored one, if it was not since this epoch. When a ledger was heard last before its present
-- run, the backup was made.
CREATE OR REPLACE FUNCTION begin_pause(p_ledger uuid, p_epoch integer) RETURNS void
LANGUAGE sql VOLATILE SET search_path = bursar_fleet, pg_temp AS $$
    UPDATE about SET epoch = epoch + 1, paused_since = clock_timestamp(), paused_by = p_ledger, raised_in = incarnation(),
        awaited_since = least(CASE WHEN is_paused() THEN awaited_since END,
            coalesce(heard_before, clock_timestamp()) - interval '24 hours')
        WHERE epoch <= p_epoch
$$;

-- Ends it when it is over. Where another call has the row, a later one does: nobody waits for it.
CREATE OR REPLACE FUNCTION end_pause() RETURNS void
LANGUAGE plpgsql SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    IF (SELECT a.paused_since IS NOT NULL FROM about a) THEN
        UPDATE about a SET paused_since = NULL WHERE a.one IN (SELECT b.one FROM about b FOR UPDATE SKIP LOCKED)
            AND (NOT is_paused() OR NOT EXISTS (SELECT FROM ledgers g
                WHERE g.greeted < a.epoch AND g.heard >= a.awaited_since AND g.revoked IS NULL AND g.gone IS NULL));
    END IF;
END
$$;

-- The ledgers that came by copies of the one that was let in, of which this one came, too.
CREATE OR REPLACE FUNCTION family_of(p_ledger uuid) RETURNS SETOF uuid
LANGUAGE sql VOLATILE ROWS 10 SET search_path = bursar_fleet, pg_temp AS $$
    SELECT g.id FROM ledgers g WHERE g.family = (SELECT o.family FROM ledgers o WHERE o.id = p_ledger)
$$;

-- Whether this database lacks a lease, or something of it, that its holder states: then it was restored from a backup.
CREATE OR REPLACE FUNCTION is_forgotten(p_ledger uuid, p_stated stated_lease) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT p_stated.until > clock_timestamp() AND NOT EXISTS (SELECT FROM leases l WHERE l.id = p_stated.lease
        AND (l.ledger <> p_ledger
            OR (l.granted >= p_stated.granted AND l.give_back_number >= p_stated.give_back_number)))
$$;

-- What a ledger may have of a cap: its own share, or else the smallest of those that it came of by copies, and of their
-- other copies. NULL: no bound, and nothing ahead. What any of them has counts (`family_of`), so copies get no more.
CREATE OR REPLACE FUNCTION share_of(p_ledger uuid, p_cap text) RETURNS shares
LANGUAGE sql VOLATILE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT s.* FROM shares s WHERE s.cap = p_cap AND s.ledger IN (SELECT family_of(p_ledger))
    ORDER BY s.ledger = p_ledger DESC, s.largest_micro_usd, s.ahead_windows, s.ahead_micro_usd LIMIT 1
$$;

-- Puts such a lease back, also above the cap, but not beyond what the ledger may have of it: more was never leased. One
-- that cannot be put back is void, for its holder goes by the answer. A lease keeps its cap and its window: one that is
-- stated with others is none.
CREATE OR REPLACE FUNCTION put_back(p_ledger uuid, p_stated stated_lease) RETURNS void
LANGUAGE plpgsql SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_row leases;
    v_cap caps;
    v_share shares;
    v_ahead integer;
    v_given_back bigint := p_stated.given_back;
    v_most numeric;
    v_net bigint;
BEGIN
    SELECT * INTO v_row FROM leases l WHERE l.id = p_stated.lease;
    IF (v_row.cap, v_row.since, v_row.until) <> (p_stated.cap, p_stated.since, p_stated.until) THEN
        RAISE EXCEPTION 'the lease % is of another cap or window', p_stated.lease USING ERRCODE = 'BF009';
    END IF;
    SELECT * INTO v_cap FROM caps c WHERE c.name = p_stated.cap;
    SELECT * INTO v_share FROM share_of(p_ledger, p_stated.cap);
    v_ahead := (SELECT ahead FROM generate_series(0, 7) AS ahead, window_of(v_cap.period, v_cap.zone, v_now, ahead) AS w
        WHERE (w.since, w.until) = (p_stated.since, p_stated.until));
    v_most := coalesce(v_share.largest_micro_usd, v_cap.limit_micro_usd, 0);
    IF p_stated.since > v_now THEN
        v_most := CASE WHEN v_ahead <= v_share.ahead_windows THEN least(v_most, v_share.ahead_micro_usd) ELSE 0 END;
    END IF;
    v_most := v_most - coalesce((SELECT sum(l.charged) FROM leases l WHERE l.ledger IN (SELECT family_of(p_ledger))
        AND l.cap = p_stated.cap AND l.id <> p_stated.lease
        AND l.since < p_stated.until AND l.until > p_stated.since), 0);
    IF v_row.id IS NOT NULL THEN
        IF p_stated.give_back_number <= v_row.give_back_number THEN
            v_given_back := v_row.given_back;
        END IF;
        v_net := greatest(least(greatest(p_stated.granted, v_row.granted) - v_given_back,
            greatest(v_most, v_row.granted - v_row.given_back)), 0);
        UPDATE leases l SET granted = v_given_back + v_net, given_back = v_given_back,
            give_back_number = greatest(l.give_back_number, p_stated.give_back_number),
            put_back = l.put_back + greatest(v_given_back + v_net - l.granted, 0)
            WHERE l.id = p_stated.lease;
    ELSIF v_ahead IS NOT NULL THEN
        v_net := least(p_stated.granted - p_stated.given_back, v_most);
        IF v_net > 0 THEN
            UPDATE leases l SET replaced = v_now WHERE l.ledger = p_ledger AND l.cap = p_stated.cap
                AND l.since = p_stated.since AND l.until = p_stated.until AND l.replaced IS NULL;
            INSERT INTO leases (id, ledger, cap, since, until, granted, given_back, give_back_number, put_back)
                VALUES (p_stated.lease, p_ledger, p_stated.cap, p_stated.since, p_stated.until,
                    p_stated.given_back + v_net, p_stated.given_back, p_stated.give_back_number, v_net);
        END IF;
    END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------- for a bursar

-- Lets a new ledger in. Repeated by the same ledger with the same code it changes nothing.
CREATE OR REPLACE FUNCTION enrol(p_code text, p_ledger uuid, p_secret bytea, p_host_label text, p_bursar text)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
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
    INSERT INTO ledgers (id, secret_sha256, host_label, bursar, family, kin, greeted)
        VALUES (p_ledger, sha256(p_secret), p_host_label, p_bursar, p_ledger, p_ledger, (SELECT epoch FROM about));
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
-- {app, since_ms, by}, where the app '' is all apps; `thaws`: one of {app, at_ms}.
-- `is_awaited`: nothing is granted, for one, until it has presented its leases. `p_journal_seq`: the last line of its journal;
-- NULL: that is not known, so what it said before stays, also that it left.
CREATE OR REPLACE FUNCTION hello(p_ledger uuid, p_secret bytea, p_host_label text, p_bursar text,
    p_journal_seq bigint, p_wall_ms bigint,
    OUT version integer, OUT mark_seq bigint, OUT mark_chain bytea, OUT clock_ahead_ms bigint, OUT freezes text,
    OUT is_revoked boolean, OUT is_awaited boolean, OUT thaws text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers;
BEGIN
    -- One that was shut out still hears what is ordered: a freeze is for every machine that has the key.
    SELECT * INTO known FROM ledgers WHERE id = p_ledger AND secret_sha256 = sha256(p_secret) FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this fleet does not know the ledger' USING ERRCODE = 'BF001';
    END IF;
    is_revoked := known.revoked IS NOT NULL;
    IF (SELECT a.run IS DISTINCT FROM incarnation() FROM about a) THEN
        UPDATE about a SET run = incarnation(), heard_before = (SELECT max(g.heard) FROM ledgers g
                WHERE g.heard_in <> incarnation())
            WHERE a.run IS DISTINCT FROM incarnation();
    END IF;
    clock_ahead_ms := p_wall_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    UPDATE ledgers SET heard = clock_timestamp(), host_label = p_host_label, bursar = p_bursar,
        journal_seq = greatest(coalesce(p_journal_seq, known.journal_seq), 0), clock_ahead_ms = hello.clock_ahead_ms,
        gone = CASE WHEN p_journal_seq IS NULL THEN known.gone END, heard_in = incarnation(),
        caught_up = CASE WHEN p_journal_seq <= known.mark_seq THEN clock_timestamp() ELSE caught_up END
        WHERE id = p_ledger;
    PERFORM end_pause();
    is_awaited := is_paused() AND (SELECT g.greeted < a.epoch FROM ledgers g, about a WHERE g.id = p_ledger);
    version := (SELECT about.version FROM about);
    mark_seq := known.mark_seq;
    mark_chain := known.mark_chain;
    freezes := (SELECT coalesce(json_agg(json_build_object('app', f.app,
        'since_ms', unix_ms(f.since), 'by', f.ordered_by) ORDER BY f.app), '[]')::text
        FROM freezes AS f);
    thaws := (SELECT coalesce(json_agg(json_build_object('app', t.app, 'at_ms', unix_ms(t.at))), '[]')::text
        FROM thaws AS t);
END
$$;

-- Says that the caller's lines were acknowledged up to this one once. Where fewer are here, the database was restored: that
-- is found once in each of its runs, however many have such lines.
CREATE OR REPLACE FUNCTION acknowledged(p_ledger uuid, p_secret bytea, p_mark_seq bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
BEGIN
    PERFORM must_read_committed();
    IF p_mark_seq > greatest(known.mark_seq, known.mark_stated) THEN
        UPDATE ledgers SET mark_stated = p_mark_seq WHERE id = p_ledger;
        PERFORM begin_pause(p_ledger, a.epoch) FROM about a WHERE a.raised_in IS DISTINCT FROM incarnation();
    END IF;
END
$$;

-- The last line at or before a number, and the running hash behind it. NULL: there is none.
CREATE OR REPLACE FUNCTION chain_at(p_ledger uuid, p_secret bytea, p_seq bigint, OUT seq bigint, OUT chain bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM caller(p_ledger, p_secret);
    SELECT l.seq, l.chain INTO chain_at.seq, chain_at.chain FROM line_at(p_ledger, p_seq) AS l;
END
$$;

-- The last of these lines that a copy of the caller's journal has (`shared_line`). NULL: none has any. At most a batch is asked
-- for. No row is locked: the ledger whose name the caller still has may ship meanwhile.
CREATE OR REPLACE FUNCTION family_has(p_ledger uuid, p_secret bytea, p_seqs bigint[], p_chains bytea[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledgers WHERE id = p_ledger AND secret_sha256 = sha256(p_secret) AND revoked IS NULL) THEN
        -- It says which of the two it is.
        PERFORM caller(p_ledger, p_secret);
    ELSIF array_length(p_seqs, 1) > 500 OR array_length(p_chains, 1) > 500 THEN
        RAISE EXCEPTION 'more lines than a batch has' USING ERRCODE = 'BF009';
    END IF;
    RETURN (SELECT shared.seq FROM shared_line(p_ledger, p_seqs, p_chains) AS shared);
END
$$;

-- Takes lines that follow the ledger's mark. All of it is one transaction; a repeat is answered as the first was.
-- Of a range that the journal has lost, or that was compacted before it joined, the text is why and there is no hash.
-- verdict: 'taken'; 'behind': the fleet has less than the caller thinks, and the mark says how much; 'fork': what
-- the caller sends is not what is here under these numbers, or is here under another copy's name.
CREATE OR REPLACE FUNCTION ship(p_ledger uuid, p_secret bytea, p_after_seq bigint, p_after_chain bytea,
    p_seqs bigint[], p_last_seqs bigint[], p_lines text[], p_sha256s bytea[], p_journal_seq bigint,
    OUT verdict text, OUT mark_seq bigint, OUT mark_chain bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers := (SELECT g FROM ledgers g WHERE g.id = p_ledger AND g.secret_sha256 = sha256(p_secret));
    v_first_chain bytea := CASE WHEN known.mark_seq = 0 AND p_seqs[1] = 1 THEN next_chain('', p_sha256s[1]) END;
    v_kin uuid;
    is_empty boolean;
    v_at timestamptz;
    v_seq bigint := p_after_seq;
    v_chain bytea := p_after_chain;
    v_first_of ledgers;
    chains bytea[] := '{}';
    v_first integer := 1;
    shared record;
    said jsonb;
    is_lost boolean;
    billed numeric;
    counted bigint;
    spent record;
    v_leases uuid[] := '{}';
    v_amounts numeric[] := '{}';
BEGIN
    -- A journal that begins with another ledger's line is a copy of that one's, whatever code let it in: it ships anew as such.
    -- Two may come with theirs at the same moment.
    IF v_first_chain IS NOT NULL THEN
        PERFORM must_read_committed();
        PERFORM pg_advisory_xact_lock(hashtextextended('bursar_fleet first ' || encode(v_first_chain, 'hex'), 0));
        SELECT * INTO v_first_of FROM ledgers g WHERE g.first_chain = v_first_chain AND g.kin <> known.kin
            ORDER BY g.joined LIMIT 1;
        IF FOUND THEN
            known := caller(p_ledger, p_secret);
            IF known.mark_seq = 0 THEN
                UPDATE ledgers l SET copy_of = coalesce(l.copy_of, v_first_of.id), copied_up_to = 0, kin = v_first_of.kin
                    WHERE l.id = p_ledger;
                verdict := 'behind';
                mark_seq := 0;
                mark_chain := '';
                RETURN;
            END IF;
        END IF;
        known := (SELECT g FROM ledgers g WHERE g.id = p_ledger);
    END IF;
    -- Copies may have compared themselves before any of them shipped. So a copy that has shipped nothing looks again, and no
    -- other of its journal ships meanwhile. A copy that has shipped stays one that has: its row is read without a lock.
    is_empty := known.copy_of IS NOT NULL AND known.mark_seq = known.copied_up_to;
    v_kin := known.kin;
    IF is_empty THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('bursar_fleet kin ' || v_kin, 0));
    ELSIF v_kin IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('bursar_fleet kin ' || v_kin, 0));
    END IF;
    known := caller(p_ledger, p_secret);
    IF known.kin <> v_kin THEN
        verdict := 'behind';
        mark_seq := known.mark_seq;
        mark_chain := known.mark_chain;
        RETURN;
    END IF;
    is_empty := known.copy_of IS NOT NULL AND known.mark_seq = known.copied_up_to;
    v_at := clock_timestamp();
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
    -- The line behind the caller's last one can be another's where the caller has shipped none, or that one begins there.
    IF is_empty OR EXISTS (SELECT FROM ledgers g
        WHERE g.kin = known.kin AND g.id <> p_ledger AND g.copied_up_to = known.mark_seq) THEN
        PERFORM must_read_committed();
        FOR i IN 1 .. coalesce(array_length(p_seqs, 1), 0) LOOP
            v_chain := next_chain(v_chain, coalesce(p_sha256s[i],
                range_sha256(p_lines[i], p_seqs[i], p_last_seqs[i])));
            chains := chains || v_chain;
            IF p_last_seqs[i] <= known.mark_seq THEN
                v_first := i + 1;
            END IF;
        END LOOP;
        v_chain := p_after_chain;
        SELECT * INTO shared FROM shared_line(p_ledger, p_last_seqs[v_first:], chains[v_first:]);
        IF shared.seq IS NOT NULL THEN
            -- One that has shipped lines of its own, or whose copy has these, needs another name for those behind them.
            IF NOT is_empty OR (v_first > 1 AND chains[v_first - 1] <> known.mark_chain)
                OR p_ledger IN (WITH RECURSIVE names (id) AS (
                    SELECT shared.ledger UNION SELECT g.copy_of FROM ledgers g JOIN names n ON g.id = n.id
                ) SELECT n.id FROM names n WHERE n.id IS NOT NULL) THEN
                verdict := 'fork';
                RETURN;
            END IF;
            -- A copy that has shipped nothing begins behind them.
            known.mark_seq := shared.seq;
            known.mark_chain := chains[array_position(p_last_seqs, shared.seq)];
            UPDATE ledgers l SET copy_of = shared.ledger, copied_up_to = known.mark_seq, mark_seq = known.mark_seq,
                mark_chain = known.mark_chain WHERE l.id = p_ledger;
            mark_seq := known.mark_seq;
            mark_chain := known.mark_chain;
            -- Behind it, others may be shared.
            IF mark_seq < p_last_seqs[array_length(p_last_seqs, 1)] THEN
                verdict := 'taken';
                RETURN;
            END IF;
        END IF;
    END IF;
    PERFORM month_partition(date_trunc('month', v_at AT TIME ZONE 'UTC')::date);
    FOR i IN 1 .. coalesce(array_length(p_seqs, 1), 0) LOOP
        is_lost := p_sha256s[i] IS NULL;
        IF p_seqs[i] <> v_seq + 1 OR p_last_seqs[i] < p_seqs[i] OR (NOT is_lost AND p_last_seqs[i] <> p_seqs[i]) THEN
            RAISE EXCEPTION 'line % does not follow line %', p_seqs[i], v_seq USING ERRCODE = 'BF005';
        END IF;
        -- Of a copy, the ledger that it was has them.
        IF is_lost AND p_lines[i] = 'compacted' AND (v_seq > 0 OR known.copy_of IS NOT NULL) THEN
            RAISE EXCEPTION 'lines from % on were compacted, and the fleet has lines before them', p_seqs[i]
                USING ERRCODE = 'BF006';
        END IF;
        v_seq := p_last_seqs[i];
        v_chain := next_chain(v_chain, coalesce(p_sha256s[i], range_sha256(p_lines[i], p_seqs[i], p_last_seqs[i])));
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
        -- `9.0` is 9, and sums are read as integers.
        billed := trunc(billed);
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
        IF billed > 0 AND said ? 'leases' THEN
            IF jsonb_typeof(said -> 'leases') <> 'array' OR jsonb_array_length(said -> 'leases') > 64 THEN
                RAISE EXCEPTION 'line % names leases that are none', v_seq USING ERRCODE = 'BF007';
            END IF;
            FOR spent IN SELECT DISTINCT named::uuid AS lease FROM jsonb_array_elements_text(said -> 'leases') AS named
            LOOP
                v_leases := v_leases || spent.lease;
                v_amounts := v_amounts || billed;
            END LOOP;
        END IF;
    END LOOP;
    IF v_seq < known.mark_seq AND v_seq > p_after_seq AND (v_seq, v_chain) IS DISTINCT FROM
        (SELECT (l.seq, l.chain) FROM line_at(p_ledger, v_seq) AS l) THEN
        verdict := 'fork';
        RETURN;
    END IF;
    -- A copy that has not noticed yet that it is one spends the leases of the ledger that it was.
    FOR spent IN SELECT s.lease, sum(s.amount) AS amount FROM unnest(v_leases, v_amounts) AS s (lease, amount)
        GROUP BY s.lease ORDER BY s.lease LOOP
        UPDATE leases l SET billed = l.billed + spent.amount WHERE l.id = spent.lease
            AND l.ledger IN (WITH RECURSIVE names (id) AS (
                SELECT p_ledger UNION SELECT g.copy_of FROM ledgers g JOIN names n ON g.id = n.id
            ) SELECT n.id FROM names n);
    END LOOP;
    verdict := 'taken';
    IF v_seq > known.mark_seq THEN
        mark_seq := v_seq;
        mark_chain := v_chain;
    END IF;
    UPDATE ledgers SET mark_seq = ship.mark_seq, mark_chain = ship.mark_chain, heard = v_at,
        first_chain = CASE WHEN known.mark_seq = 0 THEN v_first_chain ELSE first_chain END,
        journal_seq = greatest(p_journal_seq, ship.mark_seq),
        caught_up = CASE WHEN p_journal_seq <= ship.mark_seq THEN v_at ELSE caught_up END
        WHERE id = p_ledger;
END
$$;

-- A copy (a clone, a restored directory) takes an id of its own. What it has in common with the ledger that it was, or
-- with another copy of that, stays that one's. Repeated it changes nothing. A thousand a day may come of one that was let in.
CREATE OR REPLACE FUNCTION fork(p_ledger uuid, p_secret bytea, p_seq bigint, p_chain bytea,
    p_new_ledger uuid, p_new_secret bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
    v_parent uuid := p_ledger;
BEGIN
    IF octet_length(p_new_secret) <> 32 THEN
        RAISE EXCEPTION 'a ledger''s secret has 32 bytes' USING ERRCODE = 'BF009';
    END IF;
    IF EXISTS (SELECT FROM ledgers WHERE id = p_new_ledger AND secret_sha256 = sha256(p_new_secret)
        AND family = known.family AND copied_up_to >= p_seq) THEN
        RETURN;
    END IF;
    IF p_seq <> 0 AND (p_seq, p_chain) IS DISTINCT FROM
        (SELECT (l.seq, l.chain) FROM line_at(p_ledger, p_seq) AS l) THEN
        v_parent := (SELECT shared.ledger FROM shared_line(p_ledger, ARRAY[p_seq], ARRAY[p_chain]) AS shared);
        IF v_parent IS NULL THEN
            RAISE EXCEPTION 'line % is not common to both', p_seq USING ERRCODE = 'BF005';
        END IF;
    END IF;
    IF (SELECT count(*) FROM ledgers WHERE family = known.family AND copy_of IS NOT NULL
        AND joined > now() - interval '24 hours') >= 1000 THEN
        RAISE EXCEPTION '1000 copies of one ledger have taken a name within 24 hours' USING ERRCODE = 'BF008';
    END IF;
    INSERT INTO ledgers (id, secret_sha256, host_label, bursar, copy_of, copied_up_to, mark_seq, mark_chain,
        journal_seq, family, kin, greeted)
        VALUES (p_new_ledger, sha256(p_new_secret), known.host_label, known.bursar, v_parent, p_seq, p_seq,
            p_chain, p_seq, known.family, known.kin, (SELECT epoch FROM about));
    -- The journal's end was the copy's. The ledger that keeps the name states its own with its next hello.
    UPDATE ledgers l SET journal_seq = l.mark_seq WHERE l.id = p_ledger AND l.journal_seq > l.mark_seq;
END
$$;

-- From here on this session is sent a notification when an order changes. It carries nothing and everybody may send
-- one: it only means "say hello". `p_session` is the parameter bursar.session that the caller put into the start of its
-- session. A pooler that gives each transaction another session cannot have it; there nothing is left behind, and
-- nothing is missed either, for a bursar says hello every half a minute anyway.
-- 'listening'; 'pooled': this is not the session that was begun; 'full': half of the server's places are taken, and
-- the others are for those who ship.
CREATE OR REPLACE FUNCTION listen_here(p_session text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    IF p_session IS NULL OR p_session IS DISTINCT FROM current_setting('bursar.session', true) THEN
        RETURN 'pooled';
    ELSIF (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL) * 2
        > current_setting('max_connections')::integer THEN
        RETURN 'full';
    END IF;
    LISTEN bursar_fleet;
    RETURN 'listening';
END
$$;

-- The ledger stops shipping for good. What it shipped stays counted. What it leased of windows that have not begun, of which
-- it has spent nothing, comes back.
CREATE OR REPLACE FUNCTION leave(p_ledger uuid, p_secret bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
    PERFORM caller(p_ledger, p_secret);
    UPDATE ledgers SET gone = clock_timestamp() WHERE id = p_ledger;
    PERFORM FROM leases l WHERE l.ledger = p_ledger AND l.since > clock_timestamp() ORDER BY l.id FOR UPDATE;
    UPDATE leases l SET given_back = l.granted, give_back_number = l.give_back_number + 1
        WHERE l.ledger = p_ledger AND l.since > clock_timestamp() AND l.given_back < l.granted;
END
$$;

-- Presents the leases that the caller has, and asks for what it has and may have. From here on its leases are those of
-- this machine and this start of it. `p_mark_seq`: the highest line of this ledger, by this name, that was ever
-- acknowledged. `p_leases`: a JSON array of {lease, cap, since_ms, until_ms, granted_micro_usd, given_back_micro_usd,
-- give_back_number}. What is stated that this database does not know shows that it was restored: nothing is granted
-- until every ledger has presented its leases. The answer's leases are all there are: another one is void.
CREATE OR REPLACE FUNCTION hold(p_ledger uuid, p_secret bytea, p_machine text, p_mark_seq bigint, p_leases text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
    v_in text := incarnation();
    v_now timestamptz;
    v_stated jsonb := p_leases::jsonb;
    stated stated_lease;
    v_leases stated_lease[];
    v_forgot boolean;
BEGIN
    PERFORM must_read_committed();
    IF p_machine IS NULL OR length(p_machine) NOT BETWEEN 1 AND 200 OR p_mark_seq IS NULL OR p_mark_seq < 0
        OR v_stated IS NULL OR jsonb_typeof(v_stated) <> 'array' OR jsonb_array_length(v_stated) > 1000 THEN
        RAISE EXCEPTION 'the machine, the mark or the leases are none' USING ERRCODE = 'BF009';
    END IF;
    v_leases := ARRAY(SELECT (s.lease, s.cap, to_timestamp(s.since_ms / 1000.0), to_timestamp(s.until_ms / 1000.0),
            s.granted_micro_usd, s.given_back_micro_usd, s.give_back_number)::stated_lease
        FROM jsonb_to_recordset(v_stated) AS s (lease uuid, cap text, since_ms bigint, until_ms bigint,
            granted_micro_usd bigint, given_back_micro_usd bigint, give_back_number integer)
        ORDER BY s.cap, s.lease);
    IF EXISTS (SELECT FROM unnest(v_leases) AS s WHERE (s.lease IS NOT NULL AND s.cap IS NOT NULL
        AND s.since < s.until AND s.granted BETWEEN 0 AND 4000000000000000000
        AND s.given_back BETWEEN 0 AND s.granted AND s.give_back_number >= 0) IS NOT TRUE) THEN
        RAISE EXCEPTION 'a lease that is stated is none' USING ERRCODE = 'BF009';
    END IF;
    v_forgot := p_mark_seq > greatest(known.mark_seq, known.mark_stated);
    IF EXISTS (SELECT FROM unnest(v_leases) AS s WHERE is_forgotten(p_ledger, s)) THEN
        v_forgot := true;
        PERFORM FROM caps c WHERE c.name IN (SELECT s.cap FROM unnest(v_leases) AS s) ORDER BY c.name FOR NO KEY UPDATE;
        PERFORM FROM leases l WHERE l.ledger = p_ledger AND l.until > clock_timestamp() ORDER BY l.id FOR UPDATE;
        FOREACH stated IN ARRAY v_leases LOOP
            IF is_forgotten(p_ledger, stated) THEN
                PERFORM put_back(p_ledger, stated);
            END IF;
        END LOOP;
    END IF;
    v_now := clock_timestamp();
    -- Once for each restored database: who has not presented its leases since belongs to the same event.
    IF v_forgot THEN
        PERFORM begin_pause(p_ledger, known.greeted);
    END IF;
    UPDATE ledgers g SET greeted = (SELECT a.epoch FROM about a), machine = p_machine, held_in = v_in,
        mark_stated = greatest(g.mark_stated, p_mark_seq), heard = v_now
        WHERE g.id = p_ledger;
    PERFORM end_pause();
    RETURN json_build_object(
        'paused', is_paused(),
        'caps', (SELECT coalesce(json_agg(json_build_object('cap', c.name, 'period', c.period, 'zone', c.zone,
            'limit_micro_usd', c.limit_micro_usd,
            'charged_micro_usd', (SELECT coalesce(sum(l.charged), 0) FROM leases l
                WHERE l.cap = c.name AND l.since < w.until AND l.until > w.since),
            'since_ms', unix_ms(w.since), 'until_ms', unix_ms(w.until),
            'largest_micro_usd', s.largest_micro_usd, 'ahead_windows', coalesce(s.ahead_windows, 0),
            'ahead_micro_usd', coalesce(s.ahead_micro_usd, 0)) ORDER BY c.name), '[]')
            FROM caps c CROSS JOIN LATERAL window_of(c.period, c.zone, v_now, 0) AS w
                LEFT JOIN LATERAL share_of(p_ledger, c.name) AS s ON true),
        'leases', (SELECT coalesce(json_agg(json_build_object('lease', l.id, 'cap', l.cap,
            'since_ms', unix_ms(l.since), 'until_ms', unix_ms(l.until),
            'begins_in_ms', greatest(ceil(extract(epoch FROM l.since - v_now) * 1000), 0)::bigint,
            'ends_in_ms', floor(extract(epoch FROM l.until - v_now) * 1000)::bigint,
            'granted_micro_usd', l.granted, 'given_back_micro_usd', l.given_back,
            'give_back_number', l.give_back_number, 'billed_micro_usd', l.billed) ORDER BY l.cap, l.since, l.until),
            '[]')
            FROM leases l WHERE l.ledger = p_ledger AND l.until > v_now AND l.replaced IS NULL))::text;
END
$$;

-- Asks for more of a cap: of the window of now, or of one of those after it. The same request is answered as before.
-- verdict: 'granted'; 'empty': nothing is left (may_return: others, who were heard in the last five minutes, have an
-- open part); 'no_cap'; 'paused'; 'share': this ledger, with its copies, has what it may have; 'elsewhere': `hold` comes first, for
-- this run of the database, this machine and this start of it.
CREATE OR REPLACE FUNCTION lease(p_ledger uuid, p_secret bytea, p_machine text, p_cap text, p_request uuid,
    p_want bigint, p_least bigint, p_ahead integer,
    OUT verdict text, OUT lease uuid, OUT since_ms bigint, OUT until_ms bigint, OUT begins_in_ms bigint,
    OUT ends_in_ms bigint, OUT amount bigint, OUT granted bigint, OUT given_back bigint, OUT give_back_number integer,
    OUT left_micro_usd bigint, OUT may_return boolean, OUT limit_micro_usd bigint, OUT billed numeric)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
    v_now timestamptz;
    v_cap caps;
    v_share shares;
    v_window record;
    v_row leases;
    v_sums record;
    v_left numeric;
    v_room numeric;
    v_others bigint;
BEGIN
    PERFORM must_read_committed();
    IF (p_request IS NOT NULL AND p_want > 0 AND p_least >= 0 AND p_ahead >= 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'the request, the amounts or the window are none' USING ERRCODE = 'BF009';
    END IF;
    may_return := false;
    SELECT * INTO v_cap FROM caps c WHERE c.name = p_cap FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        verdict := 'no_cap';
        RETURN;
    END IF;
    limit_micro_usd := v_cap.limit_micro_usd;
    IF known.machine IS DISTINCT FROM p_machine OR known.held_in IS DISTINCT FROM incarnation() THEN
        verdict := 'elsewhere';
        RETURN;
    END IF;
    SELECT * INTO v_share FROM share_of(p_ledger, p_cap);
    IF p_ahead > coalesce(v_share.ahead_windows, 0) THEN
        verdict := 'share';
        RETURN;
    END IF;
    -- Not before the cap is locked: the wait for it may have lasted into the next window.
    v_now := clock_timestamp();
    SELECT w.since, w.until INTO v_window FROM window_of(v_cap.period, v_cap.zone, v_now, p_ahead) AS w;
    SELECT * INTO v_row FROM leases l WHERE l.ledger = p_ledger AND l.cap = p_cap AND l.since = v_window.since
        AND l.until = v_window.until AND l.replaced IS NULL FOR UPDATE;
    -- By time, not by window: the cap may have had others today, by another period or zone.
    SELECT coalesce(sum(l.charged), 0) AS charged, coalesce(sum(l.charged)
            FILTER (WHERE l.ledger IN (SELECT family_of(p_ledger))), 0) AS own, count(*) AS leases INTO v_sums
        FROM leases l WHERE l.cap = p_cap AND l.since < v_window.until AND l.until > v_window.since;
    v_left := v_cap.limit_micro_usd - v_sums.charged;
    IF v_row.last_request = p_request THEN
        amount := v_row.last_amount;
    ELSIF is_paused() THEN
        verdict := 'paused';
        RETURN;
    ELSE
        v_room := least(v_share.largest_micro_usd, CASE WHEN p_ahead > 0 THEN v_share.ahead_micro_usd END) - v_sums.own;
        IF v_room <= 0 THEN
            verdict := 'share';
            RETURN;
        ELSIF v_left <= 0 THEN
            verdict := 'empty';
            left_micro_usd := 0;
            may_return := EXISTS (SELECT FROM leases l JOIN ledgers g ON g.id = l.ledger
                WHERE l.cap = p_cap AND l.since < v_window.until AND l.until > v_window.since AND l.ledger <> p_ledger
                    AND l.open > 0 AND l.replaced IS NULL AND g.revoked IS NULL AND g.gone IS NULL
                    AND g.heard > v_now - interval '5 minutes');
            RETURN;
        END IF;
        amount := least(p_want, v_room);
        -- Where there is enough for all that have any, it is the same whoever of them is there.
        IF amount > trunc(v_left / (v_sums.leases + 1)) THEN
            SELECT count(DISTINCT l.ledger) INTO v_others FROM leases l JOIN ledgers g ON g.id = l.ledger
                WHERE l.cap = p_cap AND l.since < v_window.until AND l.until > v_window.since AND l.ledger <> p_ledger
                    AND g.revoked IS NULL AND g.gone IS NULL AND g.heard > v_now - interval '5 minutes';
            amount := least(amount, trunc(v_left / (v_others + 1)));
        END IF;
        IF amount < p_least THEN
            amount := least(p_least, v_left, v_room);
        END IF;
        v_left := v_left - amount;
        IF v_row.id IS NULL THEN
            INSERT INTO leases AS l (ledger, cap, since, until, granted, last_request, last_amount)
                VALUES (p_ledger, p_cap, v_window.since, v_window.until, amount, p_request, amount)
                RETURNING * INTO v_row;
        ELSE
            UPDATE leases l SET granted = l.granted + lease.amount, last_request = p_request,
                last_amount = lease.amount
                WHERE l.id = v_row.id RETURNING * INTO v_row;
        END IF;
    END IF;
    verdict := 'granted';
    lease := v_row.id;
    since_ms := unix_ms(v_row.since);
    until_ms := unix_ms(v_row.until);
    begins_in_ms := greatest(ceil(extract(epoch FROM v_row.since - v_now) * 1000), 0);
    ends_in_ms := floor(extract(epoch FROM v_row.until - v_now) * 1000);
    granted := v_row.granted;
    given_back := v_row.given_back;
    give_back_number := v_row.give_back_number;
    billed := v_row.billed;
    left_micro_usd := greatest(v_left, 0);
END
$$;

-- Gives a part of a lease back. `p_number` counts up by one from 1; `p_up_to_seq`: all lines that spend of the lease are
-- at or before it. verdict: 'taken'; 'known': this number was taken before; 'behind': these lines are not here
-- yet; 'too_much': more than is open, or a number that does not follow; 'unknown': the caller has no such lease.
CREATE OR REPLACE FUNCTION give_back(p_ledger uuid, p_secret bytea, p_lease uuid, p_number integer, p_amount bigint,
    p_up_to_seq bigint,
    OUT verdict text, OUT granted bigint, OUT given_back bigint, OUT give_back_number integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    known ledgers := caller(p_ledger, p_secret);
    v_row leases;
BEGIN
    PERFORM must_read_committed();
    IF (p_number > 0 AND p_amount >= 0 AND p_up_to_seq >= 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'the number or the amount is none' USING ERRCODE = 'BF009';
    END IF;
    SELECT * INTO v_row FROM leases l WHERE l.id = p_lease AND l.ledger = p_ledger AND l.replaced IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        verdict := 'unknown';
        RETURN;
    ELSIF p_number <= v_row.give_back_number THEN
        verdict := 'known';
    ELSIF known.mark_seq < p_up_to_seq THEN
        verdict := 'behind';
    ELSIF p_number > v_row.give_back_number + 1 OR p_amount > v_row.open THEN
        verdict := 'too_much';
    ELSE
        UPDATE leases l SET given_back = l.given_back + p_amount, give_back_number = p_number
            WHERE l.id = p_lease RETURNING * INTO v_row;
        verdict := 'taken';
    END IF;
    granted := v_row.granted;
    given_back := v_row.given_back;
    give_back_number := v_row.give_back_number;
END
$$;

-- How much of a limit each of several may have, so that none gets less than it wants while another has more. Rounded down:
-- `pace` shares out the rest. At least 1; NULL where there is no limit.
CREATE OR REPLACE FUNCTION level(p_wanted integer[], p_limit integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT CASE WHEN p_limit IS NOT NULL THEN greatest(max((p_limit - smaller) / others), 1)::integer END
    FROM (SELECT coalesce(sum(w) OVER (ORDER BY w, n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS smaller,
            count(*) OVER () - row_number() OVER (ORDER BY w, n) + 1 AS others
        FROM unnest(p_wanted) WITH ORDINALITY AS wanted (w, n)) AS steps
$$;

-- The part of one of them, counted from 1: of what is left over by rounding, the first that want more get 1 more.
CREATE OR REPLACE FUNCTION part(p_wanted integer[], p_limit integer, p_one bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = bursar_fleet, pg_temp AS $$
    SELECT l.level + CASE WHEN p_wanted[p_one::integer] > l.level
            AND (SELECT count(*) FROM unnest(p_wanted) WITH ORDINALITY AS w (wanted, n) WHERE wanted > l.level AND n < p_one)
                < p_limit - (SELECT sum(least(wanted, l.level)) FROM unnest(p_wanted) AS wanted)
        THEN 1 ELSE 0 END
    FROM (SELECT level(p_wanted, p_limit) AS level) AS l
$$;

-- The caller's part of the service's ceilings (the last two), after what it would use of them: requests at once, and a
-- minute. `again_s`: when it is to ask again. Advice: what a caller states changes the others' parts, and no money.
-- Where a thousand or more are busy, each gets 1.
CREATE OR REPLACE FUNCTION pace(p_ledger uuid, p_secret bytea, p_in_flight integer, p_per_minute integer,
    p_in_flight_max integer, p_per_minute_max integer,
    OUT in_flight integer, OUT per_minute integer, OUT again_s integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    v_now timestamptz;
    v_in_flight integer[];
    v_per_minute integer[];
    v_one bigint;
    v_count bigint;
BEGIN
    PERFORM caller(p_ledger, p_secret);
    v_now := clock_timestamp();
    INSERT INTO paces AS p (ledger, stated, in_flight, per_minute)
        VALUES (p_ledger, v_now, p_in_flight, p_per_minute)
        ON CONFLICT (ledger) DO UPDATE SET stated = excluded.stated, in_flight = excluded.in_flight,
            per_minute = excluded.per_minute;
    SELECT count(*), array_agg(least(greatest(coalesce(s.in_flight, 0), 0), p_in_flight_max) ORDER BY s.ledger),
        array_agg(least(greatest(coalesce(s.per_minute, 0), 0), p_per_minute_max) ORDER BY s.ledger),
        count(*) FILTER (WHERE s.ledger <= p_ledger)
        INTO v_count, v_in_flight, v_per_minute, v_one
        -- A clock that was set back leaves rows of the future. Others state theirs at this moment.
        -- The service counts what a machine that is gone sent in the minute before.
        FROM (SELECT p.ledger, p.per_minute,
                CASE WHEN p.stated > v_now - interval '40 s' THEN p.in_flight ELSE 0 END AS in_flight
            FROM paces p
            WHERE p.stated > v_now - interval '61 s' AND p.stated < v_now + interval '5 s'
            ORDER BY p.stated DESC LIMIT 1000) AS s;
    again_s := CASE WHEN v_count > 200 THEN 30 ELSE 5 END;
    IF v_count >= 1000 THEN
        in_flight := CASE WHEN p_in_flight_max IS NOT NULL THEN 1 END;
        per_minute := CASE WHEN p_per_minute_max IS NOT NULL THEN 1 END;
    ELSE
        in_flight := part(v_in_flight, p_in_flight_max, v_one);
        per_minute := part(v_per_minute, p_per_minute_max, v_one);
    END IF;
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

-- Refuses all later calls of a ledger, and of all that came of it by copies; their lines stay counted. False: there is
-- none of this id.
CREATE OR REPLACE FUNCTION revoke_ledger(p_ledger uuid, p_copies boolean DEFAULT false) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    -- A copy that was taking a name is there at the next look.
    LOOP
        UPDATE ledgers SET revoked = clock_timestamp() WHERE revoked IS NULL AND id IN (
            WITH RECURSIVE named (id) AS (
                SELECT p_ledger UNION SELECT g.id FROM ledgers g JOIN named n ON g.copy_of = n.id WHERE p_copies
            ) SELECT n.id FROM named n);
        EXIT WHEN NOT FOUND;
    END LOOP;
    RETURN EXISTS (SELECT FROM ledgers WHERE id = p_ledger);
END
$$;

-- Calls those who listen. Every role may fill the server's queue of notifications; an order must not fail for that.
CREATE OR REPLACE FUNCTION call_listeners() RETURNS void
LANGUAGE plpgsql SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    IF pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify('bursar_fleet', '');
    END IF;
END
$$;

-- Stops an app, or all ('') of them, on every machine. What is frozen already stays so since when it was: false.
CREATE OR REPLACE FUNCTION order_freeze(p_app text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    is_new boolean;
BEGIN
    -- Behind its last thaw, whatever the clock says now.
    INSERT INTO freezes (app, since, ordered_by)
        SELECT p_app, greatest(clock_timestamp(), max(t.at) + interval '1 millisecond'), session_user
            FROM thaws AS t WHERE t.app = p_app
        ON CONFLICT (app) DO NOTHING;
    is_new := FOUND;
    PERFORM call_listeners();
    RETURN is_new;
END
$$;

-- Ends it, also where this database does not have it and a bursar does. False: it was not frozen here.
CREATE OR REPLACE FUNCTION order_thaw(p_app text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    frozen_since timestamptz;
    was_there boolean;
BEGIN
    DELETE FROM freezes WHERE app = p_app RETURNING since INTO frozen_since;
    was_there := FOUND;
    INSERT INTO thaws AS t (app, at) VALUES (p_app, greatest(clock_timestamp(), frozen_since))
        ON CONFLICT (app) DO UPDATE SET at = greatest(t.at, excluded.at);
    PERFORM call_listeners();
    RETURN was_there;
END
$$;

-- Sets a cap, or removes it (a limit of NULL). What was leased of it stays leased and counts in whatever window it is
-- in. Answers 'made', 'changed', 'same', 'removed' or 'none': there was none to remove.
CREATE OR REPLACE FUNCTION order_cap(p_cap text, p_period text, p_zone text, p_limit_micro_usd bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_old caps;
BEGIN
    SELECT * INTO v_old FROM caps c WHERE c.name = p_cap FOR UPDATE;
    PERFORM call_listeners();
    IF p_limit_micro_usd IS NULL THEN
        DELETE FROM caps c WHERE c.name = p_cap;
        RETURN CASE WHEN FOUND THEN 'removed' ELSE 'none' END;
    -- Of these the offset is the same all year in AT TIME ZONE; a bursar takes them for zones.
    ELSIF upper(p_zone) NOT IN ('UTC', 'GMT')
        AND EXISTS (SELECT FROM pg_timezone_abbrevs z WHERE z.abbrev = upper(p_zone)) THEN
        RAISE EXCEPTION 'PostgreSQL takes "%" for an abbreviation, without summer time: use a name such as Europe/Paris',
            p_zone USING ERRCODE = 'BF009';
    ELSIF NOT EXISTS (SELECT FROM pg_timezone_names z WHERE z.name = p_zone) THEN
        RAISE EXCEPTION 'this database knows no time zone "%"', p_zone USING ERRCODE = 'BF009';
    ELSIF (v_old.period, v_old.zone, v_old.limit_micro_usd) = (p_period, p_zone, p_limit_micro_usd) THEN
        RETURN 'same';
    END IF;
    INSERT INTO caps AS c (name, period, zone, limit_micro_usd, ordered_by)
        VALUES (p_cap, p_period, p_zone, p_limit_micro_usd, session_user)
        ON CONFLICT (name) DO UPDATE SET period = excluded.period, zone = excluded.zone,
            limit_micro_usd = excluded.limit_micro_usd, since = excluded.since, ordered_by = excluded.ordered_by;
    RETURN CASE WHEN v_old.name IS NULL THEN 'made' ELSE 'changed' END;
END
$$;

-- What one ledger may have of a cap. Answers 'set', 'no_ledger' or 'no_cap'.
CREATE OR REPLACE FUNCTION order_share(p_ledger uuid, p_cap text, p_largest_micro_usd bigint, p_ahead_windows integer,
    p_ahead_micro_usd bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledgers g WHERE g.id = p_ledger) THEN
        RETURN 'no_ledger';
    ELSIF NOT EXISTS (SELECT FROM caps c WHERE c.name = p_cap) THEN
        RETURN 'no_cap';
    END IF;
    PERFORM call_listeners();
    INSERT INTO shares VALUES (p_ledger, p_cap, p_largest_micro_usd, p_ahead_windows, p_ahead_micro_usd)
        ON CONFLICT (ledger, cap) DO UPDATE SET largest_micro_usd = excluded.largest_micro_usd,
            ahead_windows = excluded.ahead_windows, ahead_micro_usd = excluded.ahead_micro_usd;
    RETURN 'set';
END
$$;

-- Grants again, though the database was restored and not every ledger has presented its leases. False: it does already.
CREATE OR REPLACE FUNCTION resume() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp AS $$
DECLARE
    v_was boolean := is_paused();
BEGIN
    PERFORM call_listeners();
    UPDATE about SET paused_since = NULL WHERE paused_since IS NOT NULL;
    RETURN v_was;
END
$$;

-- --------------------------------------------------------------------------------------------- for a reader

-- While nothing is granted, a row: since when, which ledger showed that the database was restored, and how many have not
-- presented their leases since. It ends after a day, whoever has come.
CREATE OR REPLACE VIEW pause AS
    SELECT a.paused_since AS since, a.paused_since + interval '24 hours' AS ends, a.paused_by AS ledger,
        (SELECT g.host_label FROM ledgers g WHERE g.id = a.paused_by) AS host,
        (SELECT count(*) FROM ledgers g WHERE g.greeted < a.epoch AND g.heard >= a.awaited_since
            AND g.revoked IS NULL AND g.gone IS NULL) AS awaited
    FROM about a WHERE a.paused_since > clock_timestamp() - interval '24 hours';

CREATE OR REPLACE VIEW fleet AS
    SELECT id AS ledger, host_label AS host, joined, heard, bursar, copy_of, copied_up_to, mark_seq,
        greatest(journal_seq - mark_seq, 0) AS lines_behind, clock_ahead_ms, revoked, gone,
        (SELECT count(*) FROM lines WHERE ledger = id AND kind = 'lost' AND why <> 'compacted')
            + (SELECT count(*) FROM kept_lines WHERE ledger = id AND why <> 'compacted') AS losses,
        -- Whose leases are waited for, as the database was restored.
        (SELECT a.paused_since > clock_timestamp() - interval '24 hours' AND greeted < a.epoch
            AND heard >= a.awaited_since AND revoked IS NULL AND gone IS NULL FROM about a) IS TRUE AS is_awaited,
        -- For how long it has had lines that are not here, as far as it said.
        CASE WHEN journal_seq > mark_seq
            THEN greatest(extract(epoch FROM clock_timestamp() - coalesce(caught_up, joined)), 0)::bigint ELSE 0
        END AS lag_s
    FROM ledgers;

-- What each line changes of the sums. Evidence moves an entry from one state to the other.
CREATE OR REPLACE VIEW line_changes AS
    SELECT received, ledger, started, app, lane, operation, served_by, state, requests, billed_micro_usd
    FROM lines
    WHERE kind IN ('outcome', 'crashed', 'withdrawn', 'rollup')
    UNION ALL
    SELECT received, ledger, started, app, lane, operation, served_by, moved.state, moved.requests, moved.billed
    FROM lines
        CROSS JOIN LATERAL (VALUES (was, -1::bigint, 0::numeric), ('reconciled', 1, billed_micro_usd))
            AS moved (state, requests, billed)
    WHERE kind = 'reconciled';

-- A row for each change of a sum: what it adds to which state. Of detached months a row for each quarter of an hour.
CREATE OR REPLACE VIEW changes AS
    SELECT l.host_label AS host, c.ledger, c.started, c.app, c.lane, c.operation, c.served_by, c.state, c.requests,
        c.billed_micro_usd
    FROM (SELECT ledger, started, app, lane, operation, served_by, state, requests, billed_micro_usd FROM line_changes
        UNION ALL
        SELECT ledger, started, app, lane, operation, served_by, state, requests::bigint, billed_micro_usd
        FROM kept_changes) AS c JOIN ledgers l ON l.id = c.ledger;

-- The days of keys with an amount on several ledgers. Nearly all keys are on one: these are left out first. Of a day that was
-- detached in part, what was kept of it is more than what is left; the two are not added.
CREATE OR REPLACE VIEW key_days AS
    WITH bills AS (
        SELECT key_value, ledger, coalesce(started, received) AS started, billed_micro_usd AS billed
        FROM lines
        WHERE billed_micro_usd > 0 AND key_value IN (SELECT key_value
            FROM (SELECT DISTINCT key_value, ledger FROM lines
                WHERE key_value IS NOT NULL AND billed_micro_usd > 0) AS one_a_ledger
            GROUP BY key_value
            HAVING count(*) > 1)
    ), each_key AS (
        SELECT key_value, days_of(array_agg(moment ORDER BY moment)) AS days
        FROM (SELECT key_value, started AS moment FROM bills
            UNION ALL
            SELECT key_value, began FROM kept_anomalies) AS moments
        GROUP BY key_value
    )
    SELECT key_value, began, greatest(count(ledger), max(kept_ledgers)) AS ledgers,
        greatest(sum(billed) - max(billed), max(kept_twice)) AS counted_twice_micro_usd,
        coalesce(max(kept_started), max(started)) AS started
    FROM (SELECT b.key_value, k.days[width_bucket(b.started, k.days)] AS began, b.ledger, min(b.started) AS started,
            sum(b.billed) AS billed, NULL::bigint AS kept_ledgers, NULL::numeric AS kept_twice,
            NULL::timestamptz AS kept_started
        FROM bills b JOIN each_key k ON k.key_value = b.key_value
        GROUP BY 1, 2, 3
        UNION ALL
        SELECT a.key_value, k.days[width_bucket(a.began, k.days)], NULL, NULL, NULL, a.ledgers,
            a.counted_twice_micro_usd, a.started
        FROM kept_anomalies a JOIN each_key k ON k.key_value = a.key_value) AS one_a_ledger
    GROUP BY key_value, began
    HAVING greatest(count(ledger), max(kept_ledgers)) > 1;

-- A key with an amount on several ledgers within 24 hours of its first use: the service billed it once. A key that is used anew
-- has a row for each such day. `started`: the last of the amounts, which is counted too much.
CREATE OR REPLACE VIEW anomalies AS
    SELECT key_value, ledgers, counted_twice_micro_usd, started FROM key_days;

-- Ranges of journals that are not here, and when that was known: what they billed began before. What was compacted before
-- it joined is here, in sums.
CREATE OR REPLACE VIEW losses AS
    SELECT ledger, seq, last_seq, received, why FROM lines WHERE kind = 'lost' AND why <> 'compacted'
    UNION ALL
    SELECT ledger, seq, last_seq, received, why FROM kept_lines WHERE why <> 'compacted';

-- Requests that began and have no end here: under way, or on a machine that did not come back. Not in any sum.
CREATE OR REPLACE VIEW under_way AS
    SELECT min(ledger::text)::uuid AS ledger, started
    FROM (SELECT ledger, entry, started, kind <> 'intent' AS has_ended FROM lines
            WHERE kind IN ('intent', 'outcome', 'crashed', 'withdrawn')
        UNION ALL
        SELECT ledger, entry, started, has_ended FROM kept_under_way) AS said
    GROUP BY entry, started HAVING NOT bool_or(has_ended);

CREATE OR REPLACE VIEW orders AS SELECT app, since, ordered_by FROM freezes;

-- Each shared cap in its window of now. `over_micro_usd`: what is charged above the limit; `put_back_micro_usd`: what
-- ledgers stated that this database had forgotten.
CREATE OR REPLACE VIEW caps_now AS
    SELECT c.name AS cap, c.period, c.zone, w.since, w.until, c.limit_micro_usd,
        coalesce(s.charged, 0) AS charged_micro_usd, coalesce(s.billed, 0) AS billed_micro_usd,
        coalesce(s.open, 0) AS open_micro_usd, coalesce(s.holders, 0) AS holders,
        greatest(coalesce(s.charged, 0) - c.limit_micro_usd, 0) AS over_micro_usd,
        coalesce(s.put_back, 0) AS put_back_micro_usd, EXISTS (SELECT FROM pause) AS is_paused, c.since AS ordered,
        c.ordered_by
    FROM caps c CROSS JOIN LATERAL window_of(c.period, c.zone, clock_timestamp(), 0) AS w
        LEFT JOIN LATERAL (SELECT sum(l.charged) AS charged, sum(l.billed) AS billed, sum(l.open) AS open,
            count(DISTINCT l.ledger) AS holders, sum(l.put_back) AS put_back
            FROM leases l WHERE l.cap = c.name AND l.since < w.until AND l.until > w.since) AS s ON true;

-- The leases whose window is not over, those ahead included. Of a ledger that is not heard the open part is not known:
-- it may have spent it.
CREATE OR REPLACE VIEW leases_now AS
    SELECT l.cap, g.host_label AS host, l.ledger, l.id AS lease, l.since, l.until, l.granted AS granted_micro_usd,
        l.given_back AS given_back_micro_usd, l.billed AS billed_micro_usd, l.charged AS charged_micro_usd,
        l.open AS open_micro_usd, l.put_back AS put_back_micro_usd, g.heard, g.revoked IS NOT NULL AS is_revoked,
        l.replaced
    FROM leases l JOIN ledgers g ON g.id = l.ledger WHERE l.until > statement_timestamp();

-- What each ledger had and spent of each window of a shared cap, also of windows that are over.
CREATE OR REPLACE VIEW cap_windows AS
    SELECT l.cap, l.since, l.until, g.host_label AS host, l.ledger, sum(l.granted - l.given_back) AS leased_micro_usd,
        sum(l.billed) AS billed_micro_usd, sum(l.charged) AS charged_micro_usd
    FROM leases l JOIN ledgers g ON g.id = l.ledger GROUP BY 1, 2, 3, 4, 5;

-- Leases of the last hundred days on which more is billed than they are for: the overrun of a last request, amounts that
-- were learnt late, and what copies spent.
CREATE OR REPLACE VIEW over AS
    SELECT l.cap, g.host_label AS host, l.ledger, l.id AS lease, l.since, l.until,
        l.granted - l.given_back AS leased_micro_usd, l.billed AS billed_micro_usd,
        l.billed - (l.granted - l.given_back) AS over_micro_usd
    FROM leases l JOIN ledgers g ON g.id = l.ledger
    WHERE l.billed > l.granted - l.given_back AND l.until > statement_timestamp() - interval '100 days';

-- The codes that were given out and can still let a ledger in, and for whom, as far as was noted.
CREATE OR REPLACE VIEW open_invitations AS
    SELECT made, expires, note FROM invites WHERE used_by IS NULL AND expires > clock_timestamp();

CREATE OR REPLACE VIEW largest_shares AS
    SELECT s.cap, g.host_label AS host, s.ledger, s.largest_micro_usd, s.ahead_windows, s.ahead_micro_usd
    FROM shares s JOIN ledgers g ON g.id = s.ledger JOIN caps c ON c.name = s.cap;

-- ----------------------------------------------------------------------------------------------- old months

-- Takes a month of lines out of `lines`, after what stays of it was stored; the sums are what they were. The table
-- lines_YYYY_MM is left for the administrator to dump and drop. Answers how many lines it has, or NULL: there is no such
-- month in `lines`. A ledger that was copied before such a month's end is compared by batches there: at most one
-- of them counts twice.
CREATE OR REPLACE FUNCTION detach_month(p_month date) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bursar_fleet, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    v_month date := date_trunc('month', p_month::timestamp)::date;
    v_since timestamptz := v_month::timestamp AT TIME ZONE 'UTC';
    v_until timestamptz := (v_month + interval '1 month') AT TIME ZONE 'UTC';
    v_name text := 'lines_' || to_char(v_month, 'YYYY_MM');
    v_lines bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(4702394921427289930);
    IF v_until > clock_timestamp() - interval '35 days' THEN
        RAISE EXCEPTION 'the month % did not end 35 days ago: its lines may be asked for one by one',
            to_char(v_month, 'YYYY-MM') USING ERRCODE = 'BF011';
    ELSIF NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'lines'::regclass AND inhrelid = to_regclass(v_name)) THEN
        RETURN NULL;
    END IF;
    v_lines := (SELECT count(*) FROM lines WHERE received >= v_since AND received < v_until);
    INSERT INTO kept_lines (ledger, seq, last_seq, received, chain, why)
        SELECT ledger, seq, last_seq, received, chain, why FROM (
            SELECT *, row_number() OVER (PARTITION BY ledger, received ORDER BY last_seq DESC) AS from_end
            FROM lines WHERE received >= v_since AND received < v_until) AS l
        WHERE from_end = 1 OR why IS NOT NULL;
    INSERT INTO kept_changes
        SELECT v_month, ledger, date_bin('15 minutes', started, '2000-01-01 00:00Z'), app, lane, operation, served_by,
            state, sum(requests), sum(billed_micro_usd)
        FROM line_changes WHERE received >= v_since AND received < v_until
        GROUP BY 2, 3, 4, 5, 6, 7, 8;
    INSERT INTO kept_anomalies (key_value, began, ledgers, counted_twice_micro_usd, started)
        SELECT d.key_value, d.began, d.ledgers, d.counted_twice_micro_usd, d.started FROM key_days d
        WHERE d.key_value IN (SELECT l.key_value FROM lines l WHERE l.received >= v_since AND l.received < v_until)
        ON CONFLICT (key_value, began) DO UPDATE SET ledgers = excluded.ledgers,
            counted_twice_micro_usd = excluded.counted_twice_micro_usd, started = excluded.started;
    -- Where a row is there already, the end is known from a later month that was detached first.
    INSERT INTO kept_under_way (entry, started, ledger, has_ended)
        SELECT l.entry, l.started, min(l.ledger::text)::uuid, false FROM lines l
        WHERE l.received >= v_since AND l.received < v_until AND l.entry IS NOT NULL AND l.started IS NOT NULL
            AND l.kind IN ('intent', 'outcome', 'crashed', 'withdrawn')
        GROUP BY l.entry, l.started HAVING bool_and(l.kind = 'intent')
        ON CONFLICT (entry, started) DO NOTHING;
    -- An end never comes in an earlier month than its beginning: this looks at nothing unless `lines` has earlier months.
    INSERT INTO kept_under_way (entry, started, ledger, has_ended)
        SELECT l.entry, l.started, min(l.ledger::text)::uuid, true
        FROM lines b JOIN lines l ON l.entry = b.entry AND l.started = b.started
        WHERE b.received < v_since AND b.kind = 'intent'
            AND l.received >= v_since AND l.received < v_until AND l.kind IN ('outcome', 'crashed', 'withdrawn')
        GROUP BY l.entry, l.started
        ON CONFLICT (entry, started) DO UPDATE SET has_ended = true;
    -- This month has the other half of these: the end of what began, or the beginning of what has ended.
    DELETE FROM kept_under_way k USING lines l
        WHERE l.received >= v_since AND l.received < v_until AND l.entry = k.entry AND l.started = k.started
            AND CASE WHEN k.has_ended THEN l.kind = 'intent' ELSE l.kind IN ('outcome', 'crashed', 'withdrawn') END;
    EXECUTE format('ALTER TABLE lines DETACH PARTITION %I', v_name);
    RETURN v_lines;
END
$$;

INSERT INTO about (version) VALUES (2) ON CONFLICT (one) DO UPDATE SET version = excluded.version;

-- ------------------------------------------------------------------------------------------------- rights

REVOKE ALL ON ALL TABLES IN SCHEMA bursar_fleet FROM PUBLIC, bursar_node, bursar_operator, bursar_reader;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA bursar_fleet FROM PUBLIC, bursar_node, bursar_operator, bursar_reader;
GRANT USAGE ON SCHEMA bursar_fleet TO bursar_node, bursar_operator, bursar_reader;
GRANT EXECUTE ON FUNCTION greet TO bursar_node, bursar_operator, bursar_reader;
GRANT EXECUTE ON FUNCTION is_open, enrol, hello, acknowledged, chain_at, family_has, ship, fork, leave, hold, lease, give_back, pace, listen_here
    TO bursar_node;
GRANT EXECUTE ON FUNCTION invite, revoke_ledger, order_freeze, order_thaw, order_cap, order_share, resume,
    detach_month TO bursar_operator;
GRANT SELECT ON fleet, changes, anomalies, losses, under_way, orders, pause, caps_now, leases_now, cap_windows, over,
    largest_shares, open_invitations
    TO bursar_reader, bursar_operator;
-- `caps_now` and `anomalies` stand on them.
GRANT EXECUTE ON FUNCTION window_of, days_of TO bursar_reader, bursar_operator;

COMMIT;
