"""The command that serves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from attnmove.cli.render import err, out
from attnmove.cli.root import app
from attnmove.errors import ConfigError

TOKEN = "ATTNMOVE_TOKEN"


@app.command()
def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.")],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is everywhere.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where to listen; 0 takes any that is free.")] = 8000,
    examples: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="A dataset or points whose first people are offered to try."),
    ] = None,
    tiles: Annotated[
        str | None, typer.Option(metavar="URL", help="Raster tiles under the locations: https://…/{z}/{x}/{y}.png.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Let pages of this origin call; repeat for more.")
    ] = None,
    max_body_mib: Annotated[float, typer.Option(help="Largest body of a request, in MiB.")] = 8.0,
    max_points: Annotated[int, typer.Option(help="Most points of a request.")] = 50_000,
    max_users: Annotated[int, typer.Option(help="Most users of a request.")] = 100,
    max_days: Annotated[int, typer.Option(help="Most user-days of a request.")] = 400,
    timeout_s: Annotated[
        float, typer.Option(help="Seconds for a body to arrive, for its answer to be ready, and to be taken.")
    ] = 30.0,
    batching: Annotated[
        bool, typer.Option("--batching/--no-batching", help="Answer requests that wait together in one go.")
    ] = True,
    device: Annotated[str, typer.Option(help="Where networks compute: auto, cpu, cuda, mps.")] = "auto",
) -> None:
    """Serve a run: a map page for people, JSON over HTTP for programs.

    With the environment variable ATTNMOVE_TOKEN clients must show it. Ctrl-C or SIGTERM lets running requests finish.
    """
    from attnmove.serving.server import LOOPBACK, check_libraries, is_loopback, open_socket
    from attnmove.serving.server import run as run_server

    check_libraries()
    from attnmove.serving.app import make_app
    from attnmove.serving.limits import Limits

    token = os.environ.get(TOKEN)
    if token is not None and not (token := token.strip()):
        raise ConfigError(f"{TOKEN} is set but empty; set it to a token, or unset it")
    limits = Limits(max_body_mib, max_points, max_users, max_days, timeout_s)
    made = make_app(
        run,
        limits=limits,
        batching=batching,
        examples=examples,
        tiles=tiles,
        cors=cors or (),
        token=token,
        hosts=(*LOOPBACK, host) if token is None and is_loopback(host) else (),
        device=device,
    )
    if token is None and not is_loopback(host):
        err.print(f"note: everybody who reaches {escape(host)} may ask; set {TOKEN} to ask for a token", soft_wrap=True)

    def ready(address: str) -> None:
        out.print(f"serving {escape(str(run))} at {escape(address)}  (Ctrl-C stops)", soft_wrap=True, highlight=False)

    with open_socket(host, port) as listening:
        try:
            run_server(made, listening, patience_s=timeout_s, ready=ready)
        except KeyboardInterrupt:
            out.print("stopped")
