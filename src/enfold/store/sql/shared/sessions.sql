-- fragment: session_columns
s.key, s.namespace, s.id, s.title, s.profile, s.model, s.client, s.client_session,
m.id AS tip,
coalesce(m.depth, 0) AS depth, coalesce(m.path_tokens, 0) AS tokens,
s.settings, s.blocked, s.importing, s.created_at, s.updated_at

-- name: session
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.key = :key

-- name: session_by_id
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.namespace = :namespace AND s.id = :id

-- name: listed_session_by_id
-- Clients with different keys may have sessions of the same name: the last used one is found.
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.listed_in = :namespace AND s.id = :id
ORDER BY s.updated_at DESC, s.key DESC
LIMIT 1

-- name: sessions_of_client
-- The sessions of a client's session id, last used first: in a namespace, or in those from :prefix on.
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.client_session = :client_session
    AND (s.namespace = :namespace OR s.namespace >= :prefix AND s.namespace < :end)
ORDER BY s.updated_at DESC, s.key DESC
LIMIT :limit

-- name: create_session
INSERT INTO sessions
    (namespace, listed_in, id, title, profile, model, client, client_session, settings, blocked,
     created_at, updated_at)
VALUES
    (:namespace, :listed_in, :id, :title, :profile, :model, :client, :client_session, :settings,
     NULL, :now, :now)
ON CONFLICT (namespace, id) DO NOTHING

-- name: sessions_before
-- A page of a namespace's sessions, last used first, after the one with that time and key.
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.namespace = :namespace AND (s.updated_at, s.key) < (:updated_at, :key)
ORDER BY s.updated_at DESC, s.key DESC
LIMIT :limit

-- name: listed_sessions_before
-- The same for all sessions that are listed in a namespace.
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.listed_in = :namespace AND (s.updated_at, s.key) < (:updated_at, :key)
ORDER BY s.updated_at DESC, s.key DESC
LIMIT :limit

-- name: session_to_list
-- A session of a client without a token that is not listed in the owner's namespace yet. Its row is
-- locked, because several processes may start at the same time.
SELECT key, namespace, id FROM sessions
WHERE listed_in >= :prefix AND listed_in < :end
ORDER BY key
LIMIT 1 {for_update}

-- name: list_session
UPDATE sessions SET listed_in = :listed_in, id = :id WHERE key = :key

-- name: lock_session
-- A writer locks the row of its session, so that tips and snapshots change one at a time.
SELECT key, tip FROM sessions WHERE key = :key {for_update}

-- name: update_session
UPDATE sessions
SET title = :title, profile = :profile, model = :model, client = :client,
    client_session = :client_session, settings = :settings, blocked = :blocked, updated_at = :now
WHERE key = :key

-- name: mark_import
UPDATE sessions SET importing = :total WHERE key = :key

-- name: unfinished_imports
SELECT {session_columns}
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.namespace = :namespace AND s.importing IS NOT NULL
ORDER BY s.key
LIMIT :limit

-- name: move_tip
UPDATE sessions SET tip = :tip, updated_at = :now WHERE key = :key

-- name: delete_session
DELETE FROM sessions WHERE key = :key

-- name: namespaces_after
-- From one to the next by the index, however many sessions each has. That of the command line, which
-- is empty, comes before all.
WITH RECURSIVE found (namespace, number) AS (
    SELECT (SELECT min(namespace) FROM sessions WHERE namespace > :after), 1
    UNION ALL
    SELECT
        (SELECT min(s.namespace) FROM sessions AS s WHERE s.namespace > found.namespace),
        number + 1
    FROM found
    WHERE namespace IS NOT NULL AND number < :limit
)
SELECT
    namespace,
    (SELECT count(*) FROM sessions AS s WHERE s.namespace = found.namespace) AS sessions
FROM found
WHERE namespace IS NOT NULL
ORDER BY number

-- name: count_sessions
SELECT count(*) AS sessions FROM sessions WHERE namespace = :namespace

-- name: count_sessions_with_profile
SELECT count(*) AS sessions FROM sessions WHERE profile = :profile
