#!/bin/sh
# Run once by the Postgres image, in a new database, as its superuser: makes the login that
# the service comes with (no superuser, held by row-level security) and what only a superuser
# may make. The service's own migrations do the rest.
set -eu
SECRETS="${SECRETS:-/run/secrets}"
export SECRETS
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 \
  --username "${POSTGRES_USER:-postgres}" --dbname "${POSTGRES_DB:-veilrag}" <<'SQL'
\set password `cat "$SECRETS/veilrag_database_password"`
create role veilrag login nosuperuser nobypassrls nocreatedb nocreaterole password :'password';
select 'create role veilrag_app nologin nosuperuser nobypassrls'
where not exists (select from pg_roles where rolname = 'veilrag_app') \gexec
grant veilrag_app to veilrag;
select format('alter database %I owner to veilrag', current_database()) \gexec
create extension if not exists vector;
-- Under row-level security a full-text index serves only a function that is leakproof.
alter function pg_catalog.ts_match_vq(tsvector, tsquery) leakproof;
SQL
