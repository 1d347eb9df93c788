# The HTTP API as an ordinary user. The steps are the README's: a venv, then an install that
# the lock constrains. Postgres with pgvector stands beside it, see docker-compose.yml.
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends tesseract-ocr \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --shell /usr/sbin/nologin veilrag \
 && install -d -m 0755 -o veilrag -g veilrag /opt/veilrag \
 && install -d -m 0700 -o veilrag -g veilrag /var/lib/veilrag

USER veilrag
WORKDIR /opt/veilrag
COPY --chown=veilrag:veilrag pyproject.toml requirements.lock README.md LICENSE ./
COPY --chown=veilrag:veilrag rag ./rag
COPY --chown=veilrag:veilrag api ./api
COPY --chown=veilrag:veilrag eval ./eval
RUN python -m venv .venv
RUN .venv/bin/python -m pip install --no-cache-dir --disable-pip-version-check -c requirements.lock .

ENV PATH=/opt/veilrag/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    VEILRAG_DATA_DIR=/var/lib/veilrag
WORKDIR /var/lib/veilrag
EXPOSE 8000
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=15s --timeout=6s --start-period=90s --retries=4 \
  CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8000/readyz', timeout=5)"]

# Beyond loopback the service starts with API keys only.
CMD ["veilrag", "serve", "--host", "0.0.0.0", "--port", "8000"]
