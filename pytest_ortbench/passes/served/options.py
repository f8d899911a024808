"""Options of a service that a run starts. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option


class ServedOptions:
    """What the user asks to be started."""

    serve: str = option(
        "",
        flag="--ort-serve",
        metavar="APP",
        help="start a service on loopback and also measure the model behind it, over the network: "
        "FILE.py:NAME (an ASGI application of yours that speaks the Open Inference Protocol) or "
        "reference (ortbench serve)",
        reader="pytest_ortbench.planning.served_apps:read_app",
        rule="pytest_ortbench.planning.served_apps:refuse_beside_endpoint",
        to="request.serve",
    )
    serve_port: int = option(
        8011,
        flag="--ort-serve-port",
        metavar="PORT",
        help="where on loopback that service listens",
        reader="pytest_ortbench.planning.served_apps:read_port",
        to="request.serve_port",
    )
    serve_name: str = option(
        "",
        flag="--ort-serve-name",
        metavar="NAME",
        help="what that service calls the model (default: the last part of the model's own name)",
        reader="pytest_ortbench.planning.served_apps:read_name",
        to="request.serve_name",
    )


OPTIONS = ServedOptions
