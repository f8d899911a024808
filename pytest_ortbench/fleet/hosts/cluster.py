"""The workers of a Dask cluster that measure: Dask sends, schedules and tries again.

Whoever speaks to a scheduler can run code on all of its workers and clients, this process too,
since Dask sends pickles: a cluster is trusted, and TLS keeps others out. What the workers return of
their measuring is data all the same.
"""

from __future__ import annotations

import queue
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from pytest_ortbench.core.errors import UsageError, class_and_line, first_line, says
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.hosts import shard_task
from pytest_ortbench.fleet.hosts.parcel import Parcel

#: Of each worker that measures, one: so it measures one model at a time.
RESOURCE = "ORTBENCH"
_PLACE = "fleet shard"
#: What the command of a worker needs for ``tls://``: the files of its own machine.
_TLS_OF_A_WORKER = " --tls-ca-file=ca.pem --tls-cert=cert.pem --tls-key=key.pem"
_ANSWER_S = 15
#: Bytes of a large file that cross at a time.
_PART = 32 << 20
_LOOK_S = 2.0
#: It names files here.
AttemptName = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}\Z")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """What a worker tells when it begins with some models.

    Attributes:
        tag: Of the run.
        attempt: A name of its own.
        name: What the cluster calls the worker.
        models: As the plan calls them.
        began: Seconds since 1970 by its clock.
    """

    tag: str
    attempt: AttemptName
    name: str
    models: tuple[str, ...]
    began: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a worker returns of some models.

    Attributes:
        attempt: As of :class:`Began`.
        name: What the cluster calls the worker.
        models: As they were asked for.
        code: Exit status of pytest; ``None`` if it could not be started.
        file: ``run.json``, ``journal.jsonl``, or nothing.
        document: Its content.
        output: The last lines that pytest printed.
    """

    attempt: AttemptName
    name: str
    models: tuple[str, ...]
    code: int | None
    file: str
    document: bytes
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What a worker says of a suite.

    Attributes:
        code: Exit status of its collection.
        output: The last lines that pytest printed.
        models: How many cases each model has.
    """

    code: int
    output: str
    models: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files of TLS.

    Attributes:
        ca: Certificate of the authority that both sides trust.
        cert: Our certificate.
        key: Its key.
    """

    ca: str
    cert: str
    key: str


class Cluster:
    """A connection to a scheduler, and its workers that measure.

    Args:
        address: ``tcp://…`` or ``tls://…``.
        certificates: Those of ``tls://``.
        folder: Folder on the workers.
        tell: Told of workers that come.
        wait_s: Seconds without any worker after which it is given up.
    """

    def __init__(
        self,
        address: str,
        *,
        certificates: Certificates | None,
        folder: str,
        tell: Callable[[str], None],
        wait_s: float,
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._wait_s = wait_s
        self._known: dict[str, str] = {}
        self._address = address
        self._tls = "" if certificates is None else _TLS_OF_A_WORKER
        self._client = _connected(address, certificates)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def workers(self) -> dict[str, str]:
        """Return the workers that measure: what the cluster calls each, by address."""
        every = self._client.scheduler_info(n_workers=-1)["workers"]
        return {
            address: str(facts.get("name", address))
            for address, facts in every.items()
            if facts.get("resources", {}).get(RESOURCE, 0) >= 1
        }

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return what each worker says of its machine, by name; wait for the first one.

        Raises:
            UsageError: if none comes, or one can't run our functions.
        """
        ends = time.monotonic() + self._wait_s
        while not (workers := self.workers()):
            if time.monotonic() > ends:
                raise UsageError(
                    f"the scheduler {self._address} has no worker with the resource {RESOURCE}. "
                    "Only workers with this resource measure",
                    place=_PLACE,
                    hint="On each machine that is to measure, run: dask worker "
                    f"{self._address} --nthreads=1 --resources {RESOURCE}=1{self._tls}",
                )
            time.sleep(_LOOK_S)
        try:
            answers = self._on(workers, shard_task.facts_of_worker)
        except Exception as error:  # whatever the worker lacks comes as its own error
            raise UsageError(
                "a worker can't run pytest-ortbench. "
                f"{says('The Python of the worker', class_and_line(error))}",
                place=_PLACE,
                hint="In the Python environment of each worker, run: pip install "
                f"'pytest-ortbench[cpu,dask]=={VERSION}'. On a machine with an NVIDIA GPU, write "
                "gpu in place of cpu. Then start the worker again",
            ) from error
        return {workers[address]: answer for address, answer in answers.items()}

    def send(self, parcel: Parcel, tag: str) -> None:
        """Send workers that were not seen before the files that they lack.

        Raises:
            UsageError: if one of the first workers has no room for them.
        """
        new = {key: name for key, name in self.workers().items() if key not in self._known}
        if not new:
            return
        are_first = not self._known
        self._known.update(new)
        answers = self._on(new, shard_task.missing_blobs, self._folder, tag, parcel.sizes())
        for address, answer in answers.items():
            if are_first and answer.get("reason") is not None:
                raise UsageError(
                    f"the worker {new[address]!r} can't store the files of this project in its "
                    f"folder {self._folder!r}. {says('The worker', answer['reason'])}",
                    place=_PLACE,
                    hint="Name a folder that every worker may write to, on a disk with free space, "
                    "e.g. --folder=/data/ortbench. To measure without this worker, stop it",
                )
        lacking = {address: set(answer.get("absent", ())) for address, answer in answers.items()}
        large = parcel.large()
        without = [address for address, digests in lacking.items() if digests - large.keys()]
        if without:
            self._on(without, shard_task.keep_pack, self._folder, tag, parcel.pack())
        for digest, path in large.items():
            without = [address for address, digests in lacking.items() if digest in digests]
            left = path.stat().st_size if without else 0
            with path.open("rb") as stream:
                while left > 0:
                    part = stream.read(_PART)
                    left -= len(part)
                    # A file that shrank meanwhile has no part left.
                    last = left <= 0 or not part
                    arguments = (self._folder, tag, digest, part)
                    self._on(without, shard_task.keep_part, *arguments, last=last)
                    if last:
                        break
        for name in new.values():
            self._tell(f"{name} has its files")

    def plan(self, tag: str, parcel: str, arguments: Sequence[str]) -> SuitePlan:
        """Have one worker collect the suite.

        Args:
            tag: Of the run.
            parcel: Digest of the file that says what the project holds, and the arguments.
            arguments: Arguments of pytest, for messages.

        Raises:
            UsageError: if it can't, or says something else.
        """
        future = self._submit("plan", tag, shard_task.plan_suite, parcel)
        try:
            return msgspec.convert(future.result(), SuitePlan)
        except Exception as error:  # whatever ended the worker comes as an error of Dask's
            raise UsageError(
                f"no worker could collect the tests. {says('Dask', class_and_line(error))}",
                place=_PLACE,
                hint=f"Run here: {shlex.join(('pytest', '--collect-only', *arguments))}. If this "
                "fails, too, mend the tests. If it does not, read the log of the worker",
            ) from error

    def measure(
        self, tag: str, parcel: str, models: Sequence[str], sent: Parcel
    ) -> Iterator[tuple[str, Ended | str]]:
        """Yield what became of each model, as workers end: their answer, or why there is none.

        A worker that is lost has its models measured by another one: Dask does that, at most
        ``distributed.scheduler.allowed-failures`` times.
        """
        done: queue.Queue[Any] = queue.Queue()
        pending = {}
        for model in models:
            future = self._submit(model, tag, shard_task.measure_models, parcel, [model])
            pending[future] = model
            future.add_done_callback(done.put)
        alone_since: float | None = None
        while pending:
            try:
                future = done.get(timeout=_LOOK_S)
            except queue.Empty:
                self.send(sent, tag)
                now = time.monotonic()
                alone_since = None if self.workers() else alone_since or now
                if alone_since is not None and now - alone_since > self._wait_s:
                    yield from ((model, "no worker is left") for model in pending.values())
                    return
                continue
            yield pending.pop(future), _ending(future)

    def began(self, tag: str) -> list[Began]:
        """Return what workers told of their beginnings, as far as it is sound."""
        told = []
        for _, message in self._client.get_events(shard_task.TOPIC):
            try:
                began = msgspec.convert(message, Began)
            except msgspec.ValidationError:
                continue
            if began.tag == tag:
                told.append(began)
        return told

    def stop(self, tag: str) -> None:
        """End what workers run for a tag."""
        self._on(self.workers(), shard_task.stop_runs, self._folder, tag)

    def clear(self, tag: str) -> None:
        """Remove what attempts left on workers."""
        self._on(self.workers(), shard_task.clear_runs, self._folder, tag)

    def _submit(self, name: str, tag: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(
            function,
            self._folder,
            tag,
            *arguments,
            key=f"ortbench-{tag}-{name}-{time.monotonic_ns()}",
            resources={RESOURCE: 1},
            pure=False,
        )

    def _on(
        self,
        workers: Mapping[str, str] | Sequence[str],
        function: Callable[..., Any],
        *arguments: Any,
        **keywords: Any,
    ) -> dict[str, Any]:
        """Call a function on workers, beside what they measure; a worker that is lost is left out.

        Returns:
            Its answers by address.
        """
        answers: dict[str, Any] = self._client.run(
            function, *arguments, workers=list(workers), on_error="return", **keywords
        )
        for answer in answers.values():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise answer
        return {key: answer for key, answer in answers.items() if isinstance(answer, dict)}


def _ending(future: Any) -> Ended | str:
    """Return what a future holds: an answer, or why there is none."""
    try:
        return msgspec.convert(future.result(), Ended)
    except msgspec.ValidationError as error:
        return f"the worker's answer can't be read ({says('its parser', str(error))})"
    except Exception as error:  # noqa: BLE001  # of the worker, of Dask
        return f"{type(error).__name__}: {error}"


def _own_address(address: str) -> str:
    """The host and port that an address holds, else an example of both."""
    try:
        if urlsplit(f"//{address}").port is not None:
            return address
    except ValueError:
        pass
    return urlsplit(address).netloc or "10.0.0.1:8786"


def _connected(address: str, certificates: Certificates | None) -> Any:
    """Return a client of Dask.

    Raises:
        UsageError: if the address is none, certificates and address don't fit, or nobody answers.
    """
    scheme = urlsplit(address).scheme
    if scheme not in ("tcp", "tls"):
        raise UsageError(
            f"{address!r} is not the address of a Dask scheduler",
            place="--scheduler",
            hint="Write the address that the cluster's dashboard names, e.g. "
            f"--scheduler=tcp://{urlsplit(address).hostname}:8786"
            if scheme in ("http", "https")
            else f"Write e.g. --scheduler={'tls' if certificates else 'tcp'}://"
            f"{_own_address(address)}",
        )
    if scheme == "tls" and certificates is None:
        raise UsageError(
            f"{address!r} begins with tls, so certificates are needed, but none are given",
            place="--scheduler",
            hint="Name your three files of certificates, e.g. --tls-ca=ca.pem --tls-cert=cert.pem "
            "--tls-key=key.pem. If the scheduler does not use TLS, write "
            f"--scheduler=tcp{address[3:]}",
        )
    if scheme == "tcp" and certificates is not None:
        raise UsageError(
            f"{address!r} begins with tcp, so the certificates that are given are not used",
            place="--scheduler",
            hint=f"To use them, write --scheduler=tls{address[3:]}. To do without them, leave "
            "--tls-ca, --tls-cert and --tls-key out",
        )
    try:
        from distributed import Client, Security  # an extra
    except ImportError as error:
        raise UsageError(
            "the package 'distributed' (of Dask) is not installed",
            place=_PLACE,
            hint="Run: pip install 'pytest-ortbench[dask]'",
        ) from error
    security = None
    if certificates is not None:
        security = Security(
            require_encryption=True,
            tls_ca_file=certificates.ca,
            tls_client_cert=certificates.cert,
            tls_client_key=certificates.key,
        )
    try:
        return Client(address, timeout=_ANSWER_S, security=security, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no scheduler answers at {address}. {says('Dask', first_line(error))}",
            place="--scheduler",
            hint="If none runs there, start one with 'dask scheduler'. If one runs elsewhere, "
            "correct --scheduler"
            + (
                ""
                if security is None
                else ". If it runs there, check the files of --tls-ca, --tls-cert and --tls-key"
            ),
        ) from error
