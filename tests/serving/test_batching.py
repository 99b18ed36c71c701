"""Requests that wait go together, and nobody can tell from the answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from attnmove.filling.fill import Filler
from attnmove.filling.timeline import Timelines
from attnmove.serving.answering import Answer, Answerer, Ask
from attnmove.serving.app import make_app
from attnmove.serving.batching import MOST_TOGETHER, Batcher
from attnmove.serving.limits import Limits
from attnmove.serving.refusals import Busy, TooLarge
from serving.services import as_csv, as_points, asked_days, body


@pytest.fixture(scope="module")
def filler(boost_run: Path) -> Filler:
    return Filler.of(boost_run, device="cpu")


def some_asks() -> list[Ask]:
    """Twenty questions: the same names, other points; several policies and forms."""
    options: list[dict[str, object]] = [{}, {"max_gap": "3h"}, {"min_confidence": 0.6, "top": 2}, {"origins": False}]
    asks = [
        Ask(body(as_points(asked_days(("ann", "x\0y"), seed=seed, days=2)), **options[seed % 4])) for seed in range(17)
    ]
    text = as_csv(asked_days(seed=99, days=1)).encode()
    return [
        *asks,
        Ask(text, "text/csv", "text/csv"),
        Ask(text, "text/csv", "application/geo+json", {"top": 3}),
        Ask(body([])),
    ]


def test_answers_together_are_the_answers_one_by_one(filler: Filler) -> None:
    answerer = Answerer(filler, Limits())
    asks = some_asks()
    together = answerer.answer(asks)
    assert all(isinstance(answer, Answer) for answer in together)
    assert together == [answerer.answer([ask])[0] for ask in asks]
    assert together == answerer.answer(asks[::-1])[::-1]


def test_questions_with_the_same_options_are_one_call_of_the_model(
    filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    fill = Filler.fill_timelines
    monkeypatch.setattr(
        Filler,
        "fill_timelines",
        lambda self, lines, **named: calls.append(len(lines.days)) or fill(self, lines, **named),
    )
    Answerer(filler, Limits()).answer(
        [Ask(body(as_points(asked_days(seed=seed, days=1)))) for seed in range(MOST_TOGETHER)]
    )
    assert calls == [2 * MOST_TOGETHER]


def test_so_many_go_together_that_memory_does_not_grow_with_their_number(
    filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    fill = Filler.fill_timelines
    asks = [Ask(body(as_points(asked_days(seed=seed, days=1)))) for seed in range(7)]
    expected = Answerer(filler, Limits()).answer(asks)
    monkeypatch.setattr(
        Filler,
        "fill_timelines",
        lambda self, lines, **named: calls.append(len(lines.days)) or fill(self, lines, **named),
    )
    places_of_one = 2 * filler.setting.n_slots * 5
    answerer = Answerer(filler, Limits(max_places=3 * places_of_one))
    assert answerer.answer(asks) == expected
    assert calls == [6, 6, 2]
    alone = answerer.answer([Ask(asks[0].body, options={"top": 16})])
    assert isinstance(alone[0], TooLarge)
    assert "places (user-days times slots times top)" in str(alone[0])


def test_a_bad_question_does_not_harm_the_others(filler: Filler) -> None:
    good = Ask(body(as_points(asked_days(days=1))))
    answerer = Answerer(filler, Limits(max_users=2))
    many = Ask(body(as_points(asked_days(("a", "b", "c"), days=1))))
    answers = answerer.answer([good, Ask(b"{"), many, Ask(b"", options={"top": 0}), good])
    assert [type(answer).__name__ for answer in answers] == ["Answer", "Malformed", "TooLarge", "Malformed", "Answer"]
    assert isinstance(answers[2], TooLarge)
    assert answers[0] == answers[4]


def test_what_cannot_be_filled_together_is_filled_one_by_one(filler: Filler, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Filler.fill_timelines

    def picky(self: Filler, lines: Timelines, **named: bool) -> pa.Table:
        if any("bad" in user for user in lines.days.user):
            raise ValueError("no")
        return fill(self, lines, **named)

    asks = [Ask(body(as_points(asked_days((name,), days=1)))) for name in ("ann", "bad", "cy")]
    before = Answerer(filler, Limits()).answer(asks)
    monkeypatch.setattr(Filler, "fill_timelines", picky)
    after = Answerer(filler, Limits()).answer(asks)
    assert isinstance(after[1], ValueError)
    assert [after[0], after[2]] == [before[0], before[2]]


class Desk:
    """Stands for the model: notes what comes together, and answers when it is let go."""

    def __init__(self) -> None:
        self.goes: list[int] = []
        self.may_go = threading.Event()
        self.busy = threading.Event()

    def answer(self, asks: Sequence[Ask]) -> list[Answer | Exception]:
        self.goes.append(len(asks))
        self.busy.set()
        assert self.may_go.wait(10)
        return [Answer(ask.body, 0) for ask in asks]


async def begun(desk: Desk, batcher: Batcher) -> asyncio.Task[Answer]:
    """A first request that the model is busy with."""
    batcher.start()
    first = asyncio.create_task(batcher.ask(Ask(b"first")))
    await asyncio.to_thread(desk.busy.wait, 10)
    return first


def test_a_lone_request_goes_at_once_and_those_that_come_meanwhile_go_together() -> None:
    async def play() -> None:
        desk = Desk()
        batcher = Batcher(desk.answer, most_waiting=100)
        first = await begun(desk, batcher)
        others = [asyncio.create_task(batcher.ask(Ask(b"%d" % i))) for i in range(40)]
        await asyncio.sleep(0)
        assert len(batcher) == 40
        desk.may_go.set()
        answers = await asyncio.gather(first, *others)
        assert [answer.body for answer in answers] == [b"first", *(b"%d" % i for i in range(40))]
        assert desk.goes == [1, MOST_TOGETHER, 8]
        batcher.close()

    asyncio.run(play())


def test_without_batching_each_goes_by_itself() -> None:
    async def play() -> None:
        desk = Desk()
        batcher = Batcher(desk.answer, most_waiting=100, together=False)
        first = await begun(desk, batcher)
        others = [asyncio.create_task(batcher.ask(Ask(b"x"))) for _ in range(3)]
        await asyncio.sleep(0)
        desk.may_go.set()
        await asyncio.gather(first, *others)
        assert desk.goes == [1, 1, 1, 1]
        batcher.close()

    asyncio.run(play())


def test_a_large_request_goes_alone() -> None:
    async def play() -> None:
        desk = Desk()
        batcher = Batcher(desk.answer, most_waiting=100)
        first = await begun(desk, batcher)
        sizes = (10, 10, 2_000_000, 10)
        others = [asyncio.create_task(batcher.ask(Ask(b"x" * size))) for size in sizes]
        await asyncio.sleep(0)
        desk.may_go.set()
        await asyncio.gather(first, *others)
        assert desk.goes == [1, 2, 1, 1]
        batcher.close()

    asyncio.run(play())


def test_too_many_waiting_are_told_to_come_back_and_those_that_left_are_passed_over() -> None:
    async def play() -> None:
        desk = Desk()
        batcher = Batcher(desk.answer, most_waiting=2)
        first = await begun(desk, batcher)
        gone, stays = (asyncio.create_task(batcher.ask(Ask(b"x"))) for _ in range(2))
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="come back"):
            await batcher.ask(Ask(b"x"))
        gone.cancel()
        await asyncio.sleep(0.01)
        assert len(batcher) == 1  # what a client that left had sent is not kept, and another may take its place
        desk.may_go.set()
        await asyncio.gather(first, stays)
        assert desk.goes == [1, 1]
        batcher.close()

    asyncio.run(play())


def test_a_failure_of_the_model_is_the_answer_and_the_next_go_comes() -> None:
    async def play() -> None:
        def answer(asks: Sequence[Ask]) -> list[Answer | Exception]:
            if asks[0].body == b"bad":
                raise MemoryError
            return [Answer(ask.body, 0) for ask in asks]

        batcher = Batcher(answer, most_waiting=2)
        batcher.start()
        with pytest.raises(MemoryError):
            await batcher.ask(Ask(b"bad"))
        assert (await batcher.ask(Ask(b"good"))).body == b"good"
        batcher.close()

    asyncio.run(play())


def test_many_clients_at_once_get_the_answers_each_would_get_alone(boost_run: Path) -> None:
    bodies = [body(as_points(asked_days(seed=seed, days=1))) for seed in range(12)]
    headers = {"Content-Type": "application/json"}

    async def ask_all(batching: bool) -> tuple[list[bytes], str]:
        import httpx

        app = make_app(boost_run, batching=batching)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                requests = (client.post("/v1/recover", content=one, headers=headers) for one in bodies)
                answers = await asyncio.gather(*requests)
                assert {answer.status_code for answer in answers} == {200}
                return [answer.content for answer in answers], (await client.get("/metrics")).text

    together, counts = asyncio.run(ask_all(True))
    alone, _ = asyncio.run(ask_all(False))
    assert together == alone
    assert "attnmove_batch_requests_sum 12.0" in counts
    goes = int(counts.split("attnmove_batch_requests_count ")[1].split()[0])
    assert goes < 12


def test_the_busy_status_says_when_to_come_back(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(self: Batcher, ask: Ask) -> Answer:
        raise Busy("256 requests wait already; come back in a second")

    with TestClient(make_app(run)) as client:
        monkeypatch.setattr(Batcher, "ask", busy)
        response = client.post("/v1/recover", content=body([]), headers={"Content-Type": "application/json"})
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["code"] == "busy"
