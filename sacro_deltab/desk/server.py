"""The desk: pages for one checker, served to this machine alone.

Whoever can read the address once printed in the terminal gets in, once: the token in it buys a cookie that no other
site can use, and is void afterwards. Every answer forbids scripts, styles and pictures from anywhere else, and storing.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from ..base.errors import SacroDeltabError
from .desk import Answer, Desk

STATIC = Path(__file__).parent / "static"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_MOST = 256 * 1024  # bytes of one form
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


class DeskServer(ThreadingHTTPServer):
    """A server on a free port of the loopback address; `url` lets in whoever opens it first."""

    daemon_threads = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.desk = desk
        self.token: str | None = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)
        self.host = f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """Address to open, once."""
        return f"http://{self.host}/?token={self.token}"


class _Handler(BaseHTTPRequestHandler):
    server: DeskServer
    server_version, sys_version = "sacro-deltab", ""
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: addresses hold a token."""

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def _answered(self, work: Callable[[], Answer | None]) -> None:
        if self.headers.get("Host") != self.server.host:
            self._send(Answer("This desk is served under its own address alone.", HTTPStatus.MISDIRECTED_REQUEST))
            return
        try:
            answer = work()
        except SacroDeltabError as error:
            answer = Answer(self.server.desk.trouble(error), HTTPStatus.BAD_REQUEST, html=True)
        except Exception as error:  # nothing of its text: it may hold what stays inside
            answer = Answer(f"This page could not be made ({type(error).__name__}).", HTTPStatus.INTERNAL_SERVER_ERROR)
        if answer is not None:
            self._send(answer)

    def _get(self) -> Answer | None:
        at = urlsplit(self.path)
        token = parse_qs(at.query).get("token")
        if token is not None:
            return self._let_in(token[0])
        if not self._known():
            return Answer("Open the address that the terminal printed.", HTTPStatus.FORBIDDEN)
        if at.path.startswith("/static/"):
            return self._static(at.path.removeprefix("/static/"))
        return self.server.desk.page(at.path)

    def _post(self) -> Answer | None:
        length = self.headers.get("Content-Length", "")
        if not self._known() or self.headers.get("Origin") != f"http://{self.server.host}":
            return Answer("Forms of this desk come from its own pages.", HTTPStatus.FORBIDDEN)
        if not length.isdigit() or int(length) > _MOST:
            return Answer("The form is too large.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        form = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace"), keep_blank_values=True)
        return self.server.desk.form(urlsplit(self.path).path, form)

    def _known(self) -> bool:
        held = SimpleCookie(self.headers.get("Cookie", "")).get("desk")
        return held is not None and hmac.compare_digest(held.value.encode(), self.server.cookie.encode())

    def _let_in(self, token: str) -> Answer:
        right, self.server.token = self.server.token, None  # right or wrong, it is used up
        if right is None or not hmac.compare_digest(token.encode(), right.encode()):
            return Answer("This address was used already: start the desk again.", HTTPStatus.FORBIDDEN)
        cookie = f"desk={self.server.cookie}; HttpOnly; SameSite=Strict; Path=/"
        return Answer("", HTTPStatus.SEE_OTHER, headers={"Location": "/", "Set-Cookie": cookie})

    def _static(self, name: str) -> Answer:
        path = STATIC / name
        if "/" in name or path.suffix not in _TYPES or not path.is_file():
            return Answer("There is no such page.", HTTPStatus.NOT_FOUND)
        return Answer(path.read_text(encoding="utf-8"), headers={"Content-Type": _TYPES[path.suffix]})

    def _send(self, answer: Answer) -> None:
        body = answer.body.encode("utf-8")
        kind = "text/html; charset=utf-8" if answer.html else "text/plain; charset=utf-8"
        headers = {
            "Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin", **answer.headers,
        }  # fmt: skip
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, quote(value, safe="/#?=&%") if name == "Location" else value)
        self.end_headers()
        self.wfile.write(body)
