-- name: insert_words
INSERT INTO message_words (rowid, scope, words, parts) VALUES (:message, :scope, :words, :parts)

-- name: delete_words
-- An index without content needs the text of the rows that it deletes.
INSERT INTO message_words (message_words, rowid, scope, words, parts)
VALUES ('delete', :message, :scope, :words, :parts)

-- name: search_newest
SELECT rowid AS key, NULL AS rank FROM message_words
WHERE message_words MATCH :query AND rowid < :before
ORDER BY rowid DESC
LIMIT :limit

-- name: occurrences
SELECT m.seq AS key, m.depth
FROM message_words CROSS JOIN chat_messages AS m ON m.seq = message_words.rowid  -- in this order
WHERE message_words MATCH :query AND m.session + 0 = :session AND m.depth BETWEEN :first AND :last
ORDER BY message_words.rowid DESC
LIMIT :limit

-- name: search_best
-- bm25 is negative, and lower is better; a word counts more than a part of a name.
SELECT rowid AS key, -bm25(message_words, 0.0, 1.0, 0.5) AS rank FROM message_words
WHERE message_words MATCH :query
ORDER BY bm25(message_words, 0.0, 1.0, 0.5), rowid DESC
LIMIT :limit OFFSET :offset

-- name: has_words
SELECT 1 FROM message_words WHERE message_words MATCH :query AND rowid = :message

-- name: words_without_text
SELECT d.id AS key FROM message_words_docsize AS d
WHERE NOT EXISTS (SELECT 1 FROM message_texts AS t WHERE t.message = d.id)
ORDER BY d.id
LIMIT :limit
