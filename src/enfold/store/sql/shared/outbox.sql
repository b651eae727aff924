-- fragment: outbox_columns
id, session, message_id AS message, kind, attempts, created_at

-- name: enqueue
-- A message goes out once for each kind, however many snapshots cover it.
INSERT INTO flush_outbox (session, id, message_id, kind, attempts, due_at, created_at)
VALUES (:session, :id, :message, :kind, 0, :now, :now)
ON CONFLICT (session, message_id, kind) DO NOTHING

-- name: claim
-- Claim the entries that are due. A claim without an answer becomes due again.
UPDATE flush_outbox SET holder = :holder, due_at = :until, attempts = attempts + 1
WHERE seq IN (
    SELECT seq FROM flush_outbox WHERE done_at IS NULL AND due_at <= :now AND kind = :kind
    ORDER BY due_at, seq LIMIT :limit {skip_locked}
)
RETURNING seq, {outbox_columns}

-- name: claim_in_session
UPDATE flush_outbox SET holder = :holder, due_at = :until, attempts = attempts + 1
WHERE seq IN (
    SELECT seq FROM flush_outbox
    WHERE done_at IS NULL AND due_at <= :now AND kind = :kind AND session = :session
    ORDER BY due_at, seq LIMIT :limit {skip_locked}
)
RETURNING seq, {outbox_columns}

-- name: shorten_claims
-- An entry that is due later than this was claimed or postponed before the clock was set back.
UPDATE flush_outbox SET due_at = :latest
WHERE done_at IS NULL AND kind = :kind AND due_at > :latest

-- name: due
-- Sessions with waiting work, the longest wait first.
-- An entry that is due later than possible was postponed before the clock was set back.
SELECT kind, session FROM flush_outbox
WHERE done_at IS NULL AND (due_at <= :now OR due_at > :latest)
GROUP BY kind, session ORDER BY min(due_at), min(seq) LIMIT :limit

-- name: deliver
UPDATE flush_outbox SET done_at = :now, holder = NULL, error = NULL
WHERE id = :id AND done_at IS NULL

-- name: postpone
-- Only the holder of the claim may do this; a claim that has expired belongs to another process.
UPDATE flush_outbox SET due_at = :due_at, holder = NULL, error = :error
WHERE id = :id AND holder = :holder AND done_at IS NULL

-- name: waiting
SELECT count(*) AS count FROM flush_outbox WHERE done_at IS NULL

-- name: waiting_by_kind
SELECT kind, count(*) AS waiting, count(error) AS failing FROM flush_outbox
WHERE done_at IS NULL GROUP BY kind ORDER BY kind

-- name: waiting_in_session
SELECT count(*) AS count FROM flush_outbox WHERE done_at IS NULL AND session = :session
