-- Version 15. Counting the sessions that use a profile reads only those sessions.

CREATE INDEX sessions_by_profile ON sessions (profile) WHERE profile IS NOT NULL;
