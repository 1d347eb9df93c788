"""The store: Postgres with pgvector, embedded or by ``DATABASE_URL``.

It lies inside the trust boundary: document text is kept in clear in ``documents`` and
``chunks`` (and so in the data files); forms of subjects only as keyed hashes; what threads
will hold sealed. Who can read the data directory can read the documents: encrypt the disk
where that matters. Importing this package opens and starts nothing (I11).
"""

from rag.store.store import Store as Store
from rag.store.store import migrate_database as migrate_database
from rag.store.store import purge_database as purge_database
