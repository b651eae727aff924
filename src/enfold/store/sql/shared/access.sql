-- name: token_by_hash
SELECT id, name, namespace, created_at FROM access_tokens WHERE hash = :hash

-- name: tokens
SELECT id, name, namespace, created_at FROM access_tokens ORDER BY name

-- name: put_token
-- A name that exists gets another token, and keeps its namespace.
INSERT INTO access_tokens (id, name, namespace, hash, created_at)
VALUES (:id, :name, :namespace, :hash, :now)
ON CONFLICT (name) DO UPDATE SET hash = excluded.hash

-- name: token_by_name
SELECT id, name, namespace, created_at FROM access_tokens WHERE name = :name

-- name: delete_token
DELETE FROM access_tokens WHERE id = :id

-- name: add_secret
-- The first process creates it; all others read it.
INSERT INTO settings (scope, key, value, updated_at) VALUES (:scope, :key, :value, :now)
ON CONFLICT (scope, key) DO NOTHING

-- name: insert_audit
INSERT INTO audit_log (at, actor, namespace, action, status, request_id, session, counts)
VALUES (:now, :actor, :namespace, :action, :status, :request_id, :session, :counts)

-- name: audit_before
SELECT seq, at, actor, namespace, action, status, request_id, session, counts
FROM audit_log
WHERE namespace = :namespace AND seq < :before
ORDER BY seq DESC
LIMIT :limit

-- name: delete_old_audit
-- The oldest come first, so only a few are read.
DELETE FROM audit_log WHERE seq IN (
    SELECT seq
    FROM (SELECT seq, at FROM audit_log WHERE seq > 0 ORDER BY seq LIMIT :few) AS oldest
    WHERE at < :before
)
