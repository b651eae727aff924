-- fragment: snapshot_columns
s.seq AS key, s.session, s.id, s.kind, s.content_json AS content, s.message_cutoff_id AS cutoff,
s.cutoff_depth, s.parent_message_id AS parent, s.parent_depth, s.token_count, s.tokenizer,
s.previous_id AS previous, s.strategy, s.author, s.manifest, s.created_at, s.updated_at,
CASE WHEN EXISTS (SELECT 1 FROM snapshot_undos AS u WHERE u.snapshot = s.seq)
    THEN 1 ELSE 0 END AS undone

-- fragment: edit_columns
e.id, e.snapshot, m.id AS message, m.depth, m.role, m.dialect, e.content AS body, e.digest,
e.tokens, e.tokenizer, e.estimate, e.ledger, m.created_at, m.is_dated

-- name: snapshot
SELECT {snapshot_columns} FROM session_snapshots AS s WHERE s.seq = :key

-- name: snapshot_by_id
SELECT {snapshot_columns} FROM session_snapshots AS s
WHERE s.session = :session AND s.id = :id

-- name: snapshots_of_kind
SELECT {snapshot_columns} FROM session_snapshots AS s
WHERE s.session = :session AND s.kind = :kind
ORDER BY s.created_at DESC, s.seq DESC
LIMIT :limit

-- name: candidates
-- Snapshots that may apply at a depth, best first, after the one with that depth and key.
SELECT s.seq AS key, s.message_cutoff AS cutoff, s.parent_message AS parent, s.cutoff_depth
FROM session_snapshots AS s
WHERE s.session = :session AND s.kind = 'summary' AND s.cutoff_depth <= :depth
    AND (s.cutoff_depth, s.seq) < (:before_depth, :before_key)
    AND NOT EXISTS (SELECT 1 FROM snapshot_undos AS u WHERE u.snapshot = s.seq)
ORDER BY s.cutoff_depth DESC, s.seq DESC
LIMIT :limit

-- name: insert_snapshot
INSERT INTO session_snapshots
    (session, id, kind, content_json, message_cutoff, message_cutoff_id, cutoff_depth,
     parent_message, parent_message_id, parent_depth, token_count, tokenizer, previous_id,
     strategy, author, manifest, digest, created_at, updated_at)
VALUES
    (:session, :id, :kind, :content_json, :cutoff, :cutoff_id, :cutoff_depth,
     :parent, :parent_id, :parent_depth, :token_count, :tokenizer, :previous_id,
     :strategy, :author, :manifest, :digest, :now, :now)

-- name: erase_snapshot_text
UPDATE session_snapshots
SET content_json = :content_json, manifest = :manifest, digest = :digest, updated_at = :now
WHERE seq = :key

-- name: summary_part
SELECT content FROM summary_parts WHERE session = :session AND id = :id

-- name: insert_summary_part
-- The session may have been deleted since; then nothing is stored.
INSERT INTO summary_parts (session, id, content)
SELECT key, :id, :content FROM sessions WHERE key = :session
ON CONFLICT (session, id) DO UPDATE SET content = excluded.content

-- name: delete_summary_parts
DELETE FROM summary_parts WHERE session = :session

-- name: insert_edit
INSERT INTO message_edits
    (session, id, message, snapshot, tokens, tokenizer, estimate, digest, ledger, content)
VALUES
    (:session, :id, :message, :snapshot, :tokens, :tokenizer, :estimate, :digest, :ledger, :body)

-- name: edits_by_id
SELECT {edit_columns}
FROM message_edits AS e JOIN chat_messages AS m ON m.seq = e.message
WHERE e.session = :session AND e.id IN {ids}

-- name: edits_of_session
SELECT {edit_columns}
FROM message_edits AS e JOIN chat_messages AS m ON m.seq = e.message
WHERE e.session = :session
ORDER BY e.seq

-- name: insert_undo
INSERT INTO snapshot_undos (session, snapshot, message, message_depth, created_at)
VALUES (:session, :snapshot, :message, :depth, :now)

-- name: undos
-- Newest first; the message is the tip at which the snapshot was undone.
SELECT s.id AS snapshot, u.message AS key, m.id AS message, u.message_depth AS depth, u.created_at
FROM snapshot_undos AS u
JOIN session_snapshots AS s ON s.seq = u.snapshot
LEFT JOIN chat_messages AS m ON m.seq = u.message
WHERE u.session = :session
ORDER BY u.seq DESC
