-- Who may do what. veilrag_app serves requests: neither superuser, owner nor BYPASSRLS.

do $$
declare
    name text;
begin
    foreach name in array array[
        'collections', 'documents', 'chunks', 'spans', 'aliases', 'subjects', 'subject_chunks',
        'key_collections', 'threads', 'turns', 'thread_mapping'
    ] loop
        execute format('alter table veilrag.%I enable row level security', name);
        execute format('alter table veilrag.%I force row level security', name);
        execute format(
            'create policy own_tenant on veilrag.%I '
            'using (tenant = (select veilrag.tenant())) '
            'with check (tenant = (select veilrag.tenant()))', name);
        execute format('grant select, insert, update, delete on veilrag.%I to veilrag_app', name);
    end loop;
end
$$;

alter table veilrag.tenants enable row level security;
alter table veilrag.tenants force row level security;
create policy own_tenant on veilrag.tenants
    using (id = (select veilrag.tenant())) with check (id = (select veilrag.tenant()));
grant select, insert, update, delete on veilrag.tenants to veilrag_app;

-- A key is looked up before its tenant is known: whoever presents its hash sees that one row.
alter table veilrag.api_keys enable row level security;
alter table veilrag.api_keys force row level security;
create policy own_tenant on veilrag.api_keys
    using (tenant = (select veilrag.tenant())) with check (tenant = (select veilrag.tenant()));
create policy presented on veilrag.api_keys for select
    using (key_hash = (select decode(nullif(current_setting('veilrag.key_hash', true), ''), 'hex')));
grant select, insert, update, delete on veilrag.api_keys to veilrag_app;

grant usage on schema veilrag to veilrag_app;
grant select, insert on veilrag.spaces to veilrag_app;
grant select, insert on veilrag.key_fingerprint to veilrag_app;
grant select on veilrag.migrations to veilrag_app;
grant insert on veilrag.incoming_chunks to veilrag_app;
grant insert on veilrag.incoming_spans to veilrag_app;
grant insert on veilrag.incoming_aliases to veilrag_app;

-- The statistics of the planner hold values of a column, also when their rows are gone, in a
-- catalog that a purge of our tables would not reach: so none of text.
alter table veilrag.documents alter column source set statistics 0;
alter table veilrag.documents alter column content set statistics 0;
alter table veilrag.documents alter column metadata set statistics 0;
alter table veilrag.documents alter column facts set statistics 0;
alter table veilrag.documents alter column entities set statistics 0;
alter table veilrag.documents alter column content_hash set statistics 0;
alter table veilrag.chunks alter column heading set statistics 0;
alter table veilrag.chunks alter column text set statistics 0;
alter table veilrag.chunks alter column tsv set statistics 0;
alter table veilrag.chunks alter column embedding set statistics 0;
alter table veilrag.aliases alter column first set statistics 0;
alter table veilrag.aliases alter column form set statistics 0;
alter table veilrag.threads alter column name set statistics 0;
alter table veilrag.turns alter column sealed set statistics 0;
alter table veilrag.thread_mapping alter column sealed set statistics 0;
alter table veilrag.thread_mapping alter column subject_hash set statistics 0;
alter table veilrag.subjects alter column sealed set statistics 0;
alter table veilrag.subjects alter column key_hash set statistics 0;

-- Under row-level security a GIN index serves @@ only when its function is leakproof. Only a
-- superuser may say so; elsewhere full-text search is right all the same, and slower.
do $$
begin
    alter function pg_catalog.ts_match_vq(tsvector, tsquery) leakproof;
exception when insufficient_privilege then
    null;
end
$$;

-- One tenant until keys name others.
select set_config('veilrag.tenant', '00000000-0000-0000-0000-000000000001', true);
insert into veilrag.tenants (id, name)
    values ('00000000-0000-0000-0000-000000000001', 'default');
insert into veilrag.collections (tenant, id, name) values (
    '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000001', 'default');
select set_config('veilrag.tenant', '', true);
