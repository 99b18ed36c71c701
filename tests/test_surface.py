"""What users hold on to: public names, commands and options, the commands of README and docs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import attnmove
from attnmove.cli import app
from point_files import write_own_points

ROOT = Path(__file__).parents[1]
PUBLIC = {
    "City",
    "Dataset",
    "MODELS",
    "Preparation",
    "__version__",
    "compare",
    "evaluate",
    "evaluate_downstream",
    "load_model",
    "load_run",
    "prepare",
    "read_dataset",
    "recover",
    "report",
    "synthesize",
    "train_run",
    "write_city",
}
COMMANDS = {
    "bench", "compare", "demo", "evaluate", "info", "models", "prepare", "recover", "report", "serve", "synth", "train",
}  # fmt: skip
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands_in(page: Path) -> list[str]:
    """The `attnmove …` lines of the page's sh blocks, continued lines joined."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith("attnmove ")]


def python_in(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S)


def run_line(line: str) -> None:
    """Run a command as it stands on the page; a service is asked how it is, and stopped."""
    words = shlex.split(line)[1:]
    if words[0] == "serve":
        ask_service(words)
        return
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception}"


def ask_service(words: list[str]) -> None:
    command = [sys.executable, "-u", "-m", "attnmove.cli", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            said = service.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert found, f"{said}{service.stderr and service.stderr.read()}"
            with urllib.request.urlopen(f"{found[0]}/healthz", timeout=30) as answer:
                assert answer.status == 200
            with urllib.request.urlopen(found[0], timeout=30) as answer:
                assert "<title>" in answer.read().decode()
            service.terminate()
            service.communicate(timeout=30)
        finally:
            service.kill()


def test_the_public_names_are_these_and_each_can_be_had() -> None:
    assert set(attnmove.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(attnmove, name) is not None
    with pytest.raises(AttributeError):
        attnmove.nothing  # noqa: B018


def test_every_command_and_every_option_has_a_help_text() -> None:
    root = typer.main.get_command(app)
    assert set(root.commands) == COMMANDS  # type: ignore[attr-defined]
    stack = [root]
    while stack:
        command = stack.pop()
        stack.extend(getattr(command, "commands", {}).values())
        assert command.help, command.name
        for option in command.params:
            assert getattr(option, "help", None) or option.name == "help", f"{command.name} {option.name}"


def test_every_command_and_every_option_is_in_the_command_line_page() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    stack = [("attnmove", typer.main.get_command(app))]
    while stack:
        name, command = stack.pop()
        stack += [(f"{name} {child}", sub) for child, sub in getattr(command, "commands", {}).items()]
        assert name in page
        for option in command.params:
            long = [text for text in option.opts if text.startswith("--")]
            if option.param_type_name == "option" and long and not long[0].endswith("completion"):
                assert f"`{long[0]}" in page, f"{name} {long[0]} is not described"


@pytest.mark.filterwarnings("ignore:recover used not all")
def test_readme_commands_and_code_run_in_the_order_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_own_points(Path("points.csv"), users=8, days=12)
    lines = commands_in(ROOT / "README.md")
    assert {line.split()[1] for line in lines} >= {"prepare", "train", "evaluate", "recover", "report", "serve"}
    for line in lines:
        run_line(line)
    statuses = set(pq.read_table("recovered.parquet", columns=["status"])["status"].to_pylist())
    assert statuses == {"observed", "recovered"}
    for code in python_in(ROOT / "README.md"):
        exec(compile(code, "README.md", "exec"), {})


@pytest.mark.filterwarnings("ignore:recover used not all")
def test_quickstart_commands_and_code_run_in_the_order_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in commands_in(ROOT / "docs" / "quickstart.md"):
        if not line.startswith("attnmove demo"):  # tests/cli/test_demo.py
            run_line(line)
    for code in python_in(ROOT / "docs" / "quickstart.md"):
        exec(compile(code, "quickstart.md", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_shown_in_the_docs_names_options_that_exist(page: Path) -> None:
    root = typer.main.get_command(app)
    for line in commands_in(page):
        words = [word for word in shlex.split(line)[1:] if word not in ("…", "...")]
        command = root
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        known = {text for option in command.params for text in option.opts} | {"--help"}
        assert not [word for word in words if re.match(r"--?[a-z]", word) and word not in known], line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
