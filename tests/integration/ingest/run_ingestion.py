"""A process that ingests a folder, to be killed: ``python run_ingestion.py URL FOLDER``.

Worker processes, converters, database and pipeline are the real ones; the detector is the fake
one that knows a few names, so that the run is short. Prints ``begun``, ``stored`` after its
first document, ``done``.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

from rag.ingest.pipeline import Ingestor, Progress
from rag.ingest.sync import found_in, synchronize
from rag.ingest.workers import Recipe
from rag.privacy.forms import FormHasher
from rag.privacy.policy import load_policy
from rag.store import Store
from rag.testing.database import database_settings
from rag.testing.fakes import BagEmbedder, NameDetector

NAMES = ["Ottoline Farouk", "Bo Amadi"]


async def main(url: str, folder: Path) -> None:
    settings = database_settings(url, pool_size=4, chunk_chars=150, ingest_workers=2)
    async with Store.open(settings) as store:
        secret = store.subkey("aliases")
        documents = store.documents(store.default_tenant)
        ingestor = Ingestor(
            settings=settings,
            detector=NameDetector(NAMES),
            embedder=BagEmbedder(),
            store=documents,
            hasher=FormHasher(secret),
            policy=load_policy("default"),
            recipe=Recipe(partial(NameDetector, NAMES), None, secret),
        )
        files, there = found_in([folder])
        print("begun", flush=True)
        told: list[Progress] = []

        def on_progress(now: Progress) -> None:
            if now.chunks and not told:
                told.append(now)
                print("stored", flush=True)

        await synchronize(ingestor, documents, files, there, on_progress=on_progress)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
