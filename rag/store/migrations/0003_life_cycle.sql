-- The life cycle of documents: which bytes and which folder a document came from, content that is
-- too long to be held whole, and the words about a document in the full-text search.

-- file_hash tells an unchanged file before it is converted; origin is a digest of the folder that
-- is kept in step with the collection, null for what came by itself.
alter table veilrag.documents add column file_hash text;
alter table veilrag.documents add column origin text;
create index documents_origin on veilrag.documents (tenant, collection, origin)
    where origin is not null;

-- The content of a document that was read in parts; its own content is empty then.
create table veilrag.contents (
    tenant uuid not null,
    document uuid not null,
    n integer not null,
    text text not null,
    primary key (tenant, document, n),
    foreign key (tenant, document) references veilrag.documents (tenant, id) on delete cascade
);
alter table veilrag.contents enable row level security;
alter table veilrag.contents force row level security;
create policy own_tenant on veilrag.contents
    using (tenant = (select veilrag.tenant())) with check (tenant = (select veilrag.tenant()));
grant select, insert, update, delete on veilrag.contents to veilrag_app;

-- A document's first chunk is also found by the words of its source and metadata.
alter table veilrag.chunks add column about text not null default '';
alter table veilrag.chunks drop column tsv;
drop function veilrag.search_vector(text, text, text);
create function veilrag.search_vector(language text, heading text, body text, about text)
    returns tsvector
    language sql immutable strict parallel safe
    as $$
        select to_tsvector(veilrag.text_config(language),
            left(heading || E'\n' || body || E'\n' || about, 200000))
    $$;
alter table veilrag.chunks add column tsv tsvector
    generated always as (veilrag.search_vector(language, heading, text, about)) stored;
create index chunks_words on veilrag.chunks using gin (tsv);

create or replace view veilrag.incoming_chunks with (security_invoker) as
    select tenant, id, collection, document, n, start, stop, heading, headings, page, text,
        language, space, embedding, about
    from veilrag.chunks;
create or replace function veilrag.insert_chunk() returns trigger language plpgsql as $$
begin
    insert into veilrag.chunks (tenant, id, collection, document, n, start, stop, heading,
        headings, page, text, language, space, embedding, about)
    values (new.tenant, new.id, new.collection, new.document, new.n, new.start, new.stop,
        new.heading, new.headings, new.page, new.text, new.language, new.space, new.embedding,
        new.about);
    return new;
end
$$;

-- The parts of one document may give the same form: it is weak only where every part says so.
create or replace function veilrag.insert_alias() returns trigger language plpgsql as $$
begin
    insert into veilrag.aliases (tenant, collection, document, first, form, words, type, weak)
    values (new.tenant, new.collection, new.document, new.first, new.form, new.words, new.type,
        new.weak)
    on conflict (tenant, document, form, type) do update set weak = false
        where aliases.weak and not excluded.weak;
    return new;
end
$$;
