-- Version 14. The values of a model config that were set for that model: they beat the settings for all
-- models. Before, only another threshold than the usual one did, and retention tokens of an edited config.

ALTER TABLE model_configs ADD COLUMN own_values TEXT NOT NULL DEFAULT '';

UPDATE model_configs SET own_values = 'threshold' WHERE default_compression_threshold <> 0.95;

UPDATE model_configs SET own_values = trim('retention_tokens ' || own_values)
WHERE source = 'manual' AND recommended_retention_tokens NOT IN (1000, 1500, 2000);
