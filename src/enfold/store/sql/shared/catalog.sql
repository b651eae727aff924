-- fragment: model_columns
id, max_input_tokens AS max_input, max_output_tokens AS max_output,
default_compression_threshold AS threshold, recommended_retention_tokens AS retention_tokens,
tokenizer, correction, source, own_values AS own

-- fragment: insert_model_config
INSERT INTO model_configs
    (id, provider, model, max_input_tokens, max_output_tokens, default_compression_threshold,
     recommended_retention_tokens, tokenizer, correction, source, own_values, created_at, last_updated)
VALUES
    (:id, :provider, :model, :max_input, :max_output,
     :threshold, :retention_tokens, :tokenizer, :correction, :source, :own, :now, :now)

-- name: model_configs
SELECT {model_columns} FROM model_configs
ORDER BY id

-- name: model_config
SELECT {model_columns} FROM model_configs
WHERE id = :id

-- name: put_model_config
{insert_model_config}
ON CONFLICT (id) DO UPDATE SET
    max_input_tokens = excluded.max_input_tokens,
    max_output_tokens = excluded.max_output_tokens,
    default_compression_threshold = excluded.default_compression_threshold,
    recommended_retention_tokens = excluded.recommended_retention_tokens,
    tokenizer = excluded.tokenizer,
    correction = excluded.correction,
    source = excluded.source,
    own_values = excluded.own_values,
    last_updated = excluded.last_updated

-- name: add_model_config
{insert_model_config}
ON CONFLICT (id) DO NOTHING

-- name: delete_model_config
DELETE FROM model_configs WHERE id = :id

-- name: profiles
SELECT name, fields, created_at, updated_at FROM profiles ORDER BY name

-- name: profile
SELECT name, fields, created_at, updated_at FROM profiles WHERE name = :name

-- name: put_profile
INSERT INTO profiles (name, fields, created_at, updated_at)
VALUES (:name, :fields, :now, :now)
ON CONFLICT (name) DO UPDATE SET fields = excluded.fields, updated_at = excluded.updated_at

-- name: delete_profile
DELETE FROM profiles WHERE name = :name

-- name: settings
SELECT key, value FROM settings WHERE scope = :scope ORDER BY key

-- name: put_setting
INSERT INTO settings (scope, key, value, updated_at) VALUES (:scope, :key, :value, :now)
ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at

-- name: delete_setting
DELETE FROM settings WHERE scope = :scope AND key = :key

-- name: insert_usage
INSERT INTO usage_events
    (session, message_id, snapshot_id, kind, profile, model, input_tokens, cached_tokens,
     output_tokens, cost, created_at, namespace, session_name)
VALUES
    (:session, :message_id, :snapshot_id, :kind, :profile, :model, :input_tokens, :cached_tokens,
     :output_tokens, :cost, :created_at, :namespace, :session_name)

-- fragment: usage_total
SELECT kind, profile, model, count(*) AS calls,
    CAST(coalesce(sum(input_tokens), 0) AS bigint) AS input_tokens,
    CAST(coalesce(sum(cached_tokens), 0) AS bigint) AS cached_tokens,
    CAST(coalesce(sum(output_tokens), 0) AS bigint) AS output_tokens,
    coalesce(sum(cost), 0.0) AS cost,
    count(*) - count(cost) AS unknown_costs
FROM usage_events

-- fragment: unclaimed_usage
session IS NULL
    AND namespace = (SELECT namespace FROM sessions WHERE key = :session)
    AND session_name = (SELECT id FROM sessions WHERE key = :session)

-- name: usage_of_session
-- With usage from before the session was stored.
{usage_total}
WHERE (session = :session OR {unclaimed_usage}) AND created_at >= :since
GROUP BY kind, profile, model
ORDER BY kind, profile, model

-- name: last_input_of_session
SELECT input_tokens, created_at FROM usage_events
WHERE session = :session AND kind = 'reply'
ORDER BY created_at DESC, seq DESC
LIMIT 1

-- name: usage_of_namespace
{usage_total}
WHERE (session IN (SELECT key FROM sessions WHERE namespace = :namespace OR listed_in = :namespace)
        OR session IS NULL AND (namespace = :namespace OR namespace >= :prefix AND namespace < :end))
    AND created_at >= :since
GROUP BY kind, profile, model
ORDER BY kind, profile, model

-- name: delete_unclaimed_usage
DELETE FROM usage_events WHERE {unclaimed_usage}
