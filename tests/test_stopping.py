"""A command that is stopped says so, leaves no folder, and loses no signal."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sacro_deltab.cli import Stopped, main, stoppable

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread only"
)
HANDLERS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_ends_with_a_message_and_no_folder(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "f.csv"):
        (tmp_path / name).write_text("x\n1\n2\n")
    before = [signal.getsignal(n) for n in HANDLERS]
    monkeypatch.setattr("sacro_deltab.run.pipeline.read", lambda _plan: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--ages", "a.csv", "--features", "f.csv", "--out", "out"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "stopped before the end" in said and "Next step" in said and "Traceback" not in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "f.csv"]
    assert [signal.getsignal(n) for n in HANDLERS] == before


def test_a_signal_in_a_finaliser_is_not_lost() -> None:
    class Finalised:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped), stoppable():
        Finalised()
        for _ in range(2000):
            time.sleep(0.005)


def test_the_disk_saying_no_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "somewhere.csv")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    monkeypatch.setattr("sacro_deltab.run.pipeline.run", full)
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--ages", "a.csv", "--features", "a.csv", "--out", "out"])
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and "somewhere.csv: No space left on device" in said and "Next step" in said
