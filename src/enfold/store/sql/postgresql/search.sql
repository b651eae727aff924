-- name: insert_words
INSERT INTO message_words (message, piece, session, words)
VALUES (:message, :piece, :session, CAST(:words AS tsvector))

-- fragment: found
-- All phrases must be in a message, though not all in the same piece of it.
FROM json_array_elements_text(CAST(:query AS json)) WITH ORDINALITY AS phrase (text, place)
JOIN message_words AS w ON w.words @@ CAST(phrase.text AS tsquery)

-- name: search_newest
SELECT w.message AS key, NULL AS rank
{found}
WHERE w.message < :before
GROUP BY w.message
HAVING count(DISTINCT phrase.place) = json_array_length(CAST(:query AS json))
ORDER BY w.message DESC
LIMIT :limit

-- name: search_best
-- A message is as good as its best piece; 2 sets the finds against the length of the piece.
SELECT w.message AS key, max(ts_rank(w.words, CAST(phrase.text AS tsquery), 2)) AS rank
{found}
GROUP BY w.message
HAVING count(DISTINCT phrase.place) = json_array_length(CAST(:query AS json))
ORDER BY rank DESC, w.message DESC
LIMIT :limit OFFSET :offset
