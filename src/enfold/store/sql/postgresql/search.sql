-- name: insert_words
INSERT INTO message_words (message, piece, session, is_whole, words)
VALUES (:message, :piece, :session, :is_whole, CAST(:words AS tsvector))

-- name: delete_words_of_session
DELETE FROM message_words WHERE session = :session

-- fragment: phrases
json_array_elements_text(CAST(:query AS json)) WITH ORDINALITY AS phrase (text, place)

-- fragment: has_all
HAVING count(DISTINCT phrase.place) = json_array_length(CAST(:query AS json))

-- fragment: all_at_once
-- Every phrase in one query.
(SELECT CAST(string_agg('(' || value || ')', ' & ') AS tsquery)
FROM json_array_elements_text(CAST(:query AS json)))

-- name: search_recent
-- Among a session's newest messages, in the order of storage: a common term is found here
-- long before an index could list all its messages.
SELECT w.message AS key, NULL AS rank
FROM (
    SELECT message, words FROM message_words
    WHERE session = :session AND message < :before
    ORDER BY message DESC
    LIMIT :recent
) AS w
JOIN {phrases} ON w.words @@ CAST(phrase.text AS tsquery)
GROUP BY w.message
{has_all}
ORDER BY w.message DESC
LIMIT :limit

-- name: search_newest
-- Messages with all phrases in one piece, and long messages with the phrases in several pieces.
SELECT found.key, NULL AS rank
FROM (
    SELECT w.message AS key FROM message_words AS w
    WHERE w.words @@ {all_at_once} AND w.message < :before
    UNION
    SELECT w.message AS key
    FROM {phrases}
    JOIN message_words AS w ON NOT w.is_whole AND w.words @@ CAST(phrase.text AS tsquery)
    WHERE json_array_length(CAST(:query AS json)) > 1 AND w.message < :before
    GROUP BY w.message
    {has_all}
) AS found
ORDER BY found.key DESC
LIMIT :limit

-- name: occurrences
SELECT DISTINCT m.seq AS key, m.depth
FROM message_words AS w JOIN chat_messages AS m ON m.seq = w.message
WHERE w.words @@ {all_at_once} AND w.session = :session AND m.depth BETWEEN :first AND :last
ORDER BY m.seq DESC
LIMIT :limit

-- name: search_best
-- The score of a message is that of its best piece; 2 divides the score by the length of the piece.
SELECT w.message AS key, max(ts_rank(w.words, CAST(phrase.text AS tsquery), 2)) AS rank
FROM {phrases}
JOIN message_words AS w ON w.words @@ CAST(phrase.text AS tsquery)
GROUP BY w.message
{has_all}
ORDER BY rank DESC, w.message DESC
LIMIT :limit OFFSET :offset

-- name: has_words
-- The pieces of a message whose terms are those given.
SELECT count(*) AS pieces FROM message_words
WHERE message = :message AND piece = :piece AND words = CAST(:words AS tsvector)

-- name: words_without_text
SELECT w.message AS key FROM message_words AS w
WHERE NOT EXISTS (SELECT 1 FROM message_texts AS t WHERE t.message = w.message)
ORDER BY w.message
LIMIT :limit
