-- fragment: message_columns
m.seq AS key, m.session, m.id, p.id AS parent, m.depth, m.role, m.dialect, m.content AS body,
m.content_hash, m.digest, m.tokens, m.tokenizer, m.estimate, m.input_tokens, m.output_tokens,
m.client_id, m.name, m.created_at, m.path_tokens, m.is_dated

-- name: node
-- A message's place in the tree.
SELECT seq AS key, id, depth, jump, path_tokens FROM chat_messages WHERE seq = :key

-- name: tip_node
SELECT s.tip, m.seq AS key, m.id, m.depth, m.jump, m.path_tokens
FROM sessions AS s LEFT JOIN chat_messages AS m ON m.seq = s.tip
WHERE s.key = :session

-- name: node_by_id
SELECT seq AS key, id, depth, jump, path_tokens
FROM chat_messages WHERE id = :id AND session + 0 = :session

-- name: message_by_id
SELECT {message_columns}
FROM chat_messages AS m LEFT JOIN chat_messages AS p ON p.seq = m.parent
WHERE m.id = :id AND m.session + 0 = :session

-- name: messages_by_id
SELECT {message_columns}
FROM chat_messages AS m LEFT JOIN chat_messages AS p ON p.seq = m.parent
WHERE m.session + 0 = :session AND m.id IN {ids}

-- name: insert_message
INSERT INTO chat_messages
    (seq, session, parent, jump, depth, path_tokens, id, content_hash, digest, role, dialect,
     tokens, tokenizer, estimate, client_id, name, created_at, is_dated, content)
VALUES
    (:key, :session, :parent_key, :jump, :depth, :path_tokens, :id, :content_hash, :digest, :role,
     :dialect, :tokens, :tokenizer, :estimate, :client_id, :name, :created_at, :is_dated, :body)

-- name: line
-- The messages from one up to just below a depth. It reads only those, and ends where a damaged
-- row would lead it in a circle.
WITH RECURSIVE line (seq, parent, depth) AS (
    SELECT m.seq, m.parent, m.depth FROM chat_messages AS m WHERE m.seq = :bottom
    UNION ALL
    SELECT m.seq, m.parent, m.depth FROM line JOIN chat_messages AS m ON m.seq = line.parent
    WHERE line.depth > :above + 1 AND m.depth < line.depth
)
SELECT {message_columns}
FROM line
JOIN chat_messages AS m ON m.seq = line.seq
LEFT JOIN chat_messages AS p ON p.seq = m.parent
WHERE m.depth > :above

-- name: on_path
-- The given messages that are on the path to a tip. From the tip up, by the jump where it does not
-- go past the message looked for, else by the parent.
WITH RECURSIVE sought (seq, depth) AS (
    SELECT m.seq, m.depth FROM {keys} AS k JOIN chat_messages AS m ON m.seq = k.value
),
climb (target, target_depth, seq, depth, up) AS (
    SELECT sought.seq, sought.depth, m.seq, m.depth,
        CASE WHEN j.depth >= sought.depth THEN m.jump ELSE m.parent END
    FROM sought
    JOIN chat_messages AS m ON m.seq = :tip
    LEFT JOIN chat_messages AS j ON j.seq = m.jump
    UNION ALL
    SELECT climb.target, climb.target_depth, m.seq, m.depth,
        CASE WHEN j.depth >= climb.target_depth THEN m.jump ELSE m.parent END
    FROM climb
    JOIN chat_messages AS m ON m.seq = climb.up
    LEFT JOIN chat_messages AS j ON j.seq = m.jump
    WHERE climb.depth > climb.target_depth AND m.depth < climb.depth
)
SELECT target FROM climb WHERE seq = target

-- name: ancestor_at
-- The message at a depth on the path to a tip, found as in on_path.
WITH RECURSIVE climb (seq, depth, up) AS (
    SELECT m.seq, m.depth, CASE WHEN j.depth >= :depth THEN m.jump ELSE m.parent END
    FROM chat_messages AS m LEFT JOIN chat_messages AS j ON j.seq = m.jump
    WHERE m.seq = :tip
    UNION ALL
    SELECT m.seq, m.depth, CASE WHEN j.depth >= :depth THEN m.jump ELSE m.parent END
    FROM climb
    JOIN chat_messages AS m ON m.seq = climb.up
    LEFT JOIN chat_messages AS j ON j.seq = m.jump
    WHERE climb.depth > :depth AND m.depth < climb.depth
)
SELECT m.seq AS key, m.id, m.depth, m.jump, m.path_tokens
FROM climb JOIN chat_messages AS m ON m.seq = climb.seq
WHERE climb.depth = :depth

-- name: known_in_session
SELECT m.seq AS key, m.session FROM chat_messages AS m
WHERE m.id = :id AND m.session + 0 = :session

-- name: known_in_namespace
-- Many sessions may have the same beginning; the newest is the most likely one.
SELECT m.seq AS key, m.session
FROM chat_messages AS m CROSS JOIN sessions AS s
WHERE m.id = :id AND s.key = m.session AND s.namespace = :namespace
ORDER BY m.session + 0 DESC
LIMIT 1

-- name: children
SELECT {message_columns}
FROM chat_messages AS m JOIN chat_messages AS p ON p.seq = m.parent
WHERE p.id = :id AND p.session + 0 = :session
ORDER BY m.seq

-- name: roots
SELECT {message_columns}
FROM chat_messages AS m LEFT JOIN chat_messages AS p ON p.seq = m.parent
WHERE m.session = :session AND m.parent IS NULL
ORDER BY m.seq

-- name: branches
SELECT m.id AS tip, m.depth, m.path_tokens AS tokens, m.created_at
FROM branch_tips AS b JOIN chat_messages AS m ON m.seq = b.message
WHERE b.session = :session
ORDER BY m.seq

-- name: branch_tips
SELECT message AS key FROM branch_tips WHERE session = :session LIMIT 2

-- name: add_branch_tip
INSERT INTO branch_tips (session, message) VALUES (:session, :message)

-- name: drop_branch_tip
DELETE FROM branch_tips WHERE session = :session AND message = :message

-- name: set_reported_usage
UPDATE chat_messages SET input_tokens = :input_tokens, output_tokens = :output_tokens
WHERE id = :id AND session + 0 = :session

-- fragment: reported_usage
FROM usage_events AS u
    WHERE u.message_id = chat_messages.id
        AND (u.session = :session OR u.session IS NULL AND u.namespace = :namespace)
    ORDER BY u.seq DESC LIMIT 1

-- name: claim_reported_usage
-- For messages that were stored after their usage.
UPDATE chat_messages SET
    input_tokens = (SELECT u.input_tokens {reported_usage}),
    output_tokens = (SELECT u.output_tokens {reported_usage})
WHERE seq IN (SELECT k.value FROM {keys} AS k)

-- name: segments
-- Several ranges of the tree, each given by the ids of its first and last message.
WITH RECURSIVE line (place, seq, parent, depth, above) AS (
    SELECT g.place, bottom.seq, bottom.parent, bottom.depth, top.depth - 1
    FROM {segments} AS g
    CROSS JOIN chat_messages AS top  -- in this order
    CROSS JOIN chat_messages AS bottom
    WHERE top.id = g.first AND top.session + 0 = :session
        AND bottom.id = g.last AND bottom.session + 0 = :session
    UNION ALL
    SELECT line.place, m.seq, m.parent, m.depth, line.above
    FROM line JOIN chat_messages AS m ON m.seq = line.parent
    WHERE line.depth > line.above + 1 AND m.depth < line.depth
)
SELECT line.place, line.above, {message_columns}
FROM line
JOIN chat_messages AS m ON m.seq = line.seq
LEFT JOIN chat_messages AS p ON p.seq = m.parent
WHERE m.depth > line.above

-- name: keys_by_id
SELECT id, seq AS key FROM chat_messages WHERE session + 0 = :session AND id IN {ids}
