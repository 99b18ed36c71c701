"""What the service counts, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass
class Histogram:
    """Numbers in rising classes."""

    bounds: Sequence[float]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count one number."""
        self.counts[sum(value > bound for bound in self.bounds)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """As Prometheus writes them: how many are at most so large."""
        so_far = 0
        for bound, n in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            so_far += n
            yield f'{name}_bucket{{{labels}{"," if labels else ""}le="{bound}"}} {so_far}'
        around = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{around} {self.total:.6f}"
        yield f"{name}_count{around} {so_far}"


class Metrics:
    """Counts since the start; nothing in them comes from what people sent."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.batch_sizes, self.batch_seconds = Histogram(_SIZES), Histogram(_SECONDS)
        self.recovered = 0

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that is done."""
        self.requests[route, status] += 1
        self.seconds.setdefault(route, Histogram(_SECONDS)).add(seconds)

    def batch(self, n: int, seconds: float) -> None:
        """Count a go of the model."""
        self.batch_sizes.add(n)
        self.batch_seconds.add(seconds)

    def text(self, waiting: int) -> str:
        """All of it in Prometheus' text format."""
        lines = [
            *_head("attnmove_requests_total", "counter", "Requests by route and status."),
            *(
                f'attnmove_requests_total{{route="{route}",status="{status}"}} {n}'
                for (route, status), n in sorted(self.requests.items())
            ),
            *_head("attnmove_request_seconds", "histogram", "Time from the request to the end of its answer."),
            *(
                line
                for route, histogram in sorted(self.seconds.items())
                for line in histogram.lines("attnmove_request_seconds", f'route="{route}"')
            ),
            *_head("attnmove_batch_requests", "histogram", "Requests answered in one go of the model."),
            *self.batch_sizes.lines("attnmove_batch_requests"),
            *_head("attnmove_batch_seconds", "histogram", "Time of one go of the model."),
            *self.batch_seconds.lines("attnmove_batch_seconds"),
            *_head("attnmove_slots_recovered_total", "counter", "Slots that were recovered."),
            f"attnmove_slots_recovered_total {self.recovered}",
            *_head("attnmove_requests_waiting", "gauge", "Requests that wait for the model."),
            f"attnmove_requests_waiting {waiting}",
        ]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"
