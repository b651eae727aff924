-- fragment: for_update
-- A write transaction excludes all other writers.

-- fragment: keys
(SELECT value FROM json_each(:keys))

-- fragment: ids
(SELECT value FROM json_each(:ids))

-- name: now
-- Milliseconds since 1970.
SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now

-- name: has_migrations
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'

-- name: lock_migrations
-- A write transaction excludes all other writers.
SELECT 1

-- name: new_message_keys
-- Keys for new messages; no message ever had one of them, not even a deleted one.
WITH RECURSIVE fresh (seq, count) AS (
    SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'chat_messages'), 0) + 1, 1
    UNION ALL
    SELECT seq + 1, count + 1 FROM fresh WHERE count < :count
)
SELECT seq FROM fresh

-- fragment: segments
(SELECT key AS place, json_extract(value, '$[0]') AS first, json_extract(value, '$[1]') AS last
FROM json_each(:segments))

-- fragment: skip_locked
-- No other process writes at the same time.

-- fragment: tokens_before
CAST(json_extract(s.content_json, '$.originalTokenCount') AS INTEGER)

-- fragment: tokens_after
CAST(json_extract(s.content_json, '$.newTokenCount') AS INTEGER)

-- fragment: previous_tokens_before
CAST(json_extract(p.content_json, '$.originalTokenCount') AS INTEGER)

-- name: check_database
PRAGMA integrity_check(100)

-- name: check_references
PRAGMA foreign_key_check
