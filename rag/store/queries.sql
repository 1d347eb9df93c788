-- Every statement of the store. A line "-- name --" begins one, the comment under it says what
-- it is for; parameters are psycopg's %(name)s. Row-level security is never repeated here: a
-- statement sees the rows of its transaction's tenant only.

-- open_transaction --
-- First in every transaction: the role and the tenant, both local to it.
select set_config('role', %(role)s, true),
    set_config('veilrag.tenant', %(tenant)s, true),
    set_config('statement_timeout', %(timeout)s, true)

-- ping --
-- Are the tables there and readable?
select count(*) from veilrag.migrations

-- role_powers --
-- What the role in force may do that it must not: (superuser, bypasses RLS, owns a table of ours).
select r.rolsuper, r.rolbypassrls, exists (
        select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'veilrag' and c.relkind in ('r', 'p')
            and pg_has_role(current_user, c.relowner, 'MEMBER'))
from pg_roles r where r.rolname = current_user

-- open_tables --
-- Tables with a tenant in them that are not under forced row-level security: must be none.
select c.relname
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'veilrag' and c.relkind in ('r', 'p')
    and not (c.relrowsecurity and c.relforcerowsecurity)
    and (c.relname = 'tenants' or exists (
        select from pg_attribute a
        where a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped))

-- keep_fingerprint --
-- Remember which secret the hashes are made with, the first time.
insert into veilrag.key_fingerprint (fingerprint) values (%(fingerprint)s) on conflict do nothing

-- fingerprint --
-- Which secret the hashes are made with.
select fingerprint from veilrag.key_fingerprint

-- add_space --
-- Make an embedding space known.
insert into veilrag.spaces (model, dimension) values (%(model)s, %(dimension)s)
on conflict do nothing

-- space --
-- The number of an embedding space.
select id from veilrag.spaces where model = %(model)s and dimension = %(dimension)s

-- collections --
-- Collections by name: (id, name, space's number, model, dimension, languages, holds documents).
select c.id, c.name, c.space, s.model, s.dimension, c.languages,
    exists (select from veilrag.documents d
            where d.tenant = veilrag.tenant() and d.collection = c.id)
from veilrag.collections c left join veilrag.spaces s on s.id = c.space
where c.name = any(%(names)s)

-- all_collections --
-- Every collection of the tenant.
select id from veilrag.collections

-- add_collection --
-- Make a collection, unless it is there.
insert into veilrag.collections (tenant, id, name, space)
values (veilrag.tenant(), %(id)s, %(name)s, %(space)s)
on conflict (tenant, name) do nothing

-- set_space --
-- Give an empty collection its space; the foreign key of documents refuses it for any other.
update veilrag.collections set space = %(space)s where id = %(id)s

-- add_language --
-- Remember that a collection holds a language.
update veilrag.collections set languages = array_append(languages, %(language)s)
where id = %(id)s and not %(language)s = any(languages)

-- find_document --
-- (id, content hash, detector) of a source in a collection.
select d.id, d.content_hash, d.detector
from veilrag.documents d join veilrag.collections c on c.tenant = d.tenant and c.id = d.collection
where c.name = %(collection)s and d.source = %(source)s

-- known_documents --
-- What is stored under these sources of a collection: (source, id, content hash, detector, file
-- hash, origin, chunks, entities).
select d.source, d.id, d.content_hash, d.detector, d.file_hash, d.origin, d.chunk_count, d.entities
from veilrag.documents d join veilrag.collections c on c.tenant = d.tenant and c.id = d.collection
where c.name = %(collection)s and d.source = any(%(sources)s)

-- documents_of_origin --
-- The documents of a collection that came from a folder: (source, id).
select d.source, d.id
from veilrag.documents d join veilrag.collections c on c.tenant = d.tenant and c.id = d.collection
where c.name = %(collection)s and d.origin = %(origin)s
order by d.source

-- mark_document --
-- Remember which bytes and which folder an unchanged document came from.
update veilrag.documents set file_hash = %(file_hash)s, origin = %(origin)s where id = %(id)s

-- put_document --
-- Store a document or its new version under the same id: (id, is it new).
insert into veilrag.documents (tenant, id, collection, space, source, content_hash, content,
    metadata, facts, language, detector, chunk_count, entities, file_hash, origin)
values (veilrag.tenant(), %(id)s, %(collection)s, %(space)s, %(source)s, %(content_hash)s,
    %(content)s, %(metadata)s::json, %(metadata)s::jsonb, %(language)s, %(detector)s, %(chunks)s,
    %(entities)s::jsonb, %(file_hash)s, %(origin)s)
on conflict (tenant, collection, source) do update set
    space = excluded.space, content_hash = excluded.content_hash, content = excluded.content,
    metadata = excluded.metadata, facts = excluded.facts, language = excluded.language,
    detector = excluded.detector, chunk_count = excluded.chunk_count,
    entities = excluded.entities, file_hash = excluded.file_hash, origin = excluded.origin,
    updated_at = now()
returning id, xmax = 0

-- drop_chunks --
-- Take the old version's chunks away.
delete from veilrag.chunks where document = %(id)s

-- drop_contents --
-- Take the old version's parts away.
delete from veilrag.contents where document = %(id)s

-- add_content --
-- One part of the content of a document that is read in parts.
insert into veilrag.contents (tenant, document, n, text)
values (veilrag.tenant(), %(id)s, %(n)s, %(text)s)

-- finish_document --
-- What is known of a document only when its last part was read.
update veilrag.documents set content_hash = %(content_hash)s, chunk_count = %(chunks)s,
    entities = %(entities)s::jsonb
where id = %(id)s

-- content_parts --
-- The content of a document that was read in parts.
select coalesce(string_agg(text, '' order by n), '') from veilrag.contents where document = %(id)s

-- drop_spans --
-- Take a document's spans away.
delete from veilrag.spans where document = %(id)s

-- drop_aliases --
-- Take the forms away that a document gave.
delete from veilrag.aliases where document = %(id)s

-- copy_chunks --
-- Binary COPY of a document's chunks.
copy veilrag.incoming_chunks (tenant, id, collection, document, n, start, stop, heading, headings, page,
    text, language, space, embedding, about) from stdin (format binary)

-- copy_spans --
-- Binary COPY of a document's spans.
copy veilrag.incoming_spans (tenant, document, start, stop, type, score) from stdin (format binary)

-- copy_aliases --
-- Binary COPY of the forms that a document gives.
copy veilrag.incoming_aliases (tenant, collection, document, first, form, words, type, weak)
from stdin (format binary)

-- list_documents --
-- A page of a collection's documents, oldest first (ids grow with time).
select d.id, d.source, c.name, d.chunk_count, d.entities, d.metadata, d.language, d.detector,
    d.created_at
from veilrag.documents d join veilrag.collections c on c.tenant = d.tenant and c.id = d.collection
where c.name = %(collection)s and (%(after)s::uuid is null or d.id > %(after)s::uuid)
order by d.id limit %(limit)s

-- get_document --
-- One document as it is listed, then its content.
select d.id, d.source, c.name, d.chunk_count, d.entities, d.metadata, d.language, d.detector,
    d.created_at, d.content
from veilrag.documents d join veilrag.collections c on c.tenant = d.tenant and c.id = d.collection
where d.id = %(id)s

-- document_spans --
-- A document's spans in order.
select start, stop, type, score from veilrag.spans where document = %(id)s
order by start, stop, type

-- delete_document --
-- Delete a document; its chunks, spans and forms go with it.
delete from veilrag.documents where id = %(id)s returning id

-- stale_documents --
-- Documents whose spans another detector version found.
select id from veilrag.documents where detector <> %(detector)s order by id limit %(limit)s

-- lock_document --
-- Hold a document while its spans are exchanged: (its collection).
select collection from veilrag.documents where id = %(id)s for no key update

-- set_detector --
-- Remember which detector version found a document's spans, and how many of each type.
update veilrag.documents set detector = %(detector)s, entities = %(entities)s::jsonb
where id = %(id)s

-- dense_exact --
-- Nearest chunks by cosine, exact: the candidates are laid out first, so that no approximate
-- index can be chosen, whatever the planner thinks.
with candidate as materialized (
    select c.id, c.embedding <=> %(embedding)s::halfvec as distance
    from veilrag.chunks c
        join veilrag.documents d on d.tenant = c.tenant and d.id = c.document
    where c.collection = any(%(collections)s) and c.space = %(space)s
        and c.embedding is not null
        and (%(filters)s::jsonb = '{}'::jsonb or veilrag.matches(d.facts, %(filters)s::jsonb))
), nearest as materialized (
    select id, distance from candidate order by distance, id limit %(limit)s
)
select c.id, c.document, d.source, c.n, c.start, c.stop, c.text, c.heading, c.page,
    1 - nearest.distance
from nearest
    join veilrag.chunks c on c.id = nearest.id
    join veilrag.documents d on d.tenant = c.tenant and d.id = c.document
order by nearest.distance, c.id

-- lexical --
-- Chunks that hold any word of the query, by rank over the logarithm of their length.
with candidate as materialized (
    select c.id, ts_rank(c.tsv, veilrag.any_word(%(languages)s, %(query)s), 1) as rank
    from veilrag.chunks c
        join veilrag.documents d on d.tenant = c.tenant and d.id = c.document
    where c.collection = any(%(collections)s)
        and c.tsv @@ veilrag.any_word(%(languages)s, %(query)s)
        and (%(filters)s::jsonb = '{}'::jsonb or veilrag.matches(d.facts, %(filters)s::jsonb))
), best as materialized (
    select id, rank from candidate order by rank desc, id limit %(limit)s
)
select c.id, c.document, d.source, c.n, c.start, c.stop, c.text, c.heading, c.page, best.rank
from best
    join veilrag.chunks c on c.id = best.id
    join veilrag.documents d on d.tenant = c.tenant and d.id = c.document
order by best.rank desc, c.id

-- chunk_spans --
-- Spans that touch these chunks or their headings, and which detector found them; a chunk without any comes once, with nulls.
select c.id, c.start, c.stop, c.headings, d.detector, s.start, s.stop, s.type, s.score
from veilrag.chunks c
    join veilrag.documents d on d.tenant = c.tenant and d.id = c.document
    left join veilrag.spans s
    on s.tenant = c.tenant and s.document = c.document and (
        s.start < c.stop and s.stop > c.start
        or exists (
            select from generate_series(1, cardinality(c.headings), 2) as i
            where s.start < c.headings[i + 1] and s.stop > c.headings[i]))
where c.id = any(%(chunks)s)
order by c.id, s.start

-- known_first --
-- Those of the hashes that some known form begins with.
select distinct first from veilrag.aliases
where collection = any(%(collections)s) and first = any(%(hashes)s)

-- known_forms --
-- The known forms among the hashes. A form is weak only where every document says so.
select first, form, words, type, bool_and(weak) from veilrag.aliases
where collection = any(%(collections)s) and form = any(%(hashes)s)
group by first, form, words, type
order by form, type

-- server_facts --
-- What serves: (version, pgvector's version or null, the login is a superuser or passes by row rules).
select current_setting('server_version'),
    (select extversion from pg_extension where extname = 'vector'),
    (select rolsuper or rolbypassrls from pg_roles where rolname = session_user)

-- logging_settings --
-- What decides over the words that the server's log shows of statements.
select name, setting from pg_settings where name = any(%(names)s)
