from pathlib import Path

from workloads.lab.log_tail import LogTail


def test_each_whole_line_is_told_once_and_an_unfinished_one_waits(tmp_path: Path) -> None:
    logs = {"a": tmp_path / "a", "b": tmp_path / "b"}
    for log in logs.values():
        log.touch()
    tail = LogTail(logs)
    with logs["a"].open("ab", buffering=0) as stream:
        stream.write(b"one\ntw")
        assert list(tail.new_lines()) == [("a", "one")]
        assert list(tail.new_lines()) == []
        stream.write(b"o\n\xff\n")
        logs["b"].write_text("other\n")
        assert list(tail.new_lines()) == [("a", "two"), ("a", "\ufffd"), ("b", "other")]
