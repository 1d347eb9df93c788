-- The whole data model. Every tenant table is under forced row-level security: a row is seen
-- and written only while veilrag.tenant names its tenant. No setting, no rows.

create schema if not exists veilrag;

create function veilrag.tenant() returns uuid
    language sql stable parallel safe
    as $$ select nullif(current_setting('veilrag.tenant', true), '')::uuid $$;

-- Text search configuration of a language tag ("de", "de-AT"); what is not known is not stemmed.
create function veilrag.text_config(language text) returns regconfig
    language sql immutable strict parallel safe
    as $$
        select case split_part(lower(language), '-', 1)
            when 'ar' then 'pg_catalog.arabic'::regconfig
            when 'da' then 'pg_catalog.danish'::regconfig
            when 'de' then 'pg_catalog.german'::regconfig
            when 'el' then 'pg_catalog.greek'::regconfig
            when 'en' then 'pg_catalog.english'::regconfig
            when 'es' then 'pg_catalog.spanish'::regconfig
            when 'fi' then 'pg_catalog.finnish'::regconfig
            when 'fr' then 'pg_catalog.french'::regconfig
            when 'hu' then 'pg_catalog.hungarian'::regconfig
            when 'id' then 'pg_catalog.indonesian'::regconfig
            when 'it' then 'pg_catalog.italian'::regconfig
            when 'lt' then 'pg_catalog.lithuanian'::regconfig
            when 'nl' then 'pg_catalog.dutch'::regconfig
            when 'no' then 'pg_catalog.norwegian'::regconfig
            when 'nb' then 'pg_catalog.norwegian'::regconfig
            when 'nn' then 'pg_catalog.norwegian'::regconfig
            when 'pt' then 'pg_catalog.portuguese'::regconfig
            when 'ro' then 'pg_catalog.romanian'::regconfig
            when 'ru' then 'pg_catalog.russian'::regconfig
            when 'sr' then 'pg_catalog.serbian'::regconfig
            when 'sv' then 'pg_catalog.swedish'::regconfig
            when 'tr' then 'pg_catalog.turkish'::regconfig
            else 'pg_catalog.simple'::regconfig
        end
    $$;

-- The cut keeps a tsvector under its limit of one megabyte, whatever the text.
create function veilrag.search_vector(language text, heading text, body text) returns tsvector
    language sql immutable strict parallel safe
    as $$
        select to_tsvector(veilrag.text_config(language), left(heading || E'\n' || body, 200000))
    $$;

-- The words of a text joined by OR, in each of the languages. The text is never read as query
-- syntax: it goes through the parser of documents, and each lexeme is quoted.
create function veilrag.any_word(languages text[], body text) returns tsquery
    language sql immutable strict parallel safe
    as $$
        select string_agg(distinct
            '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
        from unnest(languages) as language,
            unnest(tsvector_to_array(
                to_tsvector(veilrag.text_config(language), left(body, 20000)))) as lexeme
    $$;

-- Every key of the filters ({key: [values]}) has one of its values in the facts.
create function veilrag.matches(facts jsonb, filters jsonb) returns boolean
    language sql immutable strict parallel safe
    as $$
        select not exists (
            select from jsonb_each(filters) as filter
            where not exists (
                select from jsonb_array_elements(filter.value) as wanted
                where wanted.value = facts -> filter.key))
    $$;

create table veilrag.tenants (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null default now()
);

-- Embedding models are the same for all tenants and tell nothing of any.
create table veilrag.spaces (
    id integer generated always as identity primary key,
    model text not null,
    dimension integer not null check (dimension between 1 and 16000),
    unique (model, dimension)
);

-- A collection takes the space of its first document; while it holds any, the foreign key of
-- documents keeps the space from changing.
create table veilrag.collections (
    tenant uuid not null references veilrag.tenants (id) on delete cascade,
    id uuid primary key,
    name text not null,
    space integer references veilrag.spaces (id),
    languages text[] not null default '{}',
    created_at timestamptz not null default now(),
    unique (tenant, name),
    unique (tenant, id, space),
    unique (tenant, id)
);

-- metadata is kept as it came, for offsets count in it; facts is its searchable form.
create table veilrag.documents (
    tenant uuid not null,
    id uuid not null,
    collection uuid not null,
    space integer not null,
    source text not null,
    content_hash text not null,
    content text not null,
    metadata json not null,
    facts jsonb not null,
    language text not null,
    detector text not null,
    chunk_count integer not null,
    entities jsonb not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant, id),
    unique (tenant, collection, source),
    foreign key (tenant, collection, space) references veilrag.collections (tenant, id, space)
        on delete cascade
);
create index documents_page on veilrag.documents (tenant, collection, id);

-- start and stop count characters of the document's content; headings is start, stop, ... of its
-- heading path, outermost first. embedding has no length: each space has its own dimension.
create table veilrag.chunks (
    tenant uuid not null,
    id uuid primary key,
    collection uuid not null,
    document uuid not null,
    n integer not null,
    start integer not null,
    stop integer not null,
    heading text not null,
    headings integer[] not null,
    page integer,
    text text not null,
    language text not null,
    space integer not null,
    embedding halfvec,
    tsv tsvector generated always as (veilrag.search_vector(language, heading, text)) stored,
    unique (tenant, document, n),
    unique (tenant, id),
    foreign key (tenant, document) references veilrag.documents (tenant, id) on delete cascade
);
-- Keep vectors in the row and move long text out of it, so that an exact scan reads little.
alter table veilrag.chunks alter column embedding set storage main;
create index chunks_space on veilrag.chunks (tenant, collection, space);
create index chunks_words on veilrag.chunks using gin (tsv);

-- start and stop count characters of the document's surface: content, source, metadata.
create table veilrag.spans (
    tenant uuid not null,
    document uuid not null,
    start integer not null,
    stop integer not null,
    type text not null,
    score real not null,
    subject uuid,
    foreign key (tenant, document) references veilrag.documents (tenant, id) on delete cascade
);
create index spans_place on veilrag.spans (tenant, document, start);

-- Keyed hashes of the forms of every subject found; they belong to the document that gave them.
create table veilrag.aliases (
    tenant uuid not null,
    collection uuid not null,
    document uuid not null,
    first bigint not null,
    form bigint not null,
    words smallint not null,
    type text not null,
    weak boolean not null,
    primary key (tenant, document, form, type),
    foreign key (tenant, document) references veilrag.documents (tenant, id) on delete cascade
);
create index aliases_first on veilrag.aliases (tenant, collection, first);
create index aliases_form on veilrag.aliases (tenant, collection, form);

-- Subjects of documents, linked over documents.
create table veilrag.subjects (
    tenant uuid not null,
    id uuid not null,
    collection uuid not null,
    type text not null,
    key_hash bytea not null,
    sealed bytea,
    primary key (tenant, id),
    unique (tenant, collection, type, key_hash),
    foreign key (tenant, collection) references veilrag.collections (tenant, id) on delete cascade
);
alter table veilrag.spans add foreign key (tenant, subject)
    references veilrag.subjects (tenant, id) on delete set null (subject);
create index spans_subject on veilrag.spans (tenant, subject) where subject is not null;

create table veilrag.subject_chunks (
    tenant uuid not null,
    subject uuid not null,
    chunk uuid not null,
    primary key (tenant, subject, chunk),
    foreign key (tenant, subject) references veilrag.subjects (tenant, id) on delete cascade,
    foreign key (tenant, chunk) references veilrag.chunks (tenant, id) on delete cascade
);
create index subject_chunks_chunk on veilrag.subject_chunks (tenant, chunk);

create table veilrag.api_keys (
    tenant uuid not null references veilrag.tenants (id) on delete cascade,
    id uuid not null,
    name text not null,
    key_hash bytea not null unique,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    primary key (tenant, id)
);

create table veilrag.key_collections (
    tenant uuid not null,
    key uuid not null,
    collection uuid not null,
    may_write boolean not null default false,
    primary key (tenant, key, collection),
    foreign key (tenant, key) references veilrag.api_keys (tenant, id) on delete cascade,
    foreign key (tenant, collection) references veilrag.collections (tenant, id) on delete cascade
);

-- The client names its threads; a key's threads are its own (null: no keys are in use).
create table veilrag.threads (
    tenant uuid not null references veilrag.tenants (id) on delete cascade,
    id uuid not null,
    key uuid,
    name text not null,
    nonce text not null,
    policy text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant, id),
    unique nulls not distinct (tenant, key, name),
    foreign key (tenant, key) references veilrag.api_keys (tenant, id) on delete cascade
);

create table veilrag.turns (
    tenant uuid not null,
    thread uuid not null,
    n integer not null,
    role text not null,
    sealed bytea not null,
    created_at timestamptz not null default now(),
    primary key (tenant, thread, n),
    foreign key (tenant, thread) references veilrag.threads (tenant, id) on delete cascade
);

create table veilrag.thread_mapping (
    tenant uuid not null,
    thread uuid not null,
    placeholder text not null,
    type text not null,
    number integer not null,
    subject_hash bytea not null,
    sealed bytea not null,
    primary key (tenant, thread, placeholder),
    unique (tenant, thread, subject_hash),
    unique (tenant, thread, type, number),
    foreign key (tenant, thread) references veilrag.threads (tenant, id) on delete cascade
);

-- Tells whether the service runs under the key that the hashes were made with.
create table veilrag.key_fingerprint (
    one boolean primary key default true check (one),
    fingerprint bytea not null
);

-- COPY refuses a table under row-level security, but not a view whose rows a trigger inserts:
-- binary COPY goes through these three, and each row through the policies of its table.
create view veilrag.incoming_chunks with (security_invoker) as
    select tenant, id, collection, document, n, start, stop, heading, headings, page, text,
        language, space, embedding
    from veilrag.chunks;
create view veilrag.incoming_spans with (security_invoker) as
    select tenant, document, start, stop, type, score from veilrag.spans;
create view veilrag.incoming_aliases with (security_invoker) as
    select tenant, collection, document, first, form, words, type, weak from veilrag.aliases;

create function veilrag.insert_chunk() returns trigger language plpgsql as $$
begin
    insert into veilrag.chunks (tenant, id, collection, document, n, start, stop, heading,
        headings, page, text, language, space, embedding)
    values (new.tenant, new.id, new.collection, new.document, new.n, new.start, new.stop,
        new.heading, new.headings, new.page, new.text, new.language, new.space, new.embedding);
    return new;
end
$$;
create function veilrag.insert_span() returns trigger language plpgsql as $$
begin
    insert into veilrag.spans (tenant, document, start, stop, type, score)
    values (new.tenant, new.document, new.start, new.stop, new.type, new.score);
    return new;
end
$$;
create function veilrag.insert_alias() returns trigger language plpgsql as $$
begin
    insert into veilrag.aliases (tenant, collection, document, first, form, words, type, weak)
    values (new.tenant, new.collection, new.document, new.first, new.form, new.words, new.type,
        new.weak);
    return new;
end
$$;
create trigger arrive instead of insert on veilrag.incoming_chunks
    for each row execute function veilrag.insert_chunk();
create trigger arrive instead of insert on veilrag.incoming_spans
    for each row execute function veilrag.insert_span();
create trigger arrive instead of insert on veilrag.incoming_aliases
    for each row execute function veilrag.insert_alias();
