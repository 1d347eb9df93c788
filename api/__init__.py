"""The HTTP service: thin entry points over the engine, under ``rag.engine`` and nothing else.

``create_app`` builds it, ``serve`` runs it. What holds here for every answer, also a
failed one: the error contract, the request id, no user text in a log or an error (I6),
no foreign ``Host`` or ``Origin`` (I12).
"""
