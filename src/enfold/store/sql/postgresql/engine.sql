-- fragment: for_update
-- Rows that refer to the locked one can still be written by others.
FOR NO KEY UPDATE

-- fragment: keys
(SELECT CAST(value AS bigint) AS value FROM json_array_elements_text(CAST(:keys AS json)))

-- fragment: ids
(SELECT value FROM json_array_elements_text(CAST(:ids AS json)))

-- name: now
-- Milliseconds since 1970, by the server's clock: machines' clocks differ.
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS now

-- name: has_migrations
-- Read from the catalogue: to_regclass may still have cached that there was none, from before
-- another process created it.
SELECT 1 FROM pg_catalog.pg_tables
WHERE schemaname = current_schema() AND tablename = 'schema_migrations'

-- name: lock_migrations
-- One process migrates, the others wait for it; the number is enfold's own.
SELECT pg_advisory_xact_lock(7308332090146250607)

-- name: new_message_keys
-- Keys for new messages; no message ever had one of them.
SELECT nextval(pg_get_serial_sequence('chat_messages', 'seq')) AS seq
FROM generate_series(1, :count)

-- fragment: segments
(SELECT place - 1 AS place, value ->> 0 AS first, value ->> 1 AS last
FROM json_array_elements(CAST(:segments AS json)) WITH ORDINALITY AS each (value, place))

-- fragment: skip_locked
FOR UPDATE SKIP LOCKED

-- name: has_jobs
-- True if the tables of procrastinate exist.
SELECT 1 FROM pg_catalog.pg_tables
WHERE schemaname = current_schema() AND tablename = 'procrastinate_jobs'

-- name: notify
-- Listeners receive it when the transaction is committed.
SELECT pg_notify(:channel, :text)

-- fragment: tokens_before
-- Read as text: a summary may hold U+0000, escaped, which PostgreSQL's JSON functions refuse. Within
-- a text the name's quotes are escaped, so only the field itself answers to this.
CAST(substring(s.content_json FROM '"originalTokenCount":([0-9]+)') AS bigint)

-- fragment: tokens_after
CAST(substring(s.content_json FROM '"newTokenCount":([0-9]+)') AS bigint)

-- fragment: previous_tokens_before
CAST(substring(p.content_json FROM '"originalTokenCount":([0-9]+)') AS bigint)
