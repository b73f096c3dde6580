"""Tables and files."""

import pytest

from workloads.cli.output import plain_table, print_table, write_whole


def test_plain_columns_are_aligned():
    assert plain_table([("a", "long"), ("longer", "b")]) == "a       long\nlonger  b"


def test_a_terminal_gets_a_drawn_table(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_table(("name", "value"), [("[bold]kept as it is", "1")], title="title")
    out = capsys.readouterr().out
    assert "───" in out
    assert "[bold]kept as it is" in out


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    target = tmp_path / "new" / "page.html"
    write_whole(target, b"one")
    write_whole(target, b"two")
    assert target.read_bytes() == b"two"
    assert list(target.parent.iterdir()) == [target]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    write_whole(target, b"one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fchmod", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, b"two")
    assert target.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [target]
