-- name: sessions_after_key
SELECT s.key, s.namespace, s.listed_in, s.id, s.settings, s.tip AS tip_key,
    m.session AS tip_session
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.key > :key
ORDER BY s.key
LIMIT :limit

-- name: messages_to_verify
-- Every message of a session, with the figures of its parent that its own follow from.
SELECT {message_columns}, m.parent AS parent_key, m.jump, p.depth AS parent_depth,
    p.path_tokens AS parent_tokens, j.jump AS jump_after, t.text
FROM chat_messages AS m
LEFT JOIN chat_messages AS p ON p.seq = m.parent AND p.session = m.session
LEFT JOIN chat_messages AS j ON j.seq = p.jump
LEFT JOIN message_texts AS t ON t.message = m.seq
WHERE m.session = :session AND m.seq > :key
ORDER BY m.seq
LIMIT :limit

-- name: unlisted_tips
-- Messages that no other follows, which are not listed as tips.
SELECT m.id FROM chat_messages AS m
WHERE m.session = :session
    AND NOT EXISTS (SELECT 1 FROM chat_messages AS c WHERE c.parent = m.seq)
    AND NOT EXISTS (
        SELECT 1 FROM branch_tips AS b WHERE b.session = :session AND b.message = m.seq
    )
ORDER BY m.seq
LIMIT :limit

-- name: wrong_tips
-- Listed tips that do not exist, or that another message follows.
SELECT b.message AS key FROM branch_tips AS b
WHERE b.session = :session AND (
    NOT EXISTS (SELECT 1 FROM chat_messages AS m WHERE m.seq = b.message AND m.session = :session)
    OR EXISTS (SELECT 1 FROM chat_messages AS c WHERE c.parent = b.message)
)
ORDER BY b.message
LIMIT :limit

-- name: snapshots_to_verify
SELECT s.seq AS key, s.id, s.kind, s.content_json, s.manifest, s.digest, s.message_cutoff_id,
    s.message_cutoff AS cutoff_key, s.cutoff_depth, c.id AS cutoff_found,
    c.depth AS cutoff_found_depth, s.parent_message AS parent_key, s.parent_message_id,
    s.parent_depth, p.id AS parent_found, p.depth AS parent_found_depth, s.previous_id,
    b.id AS previous_found
FROM session_snapshots AS s
LEFT JOIN chat_messages AS c ON c.seq = s.message_cutoff AND c.session = s.session
LEFT JOIN chat_messages AS p ON p.seq = s.parent_message AND p.session = s.session
LEFT JOIN session_snapshots AS b ON b.session = s.session AND b.id = s.previous_id
WHERE s.session = :session AND s.seq > :key
ORDER BY s.seq
LIMIT :limit

-- name: edits_to_verify
SELECT e.seq AS key, e.id, e.digest, e.ledger, e.content AS body, m.id AS message,
    s.id AS snapshot_found
FROM message_edits AS e
LEFT JOIN chat_messages AS m ON m.seq = e.message AND m.session = e.session
LEFT JOIN session_snapshots AS s ON s.session = e.session AND s.id = e.snapshot
WHERE e.session = :session AND e.seq > :key
ORDER BY e.seq
LIMIT :limit

-- name: references_to_verify
-- Records that name a message or a snapshot of their session that does not exist.
SELECT 'outbox' AS area, o.id AS id, o.message_id AS target FROM flush_outbox AS o
WHERE o.session = :session AND NOT EXISTS (
    SELECT 1 FROM chat_messages AS m WHERE m.id = o.message_id AND m.session + 0 = :session
)
UNION ALL
SELECT 'pin', n.message, n.message FROM pins AS n
WHERE n.session = :session AND NOT EXISTS (
    SELECT 1 FROM chat_messages AS m WHERE m.id = n.message AND m.session + 0 = :session
)
UNION ALL
SELECT 'undo', CAST(u.seq AS text), CAST(u.snapshot AS text) FROM snapshot_undos AS u
WHERE u.session = :session AND NOT EXISTS (
    SELECT 1 FROM session_snapshots AS s WHERE s.seq = u.snapshot AND s.session = :session
)
UNION ALL
SELECT 'undo', CAST(u.seq AS text), CAST(u.message AS text) FROM snapshot_undos AS u
WHERE u.session = :session AND u.message IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM chat_messages AS m WHERE m.seq = u.message AND m.session = :session
)
LIMIT :limit

-- name: texts_to_verify
SELECT t.message AS key, t.text, m.id AS message
FROM message_texts AS t
LEFT JOIN chat_messages AS m ON m.seq = t.message AND m.session = t.session
WHERE t.session = :session AND t.message > :key
ORDER BY t.message
LIMIT :limit
