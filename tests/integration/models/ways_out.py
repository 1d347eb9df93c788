"""Run as a child process: tries every way out, and says what came of each.

``python ways_out.py sealed|open CANARY_URL MODEL_URL`` prints a JSON object
``{way: "refused" | "out" | name of another error}``. Sealed or not, the same code runs.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from rag.errors import BoundaryRefused
from rag.models.egress import Egress, Endpoint
from rag.models.seal import seal_process

warnings.simplefilter("ignore")
WAYS: dict[str, Callable[..., Any]] = {}


def way(function: Callable[..., Any]) -> Callable[..., Any]:
    WAYS[function.__name__] = function
    return function


class AnyGuard:
    def check(self, *_: Any) -> None:
        return


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 80


@way
def urllib_(url: str) -> None:
    import urllib.request

    urllib.request.urlopen(url)


@way
def http_client(url: str) -> None:
    import http.client

    connection = http.client.HTTPConnection(*_address(url))
    connection.request("GET", "/v1/models")
    connection.getresponse()


@way
def requests_(url: str) -> None:
    import requests

    requests.get(url + "/models", timeout=5)


@way
def urllib3_(url: str) -> None:
    import urllib3

    urllib3.PoolManager(retries=False).request("GET", url + "/models")


@way
def httpx_(url: str) -> None:
    import httpx

    httpx.get(url + "/models")


@way
async def httpx_async(url: str) -> None:
    import httpx

    async with httpx.AsyncClient() as client:
        await client.get(url + "/models")


@way
def httpx2_(url: str) -> None:
    import httpx2

    httpx2.get(url + "/models")


@way
async def httpx2_async(url: str) -> None:
    import httpx2

    async with httpx2.AsyncClient() as client:
        await client.get(url + "/models")


@way
async def aiohttp_(url: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        await session.get(url + "/models")


@way
def websockets_sync(url: str) -> None:
    from websockets.sync.client import connect

    connect(url.replace("http", "ws", 1), open_timeout=2)


@way
async def websockets_async(url: str) -> None:
    from websockets.asyncio.client import connect

    await connect(url.replace("http", "ws", 1), open_timeout=2)


@way
def openai_(url: str) -> None:
    import openai

    openai.OpenAI(base_url=url, api_key="k", max_retries=0).models.list()


@way
async def openai_async(url: str) -> None:
    import openai

    await openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0).models.list()


@way
def langchain_openai_(url: str) -> None:
    from langchain_openai import ChatOpenAI

    ChatOpenAI(base_url=url, api_key="k", model="m", max_retries=0).invoke("hello")


@way
def langsmith_(url: str) -> None:
    import langsmith

    client = langsmith.Client(api_url=url, api_key="k", auto_batch_tracing=False)
    client.create_run("oda", {"question": "hello"}, "chain")


@way
def huggingface_hub_(url: str) -> None:
    from huggingface_hub import HfApi

    HfApi(endpoint=url).model_info("oda/kvist")


@way
async def tornado_(url: str) -> None:
    from tornado.httpclient import AsyncHTTPClient

    await AsyncHTTPClient().fetch(url + "/models")


@way
async def anyio_(url: str) -> None:
    import anyio

    await anyio.connect_tcp(*_address(url))


@way
async def asyncio_(url: str) -> None:
    await asyncio.open_connection(*_address(url))


@way
async def asyncio_in_a_thread(url: str) -> None:
    await asyncio.to_thread(socket.create_connection, _address(url))


class _Lost(asyncio.DatagramProtocol):
    """Keeps why asyncio gave its transport up."""

    reason: Exception | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.reason = exc


@way
async def asyncio_datagram(url: str) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    transport, protocol = await loop.create_datagram_endpoint(_Lost, local_addr=("127.0.0.1", 0))
    transport.sendto(b"oda", _address(url))
    await asyncio.sleep(0.05)
    transport.close()
    if protocol.reason:
        raise protocol.reason


@way
def in_a_thread(url: str) -> None:
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            socket.create_connection(_address(url))
        except BoundaryRefused as error:
            errors.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


@way
def connect_ex(url: str) -> None:
    socket.socket().connect_ex(_address(url))


@way
def connect_by_v6(url: str) -> None:
    host, port = _address(url)
    socket.socket(socket.AF_INET6).connect((f"::ffff:{host}", port))


@way
def udp(url: str) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"oda", _address(url))


@way
def udp_message(url: str) -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.sendmsg([b"oda"], [], 0, _address(url))


@way
def smtp(url: str) -> None:
    import smtplib

    smtplib.SMTP(*_address(url), timeout=0.3)


@way
def ftp(url: str) -> None:
    import ftplib

    ftplib.FTP(timeout=0.3).connect(*_address(url))


@way
def native_library(url: str) -> None:
    import hf_xet  # noqa: F401


NAME = "oda-kvistad.example.org"


@way
def lookup(url: str) -> None:
    socket.getaddrinfo(NAME, 443)


@way
def lookup_by_name(url: str) -> None:
    socket.gethostbyname(NAME)


@way
def lookup_by_name_ex(url: str) -> None:
    socket.gethostbyname_ex(NAME)


@way
def lookup_reverse(url: str) -> None:
    socket.gethostbyaddr("192.0.2.7")


@way
def lookup_service(url: str) -> None:
    socket.getnameinfo(("192.0.2.7", 80), 0)


@way
async def lookup_async(url: str) -> None:
    await asyncio.get_running_loop().getaddrinfo(NAME, 443)


@way
async def lookup_aiohttp(url: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        await session.get(f"http://{NAME}/")


@way
def guarded(model_url: str) -> None:
    egress = Egress(Endpoint.parse(model_url), 5)
    egress.client(AnyGuard()).get(model_url + "/models").raise_for_status()


@way
async def guarded_async(model_url: str) -> None:
    egress = Egress(Endpoint.parse(model_url), 5)
    (await egress.async_client(AnyGuard()).get(model_url + "/models")).raise_for_status()
    await egress.aclose()


@way
def guarded_elsewhere(url: str) -> None:
    """A door to a place that the process was not told of."""
    egress = Egress(Endpoint.parse(url), 5)
    egress.client(AnyGuard()).get(url + "/models")


def attempt(function: Callable[..., Any], url: str) -> str:
    try:
        result = function(url)
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except BaseException as error:
        return "refused" if _is_refusal(error) else type(error).__name__
    return "out"


def _is_refusal(error: BaseException | None) -> bool:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, BoundaryRefused) or "cannot be checked" in str(error):
            return True
        if isinstance(error, BaseExceptionGroup):
            return any(map(_is_refusal, error.exceptions))
        error = error.__cause__ or error.__context__
    return False


def main(mode: str, canary: str, model: str) -> None:
    if mode == "sealed":
        seal_process([model])
    outcomes = {}
    for name, function in WAYS.items():
        to_model = name in {"guarded", "guarded_async"}
        outcomes[name] = attempt(function, model if to_model else canary)
    print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
    import os

    os._exit(0)
