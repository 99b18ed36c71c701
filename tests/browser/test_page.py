"""The map page in a real browser: everything a person can do there."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from browser.looking import PLAIN, TOKEN, Brake, Open, served
from filling.worlds import fixes, table_of
from serving.services import as_csv, asked_days

OPEN = {"Access-Control-Allow-Origin": "*"}
WITHOUT_WEBGL = "HTMLCanvasElement.prototype.getContext = () => null;"
DROP = """
(text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "points.csv", { type: "text/csv" }));
  for (const kind of ["dragenter", "dragover", "drop"])
    window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}
"""


def grey_pixel() -> bytes:
    """A PNG of one pixel."""
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\x80")),
        (b"IEND", b""),
    )
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def text_of(page: Any, selector: str) -> str:
    return page.locator(selector).inner_text()


def wait_for_user(page: Any, user: str) -> None:
    page.wait_for_function("(user) => document.getElementById('user').value === user", arg=user)


def wait_for_message(page: Any, words: str) -> None:
    page.locator("#message[role=alert] p", has_text=words).wait_for()


def paste(page: Any, text: str) -> None:
    page.click("#open")
    page.fill("#pasted", text)
    page.click("#points-dialog .primary")


def test_the_page_opens_with_an_example_on_the_map(open_page: Open) -> None:
    page = open_page(path="/")
    assert "boost" in text_of(page, "#about")
    assert page.locator(".slot").count() == 24
    assert page.locator("circle.dot.observed").count() == page.locator(".slot.observed").count() > 0
    assert page.locator("circle.dot.recovered").count() == page.locator(".slot.recovered").count() > 0
    assert page.locator("#map canvas").count() == 1
    page.select_option("#example", "2")
    wait_for_user(page, "sparse")
    assert page.locator(".slot.recovered").count() > 12


def test_a_slot_tells_its_place_its_alternatives_and_where_the_answer_came_from(open_page: Open) -> None:
    page = open_page()
    slot = page.locator(".slot.recovered").nth(2)
    slot.click()
    assert slot.get_attribute("aria-selected") == "true"
    panel = text_of(page, "#panel")
    for words in ("recovered", "sure", "Alternatives", "Where it comes from"):
        assert words in panel
    assert page.locator("g.badge").count() == page.locator("#panel .places li").count() > 0
    assert page.locator(".ring text").text_content() == slot.get_attribute("aria-label")[:5]
    page.locator(".slot.observed").first.click()
    assert "never changed" in text_of(page, "#panel")
    assert page.locator("g.badge").count() == 0


def test_a_dot_on_the_map_chooses_its_slot_and_the_sighting_that_counted_can_be_gone_to(open_page: Open) -> None:
    page = open_page()
    dot = page.locator("circle.dot.recovered").last
    number = int(dot.get_attribute("data-slot"))
    dot.dispatch_event("click")
    assert page.locator(".slot").nth(number).get_attribute("aria-selected") == "true"
    for i in range(page.locator(".slot.recovered").count()):
        page.locator(".slot.recovered").nth(i).click()
        if page.locator("#panel .link").count():
            break
    told = text_of(page, "#panel .link")
    page.click("#panel .link")
    assert page.locator('.slot[aria-selected="true"]').get_attribute("aria-label").startswith(told[:5])


def test_the_day_is_played_slot_by_slot_paused_and_played_to_its_end(open_page: Open) -> None:
    page = open_page(reduced_motion="reduce")
    page.locator(".slot").nth(0).click()
    page.select_option("#speed", "4")
    page.click("#play")
    assert text_of(page, "#play span") == "Pause"
    chosen = "() => [...document.querySelectorAll('.slot')].findIndex((one) => one.ariaSelected === 'true')"
    page.wait_for_function(f"() => ({chosen.removeprefix('() => ')}) >= 3")
    page.click("#play")
    at = page.evaluate(chosen)
    page.wait_for_timeout(300)
    assert page.evaluate(chosen) == at
    page.locator(".slot").nth(21).click()
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#play span').textContent === 'Play'")
    assert page.evaluate(chosen) == 23


def test_days_and_users_can_be_switched(open_page: Open) -> None:
    page = open_page()
    first = text_of(page, "#panel .when >> nth=0")
    assert page.locator("#previous").is_disabled()
    page.click("#next")
    assert text_of(page, "#panel .when >> nth=0") != first
    page.select_option("#date", "6")
    assert page.locator("#next").is_disabled()
    paste(page, as_csv(asked_days(("ann", "bob"))))
    wait_for_user(page, "ann")
    page.select_option("#user", "bob")
    assert page.locator("#date option").count() == 3
    assert page.locator("#user").input_value() == "bob"


@pytest.mark.parametrize("way", ["drop", "choose", "paste"])
def test_points_of_ones_own_are_dropped_chosen_or_pasted(open_page: Open, tmp_path: Path, way: str) -> None:
    page = open_page()
    text = as_csv(asked_days(("mine",), days=1))
    if way == "drop":
        page.evaluate(DROP, text)
    elif way == "paste":
        paste(page, text)
    else:
        (tmp_path / "mine.csv").write_text(text)
        page.click("#open")
        page.set_input_files("#file", tmp_path / "mine.csv")
    wait_for_user(page, "mine")
    assert "points used" in text_of(page, "#used")
    assert page.locator("#example").input_value() == ""
    assert page.locator("#drop").is_hidden()
    assert not page.locator("dialog[open]").count()


def test_a_broken_csv_is_explained_and_the_map_stays(open_page: Open) -> None:
    page = open_page()
    paste(page, "user,time,lat,lon\nann,2024-03-04T08:00:00,39.9\n")
    wait_for_message(page, "The CSV, row 2: 3 columns, but the header has 4; correct or remove that row.")
    assert page.locator(".slot").count() == 24
    page.click("#message button")
    assert page.locator("#message").is_hidden()
    paste(page, "what,is,this\n1,2,3\n")
    wait_for_message(page, "no column for time")
    paste(page, " ")
    wait_for_message(page, "No points were given")
    paste(page, as_csv(asked_days(("fine",), days=1)))
    wait_for_user(page, "fine")
    assert page.locator("#message").is_hidden()


def test_points_that_lie_nowhere_leave_an_empty_map_that_says_so(open_page: Open) -> None:
    page = open_page()
    paste(page, "time,lat,lon\n2024-03-04T08:00:00Z,10,10\n")
    page.wait_for_selector("#empty:not([hidden])")
    assert "1 outside" in page.locator("#used").text_content()
    page.select_option("#example", "0")
    page.wait_for_selector(".slot")


def test_what_is_not_sure_enough_is_left_missing(open_page: Open) -> None:
    page = open_page()
    before = page.locator(".slot.recovered").count()
    page.fill("#confidence", "95")
    page.wait_for_selector(".slot.left_missing")
    assert text_of(page, "#confidence-shown") == "95 %"
    left = page.locator(".slot.left_missing")
    assert left.count() + page.locator(".slot.recovered").count() == before
    left.first.click()
    assert "less sure than 0.95" in text_of(page, "#panel")
    assert page.locator(".ring").count() == 0
    page.fill("#confidence", "0")
    page.select_option("#gap", "1h")
    page.wait_for_function(
        "() => document.querySelector('#panel')?.textContent.includes('gap longer than 1h') || "
        "document.querySelector('.slot.left_missing')?.ariaLabel.includes('gap longer than 1h')"
    )


def test_the_result_can_be_downloaded_in_three_forms(open_page: Open, address: str) -> None:
    page = open_page()
    points = httpx.get(f"{address}/v1/examples").json()["examples"][0]["points"]
    for form, name in {"text/csv": "csv", "application/geo+json": "geojson", "application/json": "json"}.items():
        page.click("#download summary")
        with page.expect_download() as download:
            page.click(f'#download [data-form="{form}"]')
        assert download.value.suggested_filename == f"recovery.{name}"
        expected = httpx.post(f"{address}/v1/recover", json={"points": points}, headers={"Accept": form}).text
        assert Path(download.value.path()).read_text() == expected


def test_a_slow_answer_shows_that_it_takes_a_while_and_can_be_cancelled(
    open_page: Open, brake: type[Brake], address: str
) -> None:
    page = open_page()
    brake.seconds = 3.0
    page.select_option("#example", "1")
    page.wait_for_selector("#progress:not([hidden])")
    assert "Filling the gaps" in text_of(page, "#progress [role=status]")
    page.click("#progress button")
    wait_for_message(page, "Cancelled")
    assert page.locator("#progress").is_hidden()
    assert page.locator("#user").input_value() == "office"
    brake.seconds = 0.0
    for _ in range(50):
        if 'route="/v1/recover",status="499"' in httpx.get(f"{address}/metrics").text:
            break
        page.wait_for_timeout(100)
    assert 'route="/v1/recover",status="499"' in httpx.get(f"{address}/metrics").text
    brake.seconds = 0.5
    page.select_option("#example", "2")
    wait_for_user(page, "sparse")
    assert page.locator("#progress").is_hidden()


def test_a_newer_question_takes_the_place_of_one_that_is_still_asked(open_page: Open, brake: type[Brake]) -> None:
    page = open_page()
    brake.seconds = 0.6
    page.select_option("#example", "1")
    page.select_option("#example", "2")
    wait_for_user(page, "sparse")
    assert page.locator("#message").is_hidden()


def test_a_policy_that_is_changed_meanwhile_is_asked_of_the_newest_question(
    open_page: Open, brake: type[Brake]
) -> None:
    page = open_page()
    brake.seconds = 1.5
    page.select_option("#example", "1")
    page.select_option("#example", "2")
    page.wait_for_timeout(100)
    page.fill("#confidence", "40")
    page.wait_for_timeout(600)
    brake.seconds = 0.0
    wait_for_user(page, "sparse")
    assert page.locator("#example").input_value() == "2"
    page.select_option("#gap", "1h")
    page.wait_for_selector(".slot.left_missing")
    assert page.locator("#user").input_value() == "sparse"


def test_after_a_question_without_an_answer_what_is_chosen_is_what_is_shown(
    open_page: Open, brake: type[Brake]
) -> None:
    page = open_page()
    brake.seconds = 1.0
    page.select_option("#example", "1")
    page.click("#progress button")
    wait_for_message(page, "Cancelled")
    assert page.locator("#example").input_value() == "0"
    brake.seconds = 0.0
    paste(page, "what,is,this\n1,2,3\n")
    wait_for_message(page, "no column for time")
    assert page.locator("#example").input_value() == "0"


def test_what_is_not_there_yet_is_not_downloaded(open_page: Open, brake: type[Brake]) -> None:
    page = open_page()
    brake.seconds = 1.0
    page.select_option("#example", "2")
    page.click("#download summary")
    page.click('#download [data-form="text/csv"]')
    wait_for_message(page, "still on its way")
    wait_for_user(page, "sparse")


def test_a_file_that_is_not_utf_8_is_refused_before_its_names_are_mixed_up(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    (tmp_path / "latin.csv").write_bytes(as_csv(asked_days(("Jörg", "Järg"), days=1)).encode("latin-1"))
    page.click("#open")
    page.set_input_files("#file", tmp_path / "latin.csv")
    wait_for_message(page, "latin.csv is not UTF-8 text")
    page.click("#message button")
    assert page.locator("#user").input_value() == "office"


def test_a_token_is_asked_for_kept_in_the_tab_and_asked_for_again_when_it_expires(
    open_page: Open, guarded: str
) -> None:
    page = open_page(guarded, ready="#token-dialog[open]")
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('token-about').textContent.includes('no longer')")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_selector(".slot")
    page.reload()
    page.wait_for_selector(".slot")
    page.evaluate("sessionStorage.setItem('attnmove-token', 'expired')")
    page.select_option("#example", "1")
    page.wait_for_selector("#token-dialog[open]")
    page.fill("#token", TOKEN)
    page.click("#token-dialog .primary")
    wait_for_user(page, "nights")
    assert page.evaluate("localStorage.length") == 0


def test_without_a_token_the_page_says_why_it_is_empty(open_page: Open, guarded: str) -> None:
    page = open_page(guarded, ready="#token-dialog[open]")
    page.keyboard.press("Escape")
    wait_for_message(page, "Without a token")


def test_names_that_are_markup_stay_text(open_page: Open) -> None:
    page = open_page()
    evil = "<img src=x onerror=window.hacked=1>"
    other = "<script>window.hacked=1</script>"
    paste(page, as_csv(asked_days((evil, other), days=1)))
    wait_for_user(page, evil)
    assert page.locator("#user option").all_inner_texts() == sorted([evil, other])
    page.locator(".slot.recovered").first.click()
    paste(page, f"user,time,lat,{evil}\na,b,c,d\n")
    wait_for_message(page, evil)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, #message img").count() == 0


def test_locations_whose_names_are_markup_stay_text(open_page: Open, address: str) -> None:
    evil = "<img src=x onerror=window.hacked=1>"
    page = open_page(ready=None)
    page.wait_for_selector(".slot")

    def twist(route: Any) -> None:
        answer = route.fetch()
        changed = re.sub(r'"location":"[^"]*"', f'"location":"{evil}"', answer.text())
        route.fulfill(response=answer, body=changed)

    page.route("**/v1/recover", twist)
    page.select_option("#example", "1")
    wait_for_user(page, "nights")
    page.locator(".slot.recovered").first.click()
    assert text_of(page, "#panel h2") == evil
    assert page.evaluate("window.hacked") is None


def test_everything_can_be_done_with_the_keyboard(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(40):
        if page.evaluate("document.activeElement.role") == "option":
            break
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.role") == "option"
    place = "() => [...document.querySelectorAll('.slot')].indexOf(document.activeElement)"
    page.keyboard.press("Home")
    assert page.evaluate(place) == 0
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(place) == 0
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.evaluate(place) == 3
    assert page.locator('.slot[tabindex="0"]').count() == 1
    page.keyboard.press("End")
    assert page.evaluate(place) == 23
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.keyboard.press("Escape")
    assert page.evaluate(place) == 23
    page.keyboard.press("Tab")
    assert page.evaluate(place) == -1
    assert page.evaluate("document.activeElement.matches(':focus-visible')")


def test_controls_have_names_and_one_thing_is_said_where_it_changes(open_page: Open) -> None:
    page = open_page()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, textarea, [role=option], summary")]
          .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))
          .map((one) => one.outerHTML)"""
    )
    assert nameless == []
    label = page.locator(".slot.recovered").first.get_attribute("aria-label")
    assert re.fullmatch(r"\d\d:\d\d, recovered, .+, [<>]? ?\d+ % sure", label)
    assert page.locator("[role=alert]").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("path", ["/", PLAIN])
def test_it_fits_on_a_phone(open_page: Open, path: str) -> None:
    page = open_page(path=path, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".slot").nth(5).bounding_box()
    assert box["width"] >= 12
    assert box["height"] >= 40
    page.locator(".slot.recovered").first.tap()
    assert "sure" in text_of(page, "#panel")
    page.tap("#open")
    dialog = page.locator("#points-dialog").bounding_box()
    assert dialog["x"] >= 0
    assert dialog["x"] + dialog["width"] <= 390


def test_it_is_dark_where_people_want_it_dark_and_follows_when_they_change_their_mind(open_page: Open) -> None:
    page = open_page(path="/", color_scheme="dark")
    paint = "() => getComputedStyle(document.querySelector('.day')).backgroundColor"
    dark = page.evaluate(paint)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(paint)
    assert sum(json.loads(dark.replace("rgb(", "[").replace(")", "]"))) < 200
    assert light == "rgb(255, 255, 255)"


@pytest.mark.parametrize(("path", "script"), [(PLAIN, ""), ("/", WITHOUT_WEBGL)])
def test_without_webgl_a_plain_map_does_the_same(open_page: Open, path: str, script: str) -> None:
    page = open_page(path=path, script=script)
    assert page.locator("#map svg.plain").count() == 1
    assert page.locator("#map svg.plain path.answer").count() == 1
    world, dot = page.locator("svg.plain > g"), page.locator("circle.dot").first
    seen = [world.get_attribute("transform")]
    page.click('[aria-label="Zoom in"]')
    seen.append(world.get_attribute("transform"))
    where = dot.get_attribute("transform")
    page.locator("svg.plain").focus()
    page.keyboard.press("ArrowLeft")
    assert dot.get_attribute("transform") != where
    seen.append(world.get_attribute("transform"))
    page.mouse.move(300, 300)
    page.mouse.wheel(0, -200)
    page.wait_for_function(
        "(was) => document.querySelector('svg.plain > g').getAttribute('transform') !== was", arg=seen[-1]
    )
    assert len(set(seen)) == 3
    page.locator(".slot.recovered").first.click()
    assert page.locator("g.badge").count() > 0


def test_the_map_moves_with_the_dots(open_page: Open) -> None:
    page = open_page(path="/")
    page.wait_for_timeout(700)
    where = page.locator("circle.dot").first.get_attribute("transform")
    page.click(".maplibregl-ctrl-zoom-out")
    page.wait_for_function(
        "(where) => document.querySelector('circle.dot').getAttribute('transform') !== where", arg=where
    )


def test_tiles_are_fetched_from_where_they_were_said_to_be_and_drawn(open_page: Open, run: Path) -> None:
    with served(run, tiles="https://tiles.example/{z}/{x}/{y}.png") as address:
        page = open_page(address, path="/healthz", may_load="https://tiles.example/", ready=None)
        page.route(
            "https://tiles.example/**",
            lambda route: route.fulfill(body=grey_pixel(), content_type="image/png", headers=OPEN),
        )
        with page.expect_response("https://tiles.example/**") as tile:
            page.goto(address)
        assert tile.value.status == 200
        page.wait_for_selector(".slot")
        page.locator(".maplibregl-ctrl-attrib", has_text="tiles: tiles.example").wait_for(state="attached")


def test_a_service_that_is_gone_is_said(open_page: Open) -> None:
    page = open_page()
    page.route("**/v1/recover", lambda route: route.abort())
    page.select_option("#example", "1")
    wait_for_message(page, "does not answer")


def test_the_description_is_readable_without_the_internet(open_page: Open) -> None:
    page = open_page(path="/docs", ready="section")
    assert page.locator("section").count() == 6
    assert "/v1/recover" in text_of(page, "#operations")
    page.click("text=body: application/json")
    assert "min_confidence" in text_of(page, "#operations")


def test_a_day_without_any_move_is_shown(open_page: Open) -> None:
    page = open_page()
    paste(page, as_csv(table_of(fixes("home", "2024-03-18", "A" * 24))))
    wait_for_user(page, "home")
    assert page.locator("circle.dot.observed").count() == 24
    assert page.locator(".leg").count() == 1  # the legend's
